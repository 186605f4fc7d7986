#include "datagen/format/hdf5_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/format.hpp"

namespace penstock {
namespace {

constexpr std::string_view kFileSignature = "\x89HDF\r\n\x1a\n";
constexpr size_t kMostObjects = 65536;
constexpr size_t kMostPathBytes = 1024;

// Finds the chunks of an array, and checks that all bytes of each chunk are in the file. Sets
// extent.rows_per_chunk and extent.chunks, in the order of the rows. `unsupported` if a chunk contains only
// parts of rows, or if some chunks were never written. The same if the chunk index is divided into pages, or
// if there are more than kMostSamplesPerObject chunks. `corrupt` if the chunk index is damaged. `truncated`
// if a chunk is not completely in the file.
class ChunkFinder {
 public:
  ChunkFinder(Hdf5Source& source, const Hdf5Object& dataset, const StoredArray& array, ArrayExtent& extent)
      : source_(source), dataset_(dataset), array_(array), extent_(extent) {}

  Result<void> find() {
    PENSTOCK_TRY(compute_sizes());
    if (dataset_.address == kHdf5NoAddress) return not_written_error();
    switch (dataset_.storage) {
      case Hdf5Storage::chunk_tree:
        PENSTOCK_TRY(read_tree());
        break;
      case Hdf5Storage::chunk_list:
        PENSTOCK_TRY(read_fixed_array());
        break;
      case Hdf5Storage::one_chunk:
      case Hdf5Storage::adjacent_chunks:
      case Hdf5Storage::contiguous:
        PENSTOCK_TRY(source_.file_offset(dataset_.address, chunk_count_ * chunk_bytes_));
        for (uint64_t i = 0; i < chunk_count_; ++i)
          PENSTOCK_TRY(add_chunk(i, dataset_.address + i * chunk_bytes_));
        break;
    }
    return check_and_sort();
  }

 private:
  Error error(Errc code, std::string_view what) const {
    return source_.error(code, dataset_.address == kHdf5NoAddress ? 0 : dataset_.address,
                         fmt::format("'{}': {}", array_.name, what));
  }
  Error not_written_error() const {
    return error(Errc::unsupported, "some of its chunks were never written, so its samples have no place");
  }

  // Computes chunk_bytes_, chunk_count_ and rows_per_chunk from the shape of the array and that of a chunk.
  // Fails if a chunk does not consist of whole rows. Also fails if the array is larger than the file: its
  // shape is then wrong, or parts of it were never written.
  Result<void> compute_sizes() {
    const auto& shape = dataset_.shape;
    const auto& chunk = dataset_.chunk_shape;
    if (chunk.size() != shape.size() || shape.empty() || chunk[0] == 0)
      return error(Errc::corrupt, "its chunks have other dimensions than it has");
    if (!std::equal(shape.begin() + 1, shape.end(), chunk.begin() + 1))
      return error(Errc::unsupported, "its chunks cut its rows, so the bytes of a sample are not contiguous");
    if (array_.bytes > source_.size()) return not_written_error();
    const uint64_t row_bytes = array_.bytes / std::max<uint64_t>(1, shape[0]);
    if (__builtin_mul_overflow(chunk[0], row_bytes, &chunk_bytes_) || row_bytes == 0)
      return error(Errc::corrupt, "chunks of more bytes than there are");
    extent_.rows_per_chunk = chunk[0];
    chunk_count_ = (shape[0] - 1) / chunk[0] + 1;
    if (dataset_.storage == Hdf5Storage::one_chunk && chunk_count_ != 1)
      return error(Errc::corrupt, "its one chunk is too small");
    uint64_t all_bytes = 0;
    if (__builtin_mul_overflow(chunk_count_, chunk_bytes_, &all_bytes))
      return error(Errc::corrupt, "chunks of more bytes than there are");
    if (chunk_count_ > kMostSamplesPerObject)
      return error(Errc::unsupported, fmt::format("it claims {} chunks, and no more than {} are read",
                                                  chunk_count_, kMostSamplesPerObject));
    return success();
  }

  // Adds a chunk to found_chunks_, which grows with each call. Its memory is not reserved in advance, because
  // the shape of a damaged file may claim many more chunks than the index has.
  Result<void> add_chunk(uint64_t chunk, uint64_t address) {
    if (address == kHdf5NoAddress) return success();
    PENSTOCK_ASSIGN(const uint64_t offset, source_.file_offset(address, chunk_bytes_));
    if (found_chunks_.size() == chunk_count_)
      return error(Errc::corrupt, fmt::format("its index has more chunks than its {}", chunk_count_));
    are_in_order_ = are_in_order_ && chunk == found_chunks_.size();
    found_chunks_.emplace_back(chunk, offset);
    return success();
  }

  Result<void> check_and_sort() {
    if (found_chunks_.size() < chunk_count_) return not_written_error();
    if (!are_in_order_) std::sort(found_chunks_.begin(), found_chunks_.end());
    extent_.chunks.reserve(found_chunks_.size());
    for (const auto& [chunk, offset] : found_chunks_) {
      if (chunk != extent_.chunks.size())
        return error(Errc::corrupt,
                     fmt::format("its index has a chunk twice, and lacks one ({})", extent_.chunks.size()));
      extent_.chunks.push_back(offset);
    }
    return success();
  }

  Result<void> read_tree() {
    const uint64_t key_bytes = 8 + 8 * (dataset_.shape.size() + 1);
    return source_.walk_tree(dataset_.address, 1, key_bytes, "a tree of chunks",
                             [this](uint64_t at, std::span<const std::byte> entry, uint64_t child) {
                               return add_tree_entry(at, entry, child);
                             });
  }

  Result<void> add_tree_entry(uint64_t at, std::span<const std::byte> entry, uint64_t address) {
    const uint64_t row = number_at(entry, 8, 8);
    const uint64_t chunk = row / extent_.rows_per_chunk;
    if (row % extent_.rows_per_chunk != 0 || chunk >= chunk_count_)
      return source_.corrupt(at, fmt::format("a chunk of '{}' from row {} on", array_.name, row));
    if (number_at(entry, 0, 4) != chunk_bytes_)
      return source_.corrupt(
          at, fmt::format("a chunk of {} bytes, not {}", number_at(entry, 0, 4), chunk_bytes_));
    return add_chunk(chunk, address);
  }

  // Reads a chunk index of the kind "fixed array". Fails if its entries are divided into pages.
  Result<void> read_fixed_array() {
    constexpr uint64_t kHeadBytes = 28;
    PENSTOCK_ASSIGN(const auto head, source_.read_checked_bytes(dataset_.address, kHeadBytes, "FAHD"));
    HeaderReader reader(head);
    const uint64_t client_id = reader.skip(5).u8();
    const uint64_t entry_bytes = reader.u8();
    const uint64_t page_bits = reader.u8();
    const uint64_t entry_count = reader.u64();
    const uint64_t block_address = reader.u64();
    if (client_id != 0 || entry_bytes != 8 || entry_count != chunk_count_)
      return source_.corrupt(dataset_.address, "a list of chunks that does not fit its dataset");
    if (page_bits >= 64 || entry_count > uint64_t{1} << page_bits)
      return error(Errc::unsupported,
                   fmt::format("the list of its {} chunks has pages, which are not read", entry_count));
    if (block_address == kHdf5NoAddress) return success();
    constexpr uint64_t kBlockHeaderBytes = 4 + 1 + 1 + 8;
    PENSTOCK_ASSIGN(const auto bytes, source_.read_checked_bytes(
                                          block_address, kBlockHeaderBytes + entry_count * 8 + 4, "FADB"));
    for (uint64_t i = 0; i < chunk_count_; ++i)
      PENSTOCK_TRY(add_chunk(i, number_at(bytes, size_t(kBlockHeaderBytes + i * 8), 8)));
    return success();
  }

  Hdf5Source& source_;
  const Hdf5Object& dataset_;
  const StoredArray& array_;
  ArrayExtent& extent_;
  uint64_t chunk_bytes_ = 0;
  uint64_t chunk_count_ = 0;
  // The number of each chunk and its offset in the file, in the order of the chunk index.
  std::vector<std::pair<uint64_t, uint64_t>> found_chunks_;
  bool are_in_order_ = true;
};

}  // namespace

// Finds the superblock and returns the address of the root group. The superblock is at offset 0 or, if a user
// block comes before it, at 512, 1024, 2048 and so on.
Result<uint64_t> Hdf5Reader::find_root() {
  for (uint64_t at = 0; at + kFileSignature.size() <= source_.size(); at = at == 0 ? 512 : 2 * at) {
    PENSTOCK_ASSIGN(const auto bytes, source_.read_bytes(at, kFileSignature.size()));
    if (as_text(bytes) == kFileSignature) return read_superblock(at);
  }
  return source_.corrupt(0, "no HDF5 superblock: this is no HDF5 file, or its beginning is damaged");
}

Result<uint64_t> Hdf5Reader::read_superblock(uint64_t base) {
  source_.set_base(base);
  PENSTOCK_ASSIGN(const auto head, source_.read_bytes(8, 8));
  const uint64_t version = number_at(head, 0, 1);
  if (version > 3)
    return source_.error(Errc::unsupported, 8, fmt::format("an HDF5 superblock of version {}", version));
  const bool is_version_2 = version >= 2;
  // File consistency flags: bit 0 is set while a program has the file open for writing, and bit 2 if it does
  // so for one writer and many readers.
  constexpr uint64_t kOpenForWriting = 0b101;
  if (version == 3 && (number_at(head, 3, 1) & kOpenForWriting) != 0)
    return source_.corrupt(11,
                           "the HDF5 file is open for writing, or its writer was killed: close it, or run "
                           "'h5clear -s' on it");
  const uint64_t field_sizes = is_version_2 ? number_at(head, 1, 2) : number_at(head, 5, 2);
  if (field_sizes != 0x0808)
    return source_.error(Errc::unsupported, 8, "an HDF5 file whose addresses or lengths do not have 8 bytes");
  uint64_t stored_base = 0;
  uint64_t end = 0;
  uint64_t root = 0;
  if (is_version_2) {
    PENSTOCK_ASSIGN(const auto block, source_.read_checked_bytes(0, 48, kFileSignature));
    HeaderReader reader(block.subspan(12));
    stored_base = reader.u64();
    end = reader.skip(8).u64();
    root = reader.u64();
  } else {
    const uint64_t addresses_offset = version == 0 ? 24 : 28;
    PENSTOCK_ASSIGN(const auto block, source_.read_bytes(addresses_offset, 48));
    HeaderReader reader(block);
    stored_base = reader.u64();
    end = reader.skip(8).u64();
    root = reader.skip(8 + 8).u64();
  }
  if (stored_base != base)
    return source_.corrupt(0, fmt::format("an HDF5 superblock whose base address is {}", stored_base));
  // `end` is compared without adding `base`. In files of older libraries, `end` is an offset from the
  // beginning of the object, not from the base address.
  if (end < base || end > source_.size())
    return source_.error(
        Errc::truncated, 0,
        fmt::format("the HDF5 file should end at byte {}, but the object does at {}", end, source_.size()));
  return root;
}

Result<void> Hdf5Reader::open() {
  PENSTOCK_ASSIGN(const uint64_t root, find_root());
  std::vector<Hdf5Link> links_to_visit{{{}, root}};
  std::unordered_set<uint64_t> seen_addresses{root};
  while (!links_to_visit.empty()) {
    const Hdf5Link found = std::move(links_to_visit.back());
    links_to_visit.pop_back();
    PENSTOCK_ASSIGN(Hdf5Object object, read_hdf5_object(source_, found.address));
    if (object.is_dataset) {
      PENSTOCK_TRY(add_dataset(found, std::move(object)));
      continue;
    }
    // Adds the links in reverse order: the loop takes the link that was added last, so it visits the links in
    // their order in the group. If several links of the group lead to one object, the object gets the name of
    // the last of them.
    for (auto link = object.links.rbegin(); link != object.links.rend(); ++link) {
      if (!seen_addresses.insert(link->address).second) continue;
      std::string path = found.name.empty() ? link->name : fmt::format("{}/{}", found.name, link->name);
      if (path.size() > kMostPathBytes || seen_addresses.size() > kMostObjects)
        return source_.error(Errc::unsupported, found.address,
                             fmt::format("more than {} objects, or names of more than {} bytes", kMostObjects,
                                         kMostPathBytes));
      links_to_visit.push_back({std::move(path), link->address});
    }
  }
  return success();
}

Result<void> Hdf5Reader::add_dataset(const Hdf5Link& found, Hdf5Object object) {
  if (!object.is_number) {
    const std::string reason = fmt::format("of a type that is not read ({})", object.type_name);
    if (object.has_shape)
      unread_.add(
          found.name, reason,
          source_.error(Errc::unsupported, found.address, fmt::format("'{}' is {}", found.name, reason)));
    return success();
  }
  const auto& shape = object.shape;
  uint64_t bytes = std::find(shape.begin(), shape.end(), 0U) != shape.end() ? 0 : object.item_bytes;
  for (const uint64_t side : shape)
    if (bytes != 0 && __builtin_mul_overflow(bytes, side, &bytes))
      return source_.corrupt(found.address, fmt::format("'{}' has more bytes than there are", found.name));
  arrays_.push_back({.name = found.name,
                     .shape = shape,
                     .bytes = bytes,
                     .is_integer = !object.is_float,
                     .item_bytes = object.item_bytes});
  objects_.push_back(std::move(object));
  header_addresses_.push_back(found.address);
  return success();
}

Result<ArrayExtent> Hdf5Reader::locate(size_t array) {
  const Hdf5Object& object = objects_[array];
  const StoredArray& stored = arrays_[array];
  ArrayExtent extent{
      .item_bytes = object.item_bytes, .is_signed = object.is_signed, .big_endian = object.big_endian};
  const auto error_of = [&](Errc code, std::string_view why) {
    return source_.error(code, header_addresses_[array], fmt::format("'{}': {}", stored.name, why));
  };
  if (!object.unreadable_reason.empty()) return error_of(Errc::unsupported, object.unreadable_reason);
  if (object.storage != Hdf5Storage::contiguous) {
    if (stored.bytes == 0) return extent;
    PENSTOCK_TRY(ChunkFinder(source_, object, stored, extent).find());
    const uint64_t chunk_bytes = extent.rows_per_chunk * (stored.bytes / stored.shape[0]);
    extent.offset = extent.chunks.front();
    for (size_t i = 1; i < extent.chunks.size(); ++i)
      if (extent.chunks[i] != extent.chunks[i - 1] + chunk_bytes) return extent;
    extent.chunks.clear();  // the chunks follow each other, so extent.offset is enough
    return extent;
  }
  if (object.address == kHdf5NoAddress && stored.bytes == 0) return extent;
  if (object.address == kHdf5NoAddress)
    return error_of(Errc::unsupported, "it was never written, so its samples have no place");
  if (stored.bytes > object.stored_bytes)
    return error_of(Errc::corrupt,
                    fmt::format("it needs {} bytes and has {}", stored.bytes, object.stored_bytes));
  PENSTOCK_ASSIGN(extent.offset, source_.file_offset(object.address, stored.bytes));
  return extent;
}

}  // namespace penstock
