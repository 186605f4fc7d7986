// What a line of `penstock read` asks for: how to read, and what.
#pragma once

#include <vector>

#include "benchmarks/read/read_sweep.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"

namespace penstock {

// invalid_argument, naming the options, where they contradict each other or the number of ranks.
Result<SweepSettings> sweep_settings(const CommandContext& context);

struct ReadSubject {
  Corpus corpus;
  std::vector<Tier> others;  // of --tier
  SampleList samples;        // the manifest's, or blocks of its objects
};

// Opens the corpus and the tiers, and looks whether the settings can be had of them: what they lack
// (checksums, a decoder, objects, collective reads, a sample for each rank) is said before anything is
// measured. Collective.
Result<ReadSubject> open_subject(const CommandContext& context, const SweepSettings& settings);

}  // namespace penstock
