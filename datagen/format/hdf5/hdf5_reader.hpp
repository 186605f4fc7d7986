// Finds the datasets of an HDF5 file, which any program may have made. It parses the file itself, without
// HDF5's library, and limits its work by the size of the file. It reads superblocks of the versions 0 to 3,
// groups and headers of all versions, all chunk indexes, and the filters of chunk_filters.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "datagen/format/hdf5/hdf5_object.hpp"
#include "datagen/format/hdf5/hdf5_source.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/scan_arrays.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

class Hdf5Reader {
 public:
  explicit Hdf5Reader(ObjectWindow& window) : Hdf5Reader(window, window.size()) {}
  // `size` is the size of the object in bytes.
  Hdf5Reader(ByteWindow& window, uint64_t size) : window_(window), source_(window, size) {}

  // Finds every numeric dataset that can be reached from the root group by hard links. Datasets of strings,
  // compounds or references are only counted.
  Result<void> open();
  std::span<const StoredArray> arrays() const { return arrays_; }
  const UnreadArrays& unread() const { return unread_; }

  // Returns where the bytes of arrays()[array] are. If `by_rows`, only the bytes of each row must be
  // together. ArrayExtent::unpacked is set if they are not, or are filtered; it refers to the reader's
  // window. If they cannot be read, the error is `unsupported`; it names the dataset and says why.
  Result<ArrayExtent> locate(size_t array, bool by_rows);

 private:
  Result<uint64_t> find_root();
  Result<uint64_t> read_superblock(uint64_t base);
  // `found.name` is the whole path of the dataset
  Result<void> add_dataset(const Hdf5Link& found, Hdf5Object object);

  Result<void> locate_chunks(size_t array, bool by_rows, ArrayExtent& extent);
  Error error_of(size_t array, Errc code, std::string_view why) const;

  ByteWindow& window_;
  Hdf5Source source_;
  UnreadArrays unread_;
  std::vector<StoredArray> arrays_;
  std::vector<Hdf5Object> objects_;         // one per array
  std::vector<uint64_t> header_addresses_;  // one per array
};

}  // namespace penstock
