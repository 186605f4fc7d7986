#include "datagen/format/hdf5/hdf5_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/hdf5/hdf5_checksum.hpp"
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
  if (cost > byte_budget_) return corrupt(address, "headers in a cycle");
  byte_budget_ -= cost;
  return window_.at(offset, size_t(length));
}

Result<std::span<const std::byte>> Hdf5Source::read_checked_bytes(uint64_t address, uint64_t length,
                                                                  std::string_view signature) {
  PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, read_bytes(address, length));
  if (bytes.size() < signature.size() + kHdf5ChecksumBytes || !as_text(bytes).starts_with(signature))
    return corrupt(address, fmt::format("there is no '{}' here", signature));
  const std::span<const std::byte> covered = bytes.first(bytes.size() - kHdf5ChecksumBytes);
  const bool is_correct = hdf5_checksum(covered) == number_at(bytes, covered.size(), kHdf5ChecksumBytes);
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

namespace {

// The bytes of a number that is at most `limit`.
uint64_t bytes_for(uint64_t limit) {
  return (uint64_t(std::bit_width(limit)) + 7) / 8;
}

// How many records a node of a version 2 B-tree can have, and how its pointers to children are stored. The
// leaves have level 0.
struct TreeLevel {
  uint64_t most_records = 0;
  uint64_t pointer_bytes = 0;  // of a pointer to a child of this level
};

}  // namespace

// A pointer to a child has its address, the number of its records and, unless it is a leaf, the number of all
// records below it. The last two take as many bytes as the largest possible number needs.
Result<void> Hdf5Source::walk_second_tree(
    uint64_t address, uint64_t type, std::string_view what,
    const std::function<Result<void>(std::span<const std::byte> record)>& visit) {
  constexpr uint64_t kHeadBytes = 38;
  constexpr uint64_t kNodeHeadBytes = 6;
  constexpr uint64_t kMostDepth = 32;
  PENSTOCK_ASSIGN(const auto head, read_checked_bytes(address, kHeadBytes, "BTHD"));
  HeaderReader reader(head);
  const uint64_t stored_type = reader.skip(5).u8();
  const uint64_t node_bytes = reader.u32();
  const uint64_t record_bytes = reader.u16();
  const uint64_t depth = reader.u16();
  const uint64_t root = reader.skip(2).u64();
  const uint64_t root_records = reader.u16();
  const uint64_t overhead = kNodeHeadBytes + kHdf5ChecksumBytes;
  if (stored_type != type || record_bytes == 0 || depth > kMostDepth || node_bytes < overhead + record_bytes)
    return corrupt(address, fmt::format("no tree of {}", what));
  std::vector<TreeLevel> levels{{(node_bytes - overhead) / record_bytes, 0}};
  const uint64_t count_bytes = bytes_for(levels[0].most_records);
  levels[0].pointer_bytes = 8 + count_bytes;
  uint64_t most_below = levels[0].most_records;
  for (uint64_t level = 1; level <= depth; ++level) {
    const uint64_t pointer_bytes = levels.back().pointer_bytes;
    const uint64_t most =
        (node_bytes - std::min(node_bytes, overhead + pointer_bytes)) / (record_bytes + pointer_bytes);
    if (__builtin_mul_overflow(most + 1, most_below, &most_below) ||
        __builtin_add_overflow(most_below, most, &most_below))
      return corrupt(address, fmt::format("a tree of {} with more records than there are", what));
    levels.push_back({most, 8 + count_bytes + bytes_for(most_below)});
  }
  struct Node {
    uint64_t address;
    uint64_t records;
    uint64_t level;
  };
  std::vector<Node> nodes{{root, root_records, depth}};
  if (root == kHdf5NoAddress) nodes.clear();
  while (!nodes.empty()) {
    PENSTOCK_TRY(check_interrupt());
    const Node node = nodes.back();
    nodes.pop_back();
    if (node.records > levels[size_t(node.level)].most_records)
      return corrupt(node.address, fmt::format("no node of {}", what));
    const bool is_leaf = node.level == 0;
    const uint64_t pointer_bytes = is_leaf ? 0 : levels[size_t(node.level - 1)].pointer_bytes;
    const uint64_t pointers = is_leaf ? 0 : node.records + 1;
    PENSTOCK_ASSIGN(
        const auto bytes,
        read_checked_bytes(node.address, overhead + node.records * record_bytes + pointers * pointer_bytes,
                           is_leaf ? "BTLF" : "BTIN"));
    const std::vector<std::byte> content(bytes.begin() + kNodeHeadBytes, bytes.end());
    for (uint64_t i = 0; i < node.records; ++i)
      PENSTOCK_TRY(visit(std::span(content).subspan(size_t(i * record_bytes), size_t(record_bytes))));
    for (uint64_t i = 0; i < pointers; ++i) {
      HeaderReader pointer{
          std::span(content).subspan(size_t(node.records * record_bytes + i * pointer_bytes))};
      const uint64_t child = pointer.u64();
      nodes.push_back({child, pointer.number(size_t(count_bytes)), node.level - 1});
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
