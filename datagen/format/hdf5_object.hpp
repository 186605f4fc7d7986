// One object of an HDF5 file, from the messages of its header: a group's links, or a dataset's shape, type
// and place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datagen/format/hdf5_source.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct Hdf5Link {
  std::string name;
  std::uint64_t address = 0;  // of the object's header
};

enum class Hdf5Storage : std::uint8_t { contiguous, chunk_tree, one_chunk, chunk_row, chunk_list };

struct Hdf5Object {
  // A group's: hard links alone; soft and external ones lead to what has a place elsewhere.
  std::vector<Hdf5Link> links{};

  bool is_dataset = false;
  std::vector<std::uint64_t> shape{};
  bool has_shape = false;
  bool is_number = false;  // an integer or a float of 1, 2, 4 or 8 bytes; else the fields below are not set
  bool is_float = false;
  bool is_signed = false;
  bool big_endian = false;
  std::uint64_t item_bytes = 0;

  Hdf5Storage storage = Hdf5Storage::contiguous;
  std::uint64_t address = kHdf5Nowhere;  // of the bytes, or of the index of the chunks
  std::uint64_t stored_bytes = 0;        // where contiguous
  std::vector<std::uint64_t> chunk{};    // its sides
  // Why its bytes are not in the file as they are: "its chunks are compressed (deflate)".
  std::string unreadable{};
};

// `corrupt` or `truncated` where the header is damaged; what is merely unknown makes it no number or
// unreadable. `unsupported` for groups whose links are in a heap.
Result<Hdf5Object> read_hdf5_object(Hdf5Source& source, std::uint64_t address);

}  // namespace penstock
