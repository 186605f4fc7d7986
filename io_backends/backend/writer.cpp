#include "io_backends/backend/writer.hpp"

#include <string>

namespace penstock {

Result<void> Writer::append(std::span<const std::span<const std::byte>> pieces) {
  for (const auto& piece : pieces) PENSTOCK_TRY(append(piece));
  return success();
}

Result<void> Writer::write_at(std::uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {
  return make_error(Errc::unsupported, "this back end has no writes at an offset");
}

Error spent_error(std::string_view name) {
  return make_error(Errc::invalid_argument,
                    "the writer of '" + std::string(name) + "' has failed or published before");
}

}  // namespace penstock
