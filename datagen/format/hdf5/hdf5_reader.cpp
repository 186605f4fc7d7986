#include "datagen/format/hdf5/hdf5_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "datagen/codec/library_filters.hpp"
#include "datagen/format/byte_order.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/hdf5/hdf5_chunks.hpp"

namespace penstock {
namespace {

constexpr std::string_view kFileSignature = "\x89HDF\r\n\x1a\n";
constexpr size_t kMostObjects = 65536;
constexpr size_t kMostPathBytes = 1024;

}  // namespace

// Finds the superblock and returns the address of the root group. The superblock is at offset 0 or, if a user
// block comes before it, at 512, 1024, 2048 and so on.
Result<uint64_t> Hdf5Reader::find_root() {
  for (uint64_t at = 0; at + kFileSignature.size() <= source_.size(); at = at == 0 ? 512 : 2 * at) {
    PENSTOCK_ASSIGN(const auto bytes, source_.read_bytes(at, kFileSignature.size()));
    if (as_text(bytes) == kFileSignature) return read_superblock(at);
  }
  return source_.corrupt(0, "no HDF5 superblock: this is not an HDF5 file, or its start is damaged");
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
  Hdf5NamedTypes types;
  while (!links_to_visit.empty()) {
    const Hdf5Link found = std::move(links_to_visit.back());
    links_to_visit.pop_back();
    PENSTOCK_ASSIGN(Hdf5Object object, read_hdf5_object(source_, found.address, types));
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
    if (object.has_shape) {
      const std::string reason = fmt::format("of an unsupported type ({})", object.type_name);
      unread_.add(
          found.name, reason,
          source_.error(Errc::unsupported, found.address, fmt::format("'{}' is {}", found.name, reason)));
    } else if (const std::string& reason = object.unreadable_reason; !reason.empty()) {
      unread_.add(
          found.name, reason,
          source_.error(Errc::unsupported, found.address, fmt::format("'{}': {}", found.name, reason)));
    }
    return success();
  }
  const auto& shape = object.shape;
  uint64_t bytes = std::find(shape.begin(), shape.end(), 0U) != shape.end() ? 0 : object.item_bytes;
  for (const uint64_t side : shape)
    if (bytes != 0 && __builtin_mul_overflow(bytes, side, &bytes))
      return source_.corrupt(found.address,
                             fmt::format("'{}' has more bytes than 64 bits can count", found.name));
  arrays_.push_back({.name = found.name,
                     .shape = shape,
                     .bytes = bytes,
                     .is_integer = !object.is_float,
                     .item_bytes = object.item_bytes});
  objects_.push_back(std::move(object));
  header_addresses_.push_back(found.address);
  return success();
}

Error Hdf5Reader::error_of(size_t array, Errc code, std::string_view why) const {
  return source_.error(code, header_addresses_[array], fmt::format("'{}': {}", arrays_[array].name, why));
}

Result<void> Hdf5Reader::locate_chunks(size_t array, bool by_rows, ArrayExtent& extent) {
  const Hdf5Object& object = objects_[array];
  const StoredArray& stored = arrays_[array];
  if (object.filters.size() > ChunkFilter::kMostFilters)
    return error_of(array, Errc::unsupported, fmt::format("it has {} filters", object.filters.size()));
  // The library undoes the last filter that needs it and all before.
  bool by_library = false;
  for (size_t i = object.filters.size(); i-- > 0;) {
    const ChunkFilter& filter = object.filters[i];
    const std::string name = chunk_filter_name(filter.number);
    if (filter.parameters.size() > ChunkFilter::kMostParameters)
      return error_of(array, Errc::unsupported,
                      fmt::format("its filter {} has {} parameters", name, filter.parameters.size()));
    by_library = by_library || filter.needs_library();
    if (!by_library) continue;
    if (const auto found = LibraryFilters::find(filter.number); !found.ok())
      return error_of(array, found.error().code,
                      fmt::format("its chunks are filtered ({}), and {}", name, found.error().what));
  }
  PENSTOCK_ASSIGN(Hdf5Chunks found, find_hdf5_chunks(source_, object, stored.name));
  if (!found.are_all_written && object.is_fill_value_shared)
    return error_of(
        array, Errc::unsupported,
        "not all of it was written, and its fill value is a shared message, which is not supported");
  if (!found.are_all_written && !object.fill_value.empty() && object.fill_value.size() != object.item_bytes)
    return error_of(array, Errc::corrupt, "its fill value has another size than its elements");
  extent.rows_per_chunk = object.chunk_shape.front();
  extent.offset = found.chunks.front().offset;
  const bool has_whole_rows =
      object.filters.empty() && found.are_all_written &&
      std::equal(stored.shape.begin() + 1, stored.shape.end(), object.chunk_shape.begin() + 1);
  bool are_adjacent = has_whole_rows;
  for (size_t i = 0; i < found.chunks.size() && are_adjacent; ++i)
    are_adjacent = found.chunks[i].offset == extent.offset + i * found.chunk_bytes;
  if (are_adjacent) return success();  // the offset is enough
  if (has_whole_rows && by_rows) {
    for (const ChunkedArray::Chunk& chunk : found.chunks) extent.chunks.push_back(chunk.offset);
    return success();
  }
  auto unpacked = ChunkWindow::make(window_,
                                    {.item_bytes = object.item_bytes,
                                     .shape = stored.shape,
                                     .chunk_shape = object.chunk_shape,
                                     .filters = object.filters,
                                     .fill_value = from_little_endian(object.fill_value)},
                                    std::move(found.chunks));
  if (!unpacked.ok()) return error_of(array, unpacked.error().code, unpacked.error().what);
  extent.unpacked = *std::move(unpacked);
  extent.offset = 0;
  return success();
}

Result<ArrayExtent> Hdf5Reader::locate(size_t array, bool by_rows) {
  const Hdf5Object& object = objects_[array];
  const StoredArray& stored = arrays_[array];
  ArrayExtent extent{
      .item_bytes = object.item_bytes, .is_signed = object.is_signed, .big_endian = object.big_endian};
  if (!object.unreadable_reason.empty()) return error_of(array, Errc::unsupported, object.unreadable_reason);
  if (object.storage != Hdf5Storage::contiguous) {
    if (stored.bytes > 0) PENSTOCK_TRY(locate_chunks(array, by_rows, extent));
    return extent;
  }
  if (object.address == kHdf5NoAddress && stored.bytes == 0) return extent;
  if (object.address == kHdf5NoAddress)
    return error_of(array, Errc::unsupported, "it was never written: the file contains no bytes of it");
  if (stored.bytes > object.stored_bytes)
    return error_of(array, Errc::corrupt,
                    fmt::format("it needs {} bytes and has {}", stored.bytes, object.stored_bytes));
  PENSTOCK_ASSIGN(extent.offset, source_.file_offset(object.address, stored.bytes));
  return extent;
}

}  // namespace penstock
