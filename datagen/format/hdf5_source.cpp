#include "datagen/format/hdf5_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/hdf5_checksum.hpp"
#include "io_backends/core/checksums/checksums_count.hpp"

namespace penstock {

Result<std::span<const std::byte>> Hdf5Source::look(std::uint64_t address, std::uint64_t length) {
  PENSTOCK_ASSIGN(const std::uint64_t offset, extent(address, length));
  if (length > kMaxInspected)
    return error(Errc::unsupported, address, fmt::format("a header of {} bytes", length));
  // Also what has no bytes has its price.
  const std::uint64_t price = length + 1;
  if (price > budget_) return corrupt(address, "headers that lead in circles");
  budget_ -= price;
  return window_.at(offset, static_cast<std::size_t>(length));
}

Result<std::span<const std::byte>> Hdf5Source::look_checked(std::uint64_t address, std::uint64_t length,
                                                            std::string_view signature) {
  constexpr std::size_t kChecksum = 4;
  PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, look(address, length));
  if (bytes.size() < signature.size() + kChecksum || !as_text(bytes).starts_with(signature))
    return corrupt(address, fmt::format("no '{}' begins here", signature));
  const std::span<const std::byte> covered = bytes.first(bytes.size() - kChecksum);
  const bool right = hdf5_checksum(covered) == number_at(bytes, covered.size(), kChecksum);
  if (kChecksumsCount && !right)
    return corrupt(address, fmt::format("the checksum of this '{}' is wrong", signature));
  return covered;
}

Result<std::uint64_t> Hdf5Source::extent(std::uint64_t address, std::uint64_t length) const {
  const std::uint64_t there = size_ - std::min(base_, size_);
  if (address > there || length > there - address)
    return error(Errc::truncated, address,
                 fmt::format("{} bytes should be here, but the object ends at {}", length, size_));
  return base_ + address;
}

Error Hdf5Source::error(Errc code, std::uint64_t address, std::string_view what) const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return window_.error(code, address > kMost - base_ ? kMost : base_ + address, what);
}

}  // namespace penstock
