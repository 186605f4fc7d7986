#include "datagen/format/hdf5/hdf5_heap.hpp"

#include <algorithm>
#include <bit>

#include "datagen/format/byte_order.hpp"

namespace penstock {
namespace {

uint64_t log2_of(uint64_t power) {
  return uint64_t(std::countr_zero(power));
}

}  // namespace

Result<Hdf5Heap> Hdf5Heap::open(Hdf5Source& source, uint64_t address) {
  Hdf5Heap heap(source, address);
  PENSTOCK_TRY(heap.read_header());
  return heap;
}

Result<void> Hdf5Heap::read_header() {
  constexpr uint64_t kHeadBytes = 146;
  PENSTOCK_ASSIGN(const auto first, source_.read_bytes(address_, kHeadBytes - 4));
  if (number_at(first, 7, 2) != 0)
    return source_.error(Errc::unsupported, address_, "a heap with filtered blocks");
  PENSTOCK_ASSIGN(const auto head, source_.read_checked_bytes(address_, kHeadBytes, "FRHP"));
  HeaderReader reader(head);
  reader.skip(4 + 1 + 2 + 2 + 1);  // signature, version, bytes of identifiers and of filters, flags
  const uint64_t most_object_bytes = reader.u32();
  reader.skip(12 * 8);  // about huge objects, free space and counts
  width_ = reader.u16();
  first_row_bytes_ = reader.u64();
  const uint64_t most_direct_bytes = reader.u64();
  const uint64_t heap_bits = reader.u16();
  reader.skip(2);  // rows of a new root block
  root_.address = reader.u64();
  root_.rows = reader.u16();
  if (width_ == 0 || !std::has_single_bit(width_) || !std::has_single_bit(first_row_bytes_) ||
      !std::has_single_bit(most_direct_bytes) || most_direct_bytes < first_row_bytes_ || heap_bits > 64 ||
      most_direct_bytes > Hdf5Source::kMaxReadBytes || most_object_bytes > most_direct_bytes)
    return damaged();
  direct_rows_ = log2_of(most_direct_bytes) - log2_of(first_row_bytes_) + 2;
  offset_bytes_ = (heap_bits + 7) / 8;
  length_bytes_ =
      std::min((log2_of(most_direct_bytes) + 7) / 8, (uint64_t(std::bit_width(most_object_bytes)) + 7) / 8);
  return success();
}

// The blocks of the first two rows have the same size; from there on, each row has blocks twice as large.
uint64_t Hdf5Heap::row_bytes(uint64_t row) const {
  return row < 2 ? first_row_bytes_ : first_row_bytes_ << (row - 1);
}

// The bytes of an indirect block. All objects of the heap are found through the same few, so the last one of
// each depth stays in memory.
Result<std::span<const std::byte>> Hdf5Heap::indirect_block(size_t depth, uint64_t address, uint64_t length) {
  if (blocks_.size() <= depth) blocks_.resize(depth + 1);
  LoadedBlock& loaded = blocks_[depth];
  if (loaded.address != address || loaded.bytes.empty()) {
    loaded.bytes.clear();
    PENSTOCK_ASSIGN(const auto bytes, source_.read_checked_bytes(address, length, "FHIB"));
    loaded = {address, {bytes.begin(), bytes.end()}};
  }
  if (loaded.bytes.size() + 4 != length) return damaged();
  return std::span<const std::byte>(loaded.bytes);
}

// Goes from the root block down to the direct block that has the offset.
Result<Hdf5Heap::Block> Hdf5Heap::direct_block(uint64_t offset) {
  constexpr uint64_t kMostRows = 48;
  Block block = root_;
  size_t depth = 0;
  while (block.rows != 0) {
    if (block.rows > kMostRows) return damaged();
    uint64_t row_offset = block.offset;
    uint64_t row = 0;
    for (; row < block.rows && offset - row_offset >= width_ * row_bytes(row); ++row)
      row_offset += width_ * row_bytes(row);
    if (row == block.rows) return damaged();
    const uint64_t column = (offset - row_offset) / row_bytes(row);
    // All entries of a block are addresses, those of direct blocks first.
    const uint64_t header_bytes = 4 + 1 + 8 + offset_bytes_;
    const uint64_t entry = row * width_ + column;
    const uint64_t block_bytes = header_bytes + block.rows * width_ * 8 + 4;
    PENSTOCK_ASSIGN(const auto bytes, indirect_block(depth++, block.address, block_bytes));
    const bool is_direct = row < direct_rows_;
    const uint64_t first_rows = log2_of(first_row_bytes_) + log2_of(width_);
    const uint64_t child_bits = log2_of(row_bytes(row));
    if (!is_direct && child_bits < first_rows) return damaged();
    block = {number_at(bytes, size_t(header_bytes + entry * 8), 8), row_offset + column * row_bytes(row),
             is_direct ? 0 : child_bits - first_rows + 1};
    if (block.address == kHdf5NoAddress) return damaged();
  }
  return block;
}

Result<std::vector<std::byte>> Hdf5Heap::object(std::span<const std::byte> identifier) {
  HeaderReader reader(identifier);
  const uint64_t flags = reader.u8();
  const uint64_t type = flags >> 4U & 3U;
  constexpr uint64_t kManaged = 0;
  constexpr uint64_t kTiny = 2;
  if (type == kTiny) {  // the object is in the identifier
    const auto bytes = reader.bytes((flags & 15U) + 1);
    if (!reader.ok()) return damaged();
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  if (type != kManaged) return source_.error(Errc::unsupported, address_, "an object too large for its heap");
  const uint64_t offset = reader.number(size_t(offset_bytes_));
  const uint64_t length = reader.number(size_t(length_bytes_));
  if (!reader.ok()) return damaged();
  PENSTOCK_ASSIGN(const Block block, direct_block(offset));
  PENSTOCK_ASSIGN(const auto bytes, source_.read_bytes(block.address + (offset - block.offset), length));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace penstock
