// The subject of `penstock read`: a corpus, and the tiers that have its objects.
#pragma once

#include <vector>

#include "benchmarks/read/read_engine.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

struct ReadSubject {
  Corpus corpus;
  std::vector<Tier> given_tiers;  // the tiers that --tier gives
  SampleList samples;             // the samples of the manifest, or with --block the blocks of its objects

  std::vector<Tier*> tiers(bool with_corpus_tier);  // the tiers to measure, the corpus's own first
};

// Opens the corpus and the tiers, and checks that they have what the options require: checksums, a decoder,
// the objects, collective reads. So it fails before anything is measured. Each rank calls it for itself.
Result<ReadSubject> open_subject(const CommandContext& context, const ReadOptions& requested);

}  // namespace penstock
