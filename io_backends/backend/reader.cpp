#include "io_backends/backend/reader.hpp"

#include <limits>
#include <string>

namespace penstock {

Result<std::span<const std::byte>> Reader::view(std::uint64_t /*offset*/, std::uint64_t /*length*/) {
  return make_error(Errc::unsupported, "this back end has no views of its objects");
}

Result<void> Reader::read_at_all(std::uint64_t /*offset*/, std::span<std::byte> /*out*/) {
  return make_error(Errc::unsupported, "this back end has no collective reads");
}

Error truncated_error(std::string_view name, std::uint64_t offset, std::uint64_t length) {
  return make_error(Errc::truncated,
                    "'" + std::string(name) + "' ends before byte " +
                        std::to_string(offset > std::numeric_limits<std::uint64_t>::max() - length
                                           ? std::numeric_limits<std::uint64_t>::max()
                                           : offset + length));
}

}  // namespace penstock
