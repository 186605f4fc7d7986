// Checks a corpus that the ranks of a job share.
#pragma once

#include <string_view>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/ranks/communicator.hpp"

namespace penstock {

// Checks that all ranks see the same corpus, and that it has a sample for each rank. Collective: all ranks
// must call it. Fails with `corrupt` if the ranks see different data sets, and with `invalid_argument` if
// there are fewer samples than ranks. `sample_word` is the word for samples in messages.
Result<void> check_shared_corpus(Communicator& ranks, const Corpus& corpus,
                                 std::string_view sample_word = "samples");

}  // namespace penstock
