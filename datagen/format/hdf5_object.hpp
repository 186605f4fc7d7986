// Reads one object of an HDF5 file from the messages of its header. A group has links. A dataset has a shape,
// a type and the address of its data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datagen/format/hdf5_source.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct Hdf5Link {
  std::string name;
  std::uint64_t address = 0;  // of the linked object's header
};

enum class Hdf5Storage : std::uint8_t { contiguous, chunk_tree, one_chunk, chunk_row, chunk_list };

struct Hdf5Object {
  // Links of a group. Only hard links: soft and external links refer to objects that are found elsewhere.
  std::vector<Hdf5Link> links{};

  bool is_dataset = false;
  std::vector<std::uint64_t> shape{};
  bool has_shape = false;
  // An integer or float of 1, 2, 4 or 8 bytes; otherwise the fields below are not set.
  bool is_number = false;
  bool is_float = false;
  bool is_signed = false;
  bool big_endian = false;
  std::uint64_t item_bytes = 0;

  Hdf5Storage storage = Hdf5Storage::contiguous;
  std::uint64_t address = kHdf5NoAddress;  // of the bytes, or of the index of the chunks
  std::uint64_t stored_bytes = 0;          // set only if contiguous
  std::vector<std::uint64_t> chunk{};      // length of each dimension of a chunk
  // Why the dataset's bytes cannot be read directly, such as "its chunks are compressed (deflate)".
  std::string unreadable{};
};

// Reads the object whose header is at `address`. `corrupt` or `truncated` if the header is damaged. An
// unknown type is not a number, and an unknown storage sets `unreadable`: these are no errors. `unsupported`
// for groups that keep their links in a heap.
Result<Hdf5Object> read_hdf5_object(Hdf5Source& source, std::uint64_t address);

}  // namespace penstock
