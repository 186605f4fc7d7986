// Reads one object of an HDF5 file from the messages in its header. An object is a group, which has links, or
// a dataset, which has a shape, a type and the address of its data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/codec/chunk_filters.hpp"
#include "datagen/format/hdf5/hdf5_source.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct Hdf5Link {
  std::string name;
  uint64_t address = 0;  // address of the header of the linked object
};

// How a dataset stores its data: contiguous, or in chunks. The kinds of chunks differ in their index: a
// B-tree of version 1 or 2, none for a single chunk or for chunks that follow each other (implicit), or an
// array of addresses.
enum class Hdf5Storage : uint8_t {
  contiguous,
  tree,
  second_tree,
  single_chunk,
  implicit,
  fixed_array,
  extensible_array,
};

struct Hdf5Object {
  // The hard links of a group. Soft and external links are skipped.
  std::vector<Hdf5Link> links{};

  bool is_dataset = false;
  std::vector<uint64_t> shape{};
  std::vector<uint64_t> max_shape{};  // the shape that it may grow to; UINT64_MAX: unlimited; {}: `shape`
  bool has_shape = false;
  std::string_view type_name{};  // of the elements, for messages: "text", "compounds"
  // Whether this is a dataset with a shape whose elements are integers, enumerations (h5py's booleans) or
  // floats of 1, 2, 4 or 8 bytes. False for floats in VAX order. The four members below have a meaning only
  // if is_number is true.
  bool is_number = false;
  bool is_float = false;
  bool is_signed = false;
  bool big_endian = false;
  uint64_t item_bytes = 0;

  Hdf5Storage storage = Hdf5Storage::contiguous;
  uint64_t address = kHdf5NoAddress;  // address of the data or of the chunk index
  uint64_t stored_bytes = 0;  // number of bytes at `address`, if contiguous or a filtered single chunk
  uint32_t not_applied = 0;   // of a single chunk: bit i says that filter i was not applied
  std::vector<uint64_t> chunk_shape{};  // length of each dimension of a chunk
  std::vector<ChunkFilter> filters{};   // of the chunks, in the order in which they were applied
  std::vector<std::byte> fill_value{};  // an element that was never written; {}: zeros
  bool is_fill_value_shared = false;    // it is a shared message, which is not read
  bool edge_chunks_are_plain = false;   // filters were not applied to chunks that reach over the edge
  // "" if the dataset's bytes can be read; otherwise the reason why not, such as "its layout has version 6".
  std::string unreadable_reason{};
};

// Reads the object whose header is at `address`. `corrupt` or `truncated` if the header is damaged.
// `unsupported` if its header has an unknown version or is too long for one read, or if it is a group that
// keeps its links in a heap whose blocks are filtered. Returns a dataset even if it has an unknown type
// (is_number is then false) or unknown storage (unreadable_reason is then set).
// `types` has the named types of the file that were read so far, by their addresses: many datasets may have
// the same one.
using Hdf5NamedTypes = std::map<uint64_t, Hdf5Object>;
Result<Hdf5Object> read_hdf5_object(Hdf5Source& source, uint64_t address, Hdf5NamedTypes& types);

}  // namespace penstock
