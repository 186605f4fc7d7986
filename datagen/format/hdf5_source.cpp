#include "datagen/format/hdf5_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/hdf5_checksum.hpp"
#include "io_backends/core/checksums/checksums_count.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {

Result<std::span<const std::byte>> Hdf5Source::read_bytes(uint64_t address, uint64_t length) {
  PENSTOCK_ASSIGN(const uint64_t offset, file_offset(address, length));
  if (length > kMaxReadBytes)
    return error(Errc::unsupported, address, fmt::format("a header of {} bytes", length));
  // References in a damaged file may lead in a circle. byte_budget_ ends a search that follows them. Each
  // read costs one more than its bytes, so that a circle of empty reads ends too.
  const uint64_t cost = length + 1;
  if (cost > byte_budget_) return corrupt(address, "headers that lead in circles");
  byte_budget_ -= cost;
  return window_.at(offset, size_t(length));
}

Result<std::span<const std::byte>> Hdf5Source::read_checked_bytes(uint64_t address, uint64_t length,
                                                                  std::string_view signature) {
  constexpr size_t kChecksumBytes = 4;
  PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, read_bytes(address, length));
  if (bytes.size() < signature.size() + kChecksumBytes || !as_text(bytes).starts_with(signature))
    return corrupt(address, fmt::format("no '{}' begins here", signature));
  const std::span<const std::byte> covered = bytes.first(bytes.size() - kChecksumBytes);
  const bool is_correct = hdf5_checksum(covered) == number_at(bytes, covered.size(), kChecksumBytes);
  if (kVerifyChecksums && !is_correct)
    return corrupt(address, fmt::format("the checksum of this '{}' is wrong", signature));
  return covered;
}

// Visits nodes of the tree until none is left. Fails if a child's level is not lower than its parent's: in a
// damaged tree a path could otherwise be endless.
Result<void> Hdf5Source::walk_tree(
    uint64_t root, uint64_t kind, uint64_t key_bytes, std::string_view what,
    const std::function<Result<void>(uint64_t at, std::span<const std::byte> entry, uint64_t child)>& visit) {
  constexpr unsigned kAboveAllLevels = 256;
  std::vector<std::pair<uint64_t, unsigned>> nodes_to_visit{{root, kAboveAllLevels}};
  while (!nodes_to_visit.empty()) {
    PENSTOCK_TRY(check_interrupt());
    const auto [address, parent_level] = nodes_to_visit.back();
    nodes_to_visit.pop_back();
    PENSTOCK_ASSIGN(const auto head, read_bytes(address, 24));
    HeaderReader reader(head);
    const bool is_node = reader.text(4) == "TREE" && reader.u8() == kind;
    const auto level = unsigned(reader.u8());
    const uint64_t children = reader.u16();
    if (!is_node || level >= parent_level) return corrupt(address, fmt::format("no node of {}", what));
    for (uint64_t i = 0; i < children; ++i) {
      const uint64_t at = address + 24 + i * (key_bytes + 8);
      PENSTOCK_ASSIGN(const auto entry, read_bytes(at, key_bytes + 8));
      const uint64_t child = number_at(entry, key_bytes, 8);
      if (level > 0)
        nodes_to_visit.emplace_back(child, level);
      else
        PENSTOCK_TRY(visit(at, entry, child));
    }
  }
  return success();
}

Result<uint64_t> Hdf5Source::file_offset(uint64_t address, uint64_t length) const {
  const uint64_t available = size_ - std::min(base_, size_);
  if (address > available || length > available - address)
    return error(Errc::truncated, address,
                 fmt::format("{} bytes should be here, but the object ends at {}", length, size_));
  return base_ + address;
}

Error Hdf5Source::error(Errc code, uint64_t address, std::string_view what) const {
  constexpr uint64_t kMaxOffset = std::numeric_limits<uint64_t>::max();
  return window_.error(code, address > kMaxOffset - base_ ? kMaxOffset : base_ + address, what);
}

}  // namespace penstock
