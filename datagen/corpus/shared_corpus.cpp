#include "datagen/corpus/shared_corpus.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/ranks/collectives.hpp"

namespace penstock {

Result<void> check_shared_corpus(Communicator& ranks, const Corpus& corpus, std::string_view sample_word) {
  PENSTOCK_ASSIGN(const std::vector<uint32_t> crcs, gather<uint32_t>(ranks, crc32c(corpus.manifest.bytes())));
  if (std::any_of(crcs.begin(), crcs.end(), [&](uint32_t crc) { return crc != crcs.front(); }))
    return make_error(Errc::corrupt,
                      "the ranks see different data sets in '{}': use a folder that is the same on every "
                      "node and does not change",
                      corpus.name);
  if (corpus.manifest.samples() < uint64_t(ranks.size()))
    return make_error(Errc::invalid_argument,
                      "{} ranks cannot share the {} {} of '{}': start at most that many ranks", ranks.size(),
                      corpus.manifest.samples(), sample_word, corpus.name);
  return success();
}

}  // namespace penstock
