// Makes a data set: several threads of one or many ranks write the samples of a recipe, in a format, to any
// back end.
//
// All bytes, including the manifest, depend only on the GenerationState: not on threads, ranks, time or host,
// and not on interruptions. Each object appears complete or not at all. The manifest is written last, after
// all other objects are durable. So an unfinished data set has no manifest and is no corpus.
#pragma once

#include <cstdint>
#include <vector>

#include "datagen/generate/generation.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/cells/rank_figures.hpp"

namespace penstock {

// Counts what a thread, a rank or several of them made.
struct GeneratedCounts {
  uint64_t samples_made = 0;
  uint64_t bytes_made = 0;
  uint64_t samples_kept = 0;       // samples that an earlier run made and that are still correct
  uint64_t samples_journaled = 0;  // how many of samples_made are in the journal, where --resume finds them
  // Number of objects that an earlier run made and that are no longer correct. They are made again.
  uint64_t damaged_objects = 0;
  double seconds = 0;  // time in which objects were made, on the slowest rank

  void add(const GeneratedCounts& part);  // adds all members but `seconds`
};

// The counts of all ranks together. Every rank gets the same values, but only rank 0 gets `rank_figures`.
struct GenerateResult : GeneratedCounts {
  // Number of damaged rows and segments of the journal; their objects are made again.
  uint64_t damaged_journal_parts = 0;
  bool checked_by_size = false;           // objects of an earlier run were checked only by their size
  bool can_resume = false;                // the target has an unfinished data set that --resume can complete
  std::vector<RankFigures> rank_figures;  // what each rank made; empty for a single process
};

// Makes the objects that are missing. If the data set is finished and `resume` is set, makes the objects
// again that are missing or have another size than in the manifest; it calls stat once for each object.
// `corrupt`, naming the object, if this build would make such an object with other bytes than the manifest
// says.
//
// Holds the target's lock (`busy` if another process holds it). Sets `out` even if this fails or is
// interrupted. If out.can_resume is then true, --resume can continue. Otherwise there is no unfinished data
// set in the target: either nothing was changed, or a finished data set was being repaired.
//
// All ranks must call it together, with the same arguments, and each makes its share of the objects. All
// ranks must see the same target (`not_found` if one does not). Only rank 0 inspects the target and writes
// the manifest. If one rank fails or is asked to stop, all others stop too.
Result<void> generate(const Generation& generation, Tier& tier, unsigned threads, bool resume,
                      Communicator& ranks, Progress& progress, GenerateResult& out);

}  // namespace penstock
