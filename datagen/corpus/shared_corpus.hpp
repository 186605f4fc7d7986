// Checks a corpus that the ranks of a job share.
#pragma once

#include <string_view>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/ranks/communicator.hpp"

namespace penstock {

// Collective. `corrupt` if the ranks see different data sets. `invalid_argument` if there are fewer samples
// than ranks. `sample_word` is the word for samples in messages.
Result<void> check_shared_corpus(Communicator& ranks, const Corpus& corpus,
                                 std::string_view sample_word = "samples");

}  // namespace penstock
