#include "datagen/format/hdf5/hdf5_chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/format.hpp"

namespace penstock {
namespace {

constexpr uint64_t kAddressBytes = 8;
constexpr uint64_t kMaskBytes = 4;
// Signature, version, kind of entries, and the address of the header: how every block of an array begins.
constexpr uint64_t kBlockHeaderBytes = 4 + 1 + 1 + kAddressBytes;

uint64_t parts(uint64_t whole, uint64_t part) {
  return whole / part + (whole % part != 0 ? 1 : 0);
}

// The bits of a bitmap begin with the highest of its first byte.
bool bit_at(std::span<const std::byte> bitmap, uint64_t bit) {
  return (std::to_integer<unsigned>(bitmap[size_t(bit / 8)]) & 0x80U >> (bit % 8)) != 0;
}

class ChunkFinder {
 public:
  ChunkFinder(Hdf5Source& source, const Hdf5Object& dataset, std::string_view name)
      : source_(source), dataset_(dataset), name_(name), is_filtered_(!dataset.filters.empty()) {}

  Result<Hdf5Chunks> find() {
    PENSTOCK_TRY(compute_sizes());
    if (count_ == 0) return std::move(found_);
    if (dataset_.address == kHdf5NoAddress) return never_written();
    PENSTOCK_TRY(read_index());
    PENSTOCK_TRY(sort());
    return std::move(found_);
  }

 private:
  struct Numbered {
    uint64_t number;  // in row-major order
    ChunkedArray::Chunk chunk;
  };

  Error error(Errc code, std::string_view what) const {
    return source_.error(code, dataset_.address == kHdf5NoAddress ? 0 : dataset_.address,
                         fmt::format("'{}': {}", name_, what));
  }
  Error corrupt(std::string_view what) const { return error(Errc::corrupt, what); }
  Error never_written() const {
    return error(Errc::unsupported, "all or nearly all of its chunks were never written");
  }

  // Computes the bytes of a chunk and the grid.
  Result<void> compute_sizes() {
    const auto& shape = dataset_.shape;
    const auto& chunk = dataset_.chunk_shape;
    if (chunk.size() != shape.size() || shape.empty() ||
        std::find(chunk.begin(), chunk.end(), 0U) != chunk.end())
      return corrupt("its chunks have other dimensions than it has");
    for (size_t d = 0; d < shape.size(); ++d)
      if (most_shape()[d] < shape[d]) return corrupt("it is larger than its maximum size");
    uint64_t chunk_bytes = dataset_.item_bytes;
    count_ = 1;
    bool is_too_large = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      found_.grid.push_back(parts(shape[d], chunk[d]));
      is_too_large = is_too_large || __builtin_mul_overflow(chunk_bytes, chunk[d], &chunk_bytes) ||
                     __builtin_mul_overflow(count_, found_.grid.back(), &count_);
    }
    uint64_t all_bytes = 0;
    if (is_too_large || chunk_bytes == 0 || __builtin_mul_overflow(count_, chunk_bytes, &all_bytes))
      return corrupt("its chunks have more bytes than 64 bits can count");
    if (count_ > kMostSamplesPerObject)
      return error(Errc::unsupported,
                   fmt::format("it claims {} chunks, and the limit is {}", count_, kMostSamplesPerObject));
    found_.chunk_bytes = chunk_bytes;
    return success();
  }

  Result<void> read_index() {
    switch (dataset_.storage) {
      case Hdf5Storage::tree:
        return read_tree();
      case Hdf5Storage::second_tree:
        return read_second_tree();
      case Hdf5Storage::fixed_array:
        return read_fixed_array();
      case Hdf5Storage::extensible_array:
        return read_extensible_array();
      case Hdf5Storage::single_chunk:
        if (count_ != 1) return corrupt("its one chunk is too small");
        return add(0, dataset_.address, is_filtered_ ? dataset_.stored_bytes : found_.chunk_bytes,
                   dataset_.not_applied);
      case Hdf5Storage::implicit:
        return read_implicit();
      case Hdf5Storage::contiguous:
        break;
    }
    return corrupt("an unknown index type");
  }

  // The shape that the dataset may grow to.
  const std::vector<uint64_t>& most_shape() const {
    return dataset_.max_shape.empty() ? dataset_.shape : dataset_.max_shape;
  }

  // Chunks that follow one another, without an index. There is room for each chunk that the dataset can ever
  // have, in row-major order.
  Result<void> read_implicit() {
    if (is_filtered_) return corrupt("filtered chunks without an index");
    const std::vector<uint64_t>& most = most_shape();
    std::vector<uint64_t> steps(most.size());  // bytes between chunks that are neighbours in a dimension
    uint64_t step = found_.chunk_bytes;
    uint64_t last = dataset_.address;  // address of the last chunk
    bool is_too_large = false;
    for (size_t d = most.size(); d-- > 0;) {
      steps[d] = step;
      uint64_t distance = 0;
      is_too_large = is_too_large || __builtin_mul_overflow(found_.grid[d] - 1, step, &distance) ||
                     __builtin_add_overflow(last, distance, &last) ||
                     (d > 0 && __builtin_mul_overflow(step, parts(most[d], dataset_.chunk_shape[d]), &step));
    }
    if (is_too_large) return corrupt("its chunks have more bytes than 64 bits can count");
    for (uint64_t i = 0; i < count_; ++i) {
      uint64_t rest = i;
      uint64_t address = dataset_.address;
      for (size_t d = most.size(); d-- > 0; rest /= found_.grid[d])
        address += rest % found_.grid[d] * steps[d];
      PENSTOCK_TRY(add(i, address, found_.chunk_bytes, 0));
    }
    return success();
  }

  // Adds a chunk. The memory is not reserved in advance, because the shape of a damaged file may claim many
  // more chunks than the index has.
  Result<void> add(uint64_t number, uint64_t address, uint64_t bytes, uint32_t not_applied) {
    if (address == kHdf5NoAddress) return success();
    if (!is_filtered_ && bytes != found_.chunk_bytes)
      return corrupt(fmt::format("a chunk of {} bytes, not {}", bytes, found_.chunk_bytes));
    if (dataset_.edge_chunks_are_plain && is_at_edge(number)) {
      bytes = found_.chunk_bytes;
      not_applied = ~0U;
    }
    // A chunk without bytes would be taken for one that was never written.
    if (bytes == 0) return corrupt(fmt::format("chunk {} has no bytes", number));
    PENSTOCK_ASSIGN(const uint64_t offset, source_.file_offset(address, bytes));
    if (numbered_.size() == count_)
      return corrupt(fmt::format("its index has more chunks than its {}", count_));
    are_in_order_ = are_in_order_ && number == numbered_.size();
    numbered_.push_back({number, ChunkedArray::Chunk::make(offset, bytes, not_applied)});
    return success();
  }

  bool is_at_edge(uint64_t number) const {
    for (size_t d = found_.grid.size(); d-- > 0;) {
      const uint64_t at = number % found_.grid[d];
      number /= found_.grid[d];
      if ((at + 1) * dataset_.chunk_shape[d] > dataset_.shape[d]) return true;
    }
    return false;
  }

  Result<void> sort() {
    // A list of all chunks may take much more memory than the index has.
    constexpr uint64_t kMostMissingPerChunk = 64;
    if (numbered_.empty() || count_ / kMostMissingPerChunk > numbered_.size()) return never_written();
    if (!are_in_order_)
      std::sort(numbered_.begin(), numbered_.end(),
                [](const Numbered& a, const Numbered& b) { return a.number < b.number; });
    found_.are_all_written = numbered_.size() == count_;
    found_.chunks.resize(size_t(count_));
    for (size_t i = 0; i < numbered_.size(); ++i) {
      if (i > 0 && numbered_[i].number == numbered_[i - 1].number)
        return corrupt(fmt::format("its index has chunk {} twice", numbered_[i].number));
      found_.chunks[size_t(numbered_[i].number)] = numbered_[i].chunk;
    }
    return success();
  }

  // The number of the chunk at a place of the grid; nothing if it is outside.
  std::optional<uint64_t> number_of(std::span<const uint64_t> place) const {
    uint64_t number = 0;
    for (size_t d = 0; d < place.size(); ++d) {
      if (place[d] >= found_.grid[d]) return std::nullopt;
      number = number * found_.grid[d] + place[d];
    }
    return number;
  }

  // A version 1 B-tree. Its keys have the stored bytes, the mask of filters and the first element.
  Result<void> read_tree() {
    const size_t dimensions = dataset_.shape.size();
    const uint64_t key_bytes = 8 + 8 * (dimensions + 1);
    return source_.walk_tree(
        dataset_.address, 1, key_bytes, "a tree of chunks",
        [&](uint64_t at, std::span<const std::byte> entry, uint64_t address) -> Result<void> {
          std::vector<uint64_t> place;
          for (size_t d = 0; d < dimensions; ++d) {
            const uint64_t first = number_at(entry, 8 + 8 * d, 8);
            if (first % dataset_.chunk_shape[d] != 0)
              return source_.corrupt(at, fmt::format("a chunk of '{}' from element {} on", name_, first));
            place.push_back(first / dataset_.chunk_shape[d]);
          }
          const std::optional<uint64_t> number = number_of(place);
          if (!number) return source_.corrupt(at, fmt::format("a chunk outside of '{}'", name_));
          return add(*number, address, number_at(entry, 0, 4), uint32_t(number_at(entry, 4, 4)));
        });
  }

  // A version 2 B-tree. Its records have the address, for filtered chunks the stored bytes and the mask, and
  // the place in the grid.
  Result<void> read_second_tree() {
    const size_t dimensions = dataset_.shape.size();
    const uint64_t kind = is_filtered_ ? 11 : 10;
    return source_.walk_second_tree(
        dataset_.address, kind, "chunks", [&](std::span<const std::byte> record) -> Result<void> {
          const uint64_t place_bytes = 8 * dimensions;
          if (record.size() < kAddressBytes + place_bytes) return corrupt("an index of short records");
          std::vector<uint64_t> place;
          HeaderReader reader(record.last(size_t(place_bytes)));
          for (size_t d = 0; d < dimensions; ++d) place.push_back(reader.u64());
          const std::optional<uint64_t> number = number_of(place);
          if (!number) return corrupt("a chunk outside of it");
          return add_entry(*number, record.first(record.size() - size_t(place_bytes)));
        });
  }

  // Adds the chunk of an entry of any index but the version 1 B-tree: its address and, if chunks are
  // filtered, the stored bytes and the mask.
  Result<void> add_entry(uint64_t number, std::span<const std::byte> entry) {
    HeaderReader reader(entry);
    const uint64_t address = reader.u64();
    if (!is_filtered_) return add(number, address, found_.chunk_bytes, 0);
    const uint64_t bytes = reader.number(entry.size() - size_t(kAddressBytes + kMaskBytes));
    return add(number, address, bytes, uint32_t(reader.u32()));
  }

  // ---- Arrays ----

  // How the elements of a fixed or extensible array are stored, and to which chunk each belongs. Arrays have
  // an element for each chunk that the dataset can ever have, in row-major order; but in an extensible array
  // the unlimited dimension comes first.
  Result<void> begin_array(uint64_t kind, uint64_t entry_bytes, uint64_t page_bits) {
    const uint64_t most_bytes = kAddressBytes + (is_filtered_ ? 8 + kMaskBytes : 0);
    const uint64_t least_bytes = kAddressBytes + (is_filtered_ ? 1 + kMaskBytes : 0);
    if (kind != (is_filtered_ ? 1U : 0U) || entry_bytes < least_bytes || entry_bytes > most_bytes ||
        page_bits >= 32)
      return corrupt("a list of chunks that does not fit its dataset");
    entry_bytes_ = entry_bytes;
    page_elements_ = uint64_t{1} << page_bits;
    const std::vector<uint64_t>& most = most_shape();
    for (size_t d = 0; d < most.size(); ++d) {
      const bool is_unlimited = most[d] == UINT64_MAX;
      if (is_unlimited && dataset_.storage == Hdf5Storage::fixed_array)
        return corrupt("a list of chunks that does not fit its dataset");
      const auto where = is_unlimited ? index_order_.begin() : index_order_.end();
      index_order_.insert(where, d);
      most_grid_.push_back(is_unlimited ? UINT64_MAX
                                        : std::max<uint64_t>(1, parts(most[d], dataset_.chunk_shape[d])));
    }
    return success();
  }

  Result<void> add_elements(uint64_t first, std::span<const std::byte> entries) {
    for (uint64_t i = 0; (i + 1) * entry_bytes_ <= entries.size(); ++i) {
      const auto entry = entries.subspan(size_t(i * entry_bytes_), size_t(entry_bytes_));
      if (number_at(entry, 0, kAddressBytes) == kHdf5NoAddress) continue;
      uint64_t rest = first + i;
      std::vector<uint64_t> place(most_grid_.size());
      for (size_t d = index_order_.size(); d-- > 1;) {
        place[index_order_[d]] = rest % most_grid_[index_order_[d]];
        rest /= most_grid_[index_order_[d]];
      }
      place[index_order_.front()] = rest;
      // Chunks outside of the dataset remain where it was made smaller.
      if (const std::optional<uint64_t> number = number_of(place)) PENSTOCK_TRY(add_entry(*number, entry));
    }
    return success();
  }

  // Elements that are stored in pages, each with a checksum. The bitmap says which pages were written; the
  // bit of the first one is `first_bit`.
  Result<void> add_pages(uint64_t first, uint64_t elements, uint64_t address,
                         std::span<const std::byte> bitmap, uint64_t first_bit) {
    for (uint64_t page = 0; page * page_elements_ < elements; ++page) {
      const uint64_t count = std::min(page_elements_, elements - page * page_elements_);
      const uint64_t at = address + page * (page_elements_ * entry_bytes_ + kHdf5ChecksumBytes);
      if (!bit_at(bitmap, first_bit + page)) continue;
      PENSTOCK_ASSIGN(const auto entries,
                      source_.read_checked_bytes(at, count * entry_bytes_ + kHdf5ChecksumBytes, ""));
      PENSTOCK_TRY(add_elements(first + page * page_elements_, entries));
    }
    return success();
  }

  Result<void> read_fixed_array() {
    constexpr uint64_t kHeadBytes = 28;
    PENSTOCK_ASSIGN(const auto head, source_.read_checked_bytes(dataset_.address, kHeadBytes, "FAHD"));
    HeaderReader reader(head);
    const uint64_t kind = reader.skip(5).u8();
    const uint64_t entry_bytes = reader.u8();
    const uint64_t page_bits = reader.u8();
    const uint64_t elements = reader.u64();
    const uint64_t block = reader.u64();
    PENSTOCK_TRY(begin_array(kind, entry_bytes, page_bits));
    if (block == kHdf5NoAddress) return success();
    if (elements / 8 > source_.size()) return corrupt("a list of more chunks than there are");
    const bool has_pages = elements > page_elements_;
    const uint64_t pages = has_pages ? parts(elements, page_elements_) : 0;
    const uint64_t content_bytes = has_pages ? parts(pages, 8) : elements * entry_bytes_;
    const uint64_t block_bytes = kBlockHeaderBytes + content_bytes + kHdf5ChecksumBytes;
    PENSTOCK_ASSIGN(const auto bytes, source_.read_checked_bytes(block, block_bytes, "FADB"));
    const std::vector<std::byte> content(bytes.begin() + kBlockHeaderBytes, bytes.end());
    if (!has_pages) return add_elements(0, content);
    return add_pages(0, elements, block + block_bytes, content, 0);
  }

  // An extensible array. Its index block has the first elements, the addresses of the first data blocks and
  // those of super blocks, which have the addresses of the other data blocks. From one super block to the
  // next, either the data blocks become twice as many, or they become twice as long.
  Result<void> read_extensible_array() {
    constexpr uint64_t kHeadBytes = 72;
    PENSTOCK_ASSIGN(const auto head, source_.read_checked_bytes(dataset_.address, kHeadBytes, "EAHD"));
    HeaderReader reader(head);
    const uint64_t kind = reader.skip(5).u8();
    const uint64_t entry_bytes = reader.u8();
    const uint64_t most_bits = reader.u8();
    const uint64_t index_elements = reader.u8();
    const uint64_t least_elements = reader.u8();
    const uint64_t least_pointers = reader.u8();
    const uint64_t page_bits = reader.u8();
    const uint64_t index_block = reader.skip(6 * 8).u64();
    PENSTOCK_TRY(begin_array(kind, entry_bytes, page_bits));
    if (!std::has_single_bit(least_elements) || !std::has_single_bit(least_pointers) || most_bits > 64 ||
        most_bits < uint64_t(std::countr_zero(least_elements)))
      return corrupt("a list of chunks that does not fit its dataset");
    if (index_block == kHdf5NoAddress) return success();
    const uint64_t super_blocks = 1 + most_bits - uint64_t(std::countr_zero(least_elements));
    // The data blocks of the first super blocks have their addresses in the index block.
    const uint64_t without_block = std::min(super_blocks, 2 * uint64_t(std::countr_zero(least_pointers)));
    const uint64_t data_addresses = 2 * (least_pointers - 1);
    const uint64_t block_bytes = kBlockHeaderBytes + index_elements * entry_bytes_ +
                                 (data_addresses + super_blocks - without_block) * kAddressBytes +
                                 kHdf5ChecksumBytes;
    PENSTOCK_ASSIGN(const auto bytes, source_.read_checked_bytes(index_block, block_bytes, "EAIB"));
    const std::vector<std::byte> content(bytes.begin() + kBlockHeaderBytes, bytes.end());
    const uint64_t elements_bytes = index_elements * entry_bytes_;
    PENSTOCK_TRY(add_elements(0, std::span(content).first(size_t(elements_bytes))));
    HeaderReader addresses{std::span(content).subspan(size_t(elements_bytes))};
    offset_bytes_ = parts(most_bits, 8);
    uint64_t first = index_elements;
    for (uint64_t s = 0; s < super_blocks && s < 2 * 60; ++s) {
      const uint64_t blocks = uint64_t{1} << (s / 2);
      const uint64_t elements = (uint64_t{1} << ((s + 1) / 2)) * least_elements;
      if (s < without_block) {
        for (uint64_t i = 0; i < blocks; ++i, first += elements)
          PENSTOCK_TRY(read_data_block(first, elements, addresses.u64(), {}, 0));
        continue;
      }
      const uint64_t address = addresses.u64();
      if (address != kHdf5NoAddress) PENSTOCK_TRY(read_super_block(first, blocks, elements, address));
      first += blocks * elements;
    }
    return success();
  }

  Result<void> read_super_block(uint64_t first, uint64_t blocks, uint64_t elements, uint64_t address) {
    // The file has whole bytes for the bits of each data block, but the bits of all blocks follow one another
    // without gaps.
    const uint64_t pages = elements > page_elements_ ? elements / page_elements_ : 0;
    const uint64_t bitmap_bytes = parts(pages, 8);
    const uint64_t header_bytes = kBlockHeaderBytes + offset_bytes_;
    if (blocks > source_.size()) return corrupt("a list of more chunks than there are");
    PENSTOCK_ASSIGN(
        const auto bytes,
        source_.read_checked_bytes(
            address, header_bytes + blocks * (bitmap_bytes + kAddressBytes) + kHdf5ChecksumBytes, "EASB"));
    const std::vector<std::byte> content(bytes.begin() + ptrdiff_t(header_bytes), bytes.end());
    const auto bitmap = std::span(content).first(size_t(blocks * bitmap_bytes));
    HeaderReader addresses{std::span(content).subspan(bitmap.size())};
    for (uint64_t i = 0; i < blocks; ++i)
      PENSTOCK_TRY(read_data_block(first + i * elements, elements, addresses.u64(), bitmap, i * pages));
    return success();
  }

  Result<void> read_data_block(uint64_t first, uint64_t elements, uint64_t address,
                               std::span<const std::byte> bitmap, uint64_t first_bit) {
    if (address == kHdf5NoAddress) return success();
    const uint64_t header_bytes = kBlockHeaderBytes + offset_bytes_;
    if (elements <= page_elements_) {
      PENSTOCK_ASSIGN(const auto bytes,
                      source_.read_checked_bytes(
                          address, header_bytes + elements * entry_bytes_ + kHdf5ChecksumBytes, "EADB"));
      const std::vector<std::byte> entries(bytes.begin() + ptrdiff_t(header_bytes), bytes.end());
      return add_elements(first, entries);
    }
    if (bitmap.empty()) return corrupt("pages of a list of chunks without a bitmap");
    PENSTOCK_TRY(source_.read_checked_bytes(address, header_bytes + kHdf5ChecksumBytes, "EADB"));
    return add_pages(first, elements, address + header_bytes + kHdf5ChecksumBytes, bitmap, first_bit);
  }

  Hdf5Source& source_;
  const Hdf5Object& dataset_;
  const std::string_view name_;
  const bool is_filtered_;
  Hdf5Chunks found_;
  uint64_t count_ = 0;
  std::vector<Numbered> numbered_;  // in the order of the index
  bool are_in_order_ = true;
  // of a fixed or extensible array
  uint64_t entry_bytes_ = 0;
  uint64_t page_elements_ = 0;
  uint64_t offset_bytes_ = 0;        // bytes of a field that every block but the index block has
  std::vector<size_t> index_order_;  // the dimensions in the order of the elements
  std::vector<uint64_t> most_grid_;  // the most chunks along each dimension; UINT64_MAX: unlimited
};

}  // namespace

Result<Hdf5Chunks> find_hdf5_chunks(Hdf5Source& source, const Hdf5Object& dataset, std::string_view name) {
  return ChunkFinder(source, dataset, name).find();
}

}  // namespace penstock
