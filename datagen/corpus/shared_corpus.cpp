#include "datagen/corpus/shared_corpus.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <span>

#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {

Result<void> check_shares(Communicator& ranks, const Corpus& corpus, std::string_view what) {
  std::uint64_t least = crc32c(corpus.manifest.bytes());
  std::uint64_t most = least;
  PENSTOCK_TRY(ranks.all_reduce(std::span(&least, 1), Reduction::min));
  PENSTOCK_TRY(ranks.all_reduce(std::span(&most, 1), Reduction::max));
  if (least != most)
    return make_error(
        Errc::corrupt,
        fmt::format("the ranks see different data sets in '{}': it must be the same on every node, "
                    "and at rest",
                    corpus.name));
  if (corpus.manifest.samples() < static_cast<std::uint64_t>(ranks.size()))
    return make_error(Errc::invalid_argument,
                      fmt::format("{} ranks cannot share the {} {} of '{}': start as many at most",
                                  ranks.size(), corpus.manifest.samples(), what, corpus.name));
  return success();
}

}  // namespace penstock
