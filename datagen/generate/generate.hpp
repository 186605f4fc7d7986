// Makes a data set: a recipe's samples, by several threads of one or many ranks, through a format into the
// objects of any back end.
//
// The bytes of the tree, the manifest included, depend on the GenerationState alone: not on threads, ranks,
// time, host, or on how often it was stopped and resumed. Each object appears whole; the manifest comes last,
// once all others survive a power cut, so that half a data set is no corpus.
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

// What some threads or ranks made.
struct GeneratedCounts {
  std::uint64_t samples_made = 0;
  std::uint64_t bytes_made = 0;
  std::uint64_t samples_kept = 0;       // found right from before
  std::uint64_t samples_journaled = 0;  // of those made: --resume knows of them
  std::uint64_t damaged = 0;            // objects of before that are no longer right: made again
  double seconds = 0;                   // of the making alone, by the slowest rank

  void count(const GeneratedCounts& part);  // adds samples, bytes and objects
};

// Of all ranks together, and the same on each.
struct Generated : GeneratedCounts {
  std::uint64_t journal_damaged = 0;  // rows and segments of the journal: what they named is made again
  bool kept_by_size = false;          // of what was kept, no more than the sizes of objects were looked at
  bool started = false;               // the target holds what --resume goes on with
  std::vector<RankFigures> ranks;     // what each made; none of a single process
};

// Makes what is missing; with `resume`, of a finished data set what is gone or of another size, by a stat of
// each object (`corrupt`, naming the object, where this build would make other bytes of it). Holds the
// target's lock meanwhile (`busy` if another process does). `out` says how far it came, also when this fails
// or is interrupted: then the journal is there and --resume goes on. Where out.started is false, the target
// is as it was before.
//
// Collective: every rank gets the same words and makes its share of the objects in the same place, which all
// must see (`not_found` where one does not); rank 0 alone looks at what is there, and makes the manifest. A
// rank that fails, or is asked to stop, stops the others.
Result<void> generate(const Generation& generation, Tier& tier, unsigned threads, bool resume,
                      Communicator& ranks, Progress& progress, Generated& out);

}  // namespace penstock
