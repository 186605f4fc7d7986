// The subject of `penstock read`: a corpus, and the tiers that have its objects.
#pragma once

#include <vector>

#include "benchmarks/read/read_options.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

struct ReadSubject {
  Corpus corpus;
  std::vector<Tier> others;  // the tiers of --tier
  SampleList samples;        // the manifest's, or blocks of its objects

  std::vector<Tier*> tiers(bool corpus_too);  // in the order of measurement
};

// Opens the corpus and the tiers, and checks that they have what the options ask for (checksums, a decoder,
// objects, collective reads, a sample for each rank) before anything is measured. Collective.
Result<ReadSubject> open_subject(const CommandContext& context, const ReadOptions& asked);

}  // namespace penstock
