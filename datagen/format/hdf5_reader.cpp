#include "datagen/format/hdf5_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/hdf5_chunks.hpp"

namespace penstock {
namespace {

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
constexpr std::size_t kMostObjects = 65536;
constexpr std::size_t kMostPath = 1024;

}  // namespace

// The superblock lies at 0 or, behind what others keep in front of it, at 512, 1024, 2048 ...
Result<std::uint64_t> Hdf5Reader::find_root() {
  for (std::uint64_t at = 0; at + kSignature.size() <= source_.size(); at = at == 0 ? 512 : 2 * at) {
    PENSTOCK_ASSIGN(const auto bytes, source_.look(at, kSignature.size()));
    if (as_text(bytes) == kSignature) return read_superblock(at);
  }
  return source_.corrupt(0, "no HDF5 superblock: this is no HDF5 file, or its beginning is damaged");
}

Result<std::uint64_t> Hdf5Reader::read_superblock(std::uint64_t base) {
  source_.set_base(base);
  PENSTOCK_ASSIGN(const auto head, source_.look(8, 8));
  const std::uint64_t version = number_at(head, 0, 1);
  if (version > 3)
    return source_.error(Errc::unsupported, 8, fmt::format("an HDF5 superblock of version {}", version));
  const bool modern = version >= 2;
  const std::uint64_t widths = modern ? number_at(head, 1, 2) : number_at(head, 5, 2);
  if (widths != 0x0808)
    return source_.error(Errc::unsupported, 8, "an HDF5 file whose addresses or lengths do not have 8 bytes");
  std::uint64_t said_base = 0;
  std::uint64_t end = 0;
  std::uint64_t root = 0;
  if (modern) {
    PENSTOCK_ASSIGN(const auto block, source_.look_checked(0, 48, kSignature));
    HeaderReader reader(block.subspan(12));
    said_base = reader.u64();
    end = reader.skip(8).u64();
    root = reader.u64();
  } else {
    const std::uint64_t addresses = version == 0 ? 24 : 28;
    PENSTOCK_ASSIGN(const auto block, source_.look(addresses, 48));
    HeaderReader reader(block);
    said_base = reader.u64();
    end = reader.skip(8).u64();
    root = reader.skip(8 + 8).u64();
  }
  if (said_base != base)
    return source_.corrupt(0, fmt::format("an HDF5 superblock that says it lies at byte {}", said_base));
  // Older libraries count the end from the beginning of the object.
  if (end < base || end > source_.size())
    return source_.error(
        Errc::truncated, 0,
        fmt::format("the HDF5 file should end at byte {}, but the object does at {}", end, source_.size()));
  return root;
}

Result<void> Hdf5Reader::open() {
  PENSTOCK_ASSIGN(const std::uint64_t root, find_root());
  std::vector<Hdf5Link> waiting{{{}, root}};
  std::unordered_set<std::uint64_t> seen{root};
  while (!waiting.empty()) {
    const Hdf5Link found = std::move(waiting.back());
    waiting.pop_back();
    PENSTOCK_ASSIGN(Hdf5Object object, read_hdf5_object(source_, found.address));
    if (object.is_dataset) {
      PENSTOCK_TRY(add_dataset(found, std::move(object)));
      continue;
    }
    // In the order of the links; what several lead to has the name of the first.
    for (auto link = object.links.rbegin(); link != object.links.rend(); ++link) {
      if (!seen.insert(link->address).second) continue;
      std::string path = found.name.empty() ? link->name : fmt::format("{}/{}", found.name, link->name);
      if (path.size() > kMostPath || seen.size() > kMostObjects)
        return source_.error(
            Errc::unsupported, found.address,
            fmt::format("more than {} objects, or names of more than {} bytes", kMostObjects, kMostPath));
      waiting.push_back({std::move(path), link->address});
    }
  }
  return success();
}

Result<void> Hdf5Reader::add_dataset(const Hdf5Link& found, Hdf5Object object) {
  if (!object.is_number) return success();
  const auto& shape = object.shape;
  std::uint64_t bytes = std::find(shape.begin(), shape.end(), 0U) != shape.end() ? 0 : object.item_bytes;
  for (const std::uint64_t side : shape)
    if (bytes != 0 && __builtin_mul_overflow(bytes, side, &bytes))
      return source_.corrupt(found.address, fmt::format("'{}' has more bytes than there are", found.name));
  arrays_.push_back({.name = found.name,
                     .shape = shape,
                     .bytes = bytes,
                     .integers = !object.is_float,
                     .item_bytes = object.item_bytes});
  objects_.push_back(std::move(object));
  headers_.push_back(found.address);
  return success();
}

Result<ArrayExtent> Hdf5Reader::locate(std::size_t array) {
  const Hdf5Object& object = objects_[array];
  const StoredArray& stored = arrays_[array];
  ArrayExtent extent{
      .item_bytes = object.item_bytes, .is_signed = object.is_signed, .big_endian = object.big_endian};
  const auto failed = [&](Errc code, std::string_view why) {
    return source_.error(code, headers_[array], fmt::format("'{}': {}", stored.name, why));
  };
  if (!object.unreadable.empty()) return failed(Errc::unsupported, object.unreadable);
  if (object.storage != Hdf5Storage::contiguous) {
    if (stored.bytes == 0) return extent;
    PENSTOCK_TRY(find_hdf5_chunks(source_, object, stored, extent));
    const std::uint64_t chunk_bytes = extent.rows_per_chunk * (stored.bytes / stored.shape[0]);
    extent.offset = extent.chunks.front();
    for (std::size_t i = 1; i < extent.chunks.size(); ++i)
      if (extent.chunks[i] != extent.chunks[i - 1] + chunk_bytes) return extent;
    extent.chunks.clear();  // one behind another
    return extent;
  }
  if (object.address == kHdf5Nowhere && stored.bytes == 0) return extent;
  if (object.address == kHdf5Nowhere)
    return failed(Errc::unsupported, "it was never written, so its samples have no place");
  if (stored.bytes > object.stored_bytes)
    return failed(Errc::corrupt,
                  fmt::format("it needs {} bytes and has {}", stored.bytes, object.stored_bytes));
  PENSTOCK_ASSIGN(extent.offset, source_.extent(object.address, stored.bytes));
  return extent;
}

}  // namespace penstock
