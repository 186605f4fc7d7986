// The datasets of an HDF5 file that anybody made: a parser of our own, bounded by the file's size. Reads
// superblocks 0 to 3, old and new groups and headers, and data that is in the file as it is: contiguous,
// compact, or in chunks without filters.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "datagen/format/hdf5_object.hpp"
#include "datagen/format/hdf5_source.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/scan_arrays.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

class Hdf5Reader {
 public:
  explicit Hdf5Reader(ObjectWindow& window) : source_(window, window.size()) {}
  Hdf5Reader(ByteWindow& window, std::uint64_t size) : source_(window, size) {}  // of an object that large

  // Finds every dataset of numbers that hard links lead to. Others (strings, compounds, references) are left
  // out.
  Result<void> open();
  std::span<const StoredArray> arrays() const { return arrays_; }

  // `unsupported` says which dataset is not in the file as it is, and why.
  Result<ArrayExtent> locate(std::size_t array);

 private:
  Result<std::uint64_t> find_root();
  Result<std::uint64_t> read_superblock(std::uint64_t base);
  Result<void> add_dataset(const Hdf5Link& found, Hdf5Object object);  // its name is its whole path

  Hdf5Source source_;
  std::vector<StoredArray> arrays_;
  std::vector<Hdf5Object> objects_;     // by array
  std::vector<std::uint64_t> headers_;  // likewise
};

}  // namespace penstock
