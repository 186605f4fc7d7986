// Makes the metadata of HDF5 files. All metadata comes before all data, so that a file can be written in one
// pass. Uses version 2 superblocks and object headers, which HDF5 1.8 and later read (HDF5 File Format
// Specification, version 3.0). Stores no times, so that the same shapes give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datagen/format/sample_arrays.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The layout of a file with one dataset for each array. A name such as "climate/data" puts the dataset into
// the group `climate`. Two layouts for the same arrays with different lengths have the same data_begin(), and
// all their metadata have the same sizes and offsets. So the metadata can be rewritten in place when the
// lengths are known.
class Hdf5Layout {
 public:
  explicit Hdf5Layout(std::vector<ArrayPlan> datasets);

  // Checks whether a file can contain these datasets. `invalid_argument`, with the reason, if two datasets
  // have the same name, if a dataset has the name of a group, or if one has more dimensions than HDF5 allows.
  static Result<void> check(std::span<const ArrayPlan> datasets);

  std::vector<std::byte> metadata() const;  // the file's bytes before data_begin()
  uint64_t data_begin() const { return data_addresses_.empty() ? end_ : data_addresses_.front(); }
  // Offset in the file of a dataset's bytes. The datasets are stored in the order in which the constructor
  // got them. Bytes between them are padding.
  uint64_t address(size_t dataset) const { return data_addresses_[dataset]; }
  uint64_t end() const { return end_; }

 private:
  struct Group {
    // name of each subgroup, and the subgroup's index in groups_
    std::vector<std::pair<std::string, size_t>> groups{};
    // name of each dataset in this group, and the dataset's index in datasets_
    std::vector<std::pair<std::string, size_t>> datasets{};
    uint64_t header_address = 0;
  };
  size_t find_or_add_group(std::string_view path);
  std::vector<std::byte> group_header(const Group& group) const;
  std::vector<std::byte> dataset_header(size_t dataset) const;

  std::vector<ArrayPlan> datasets_;
  std::vector<Group> groups_;               // the first one is the root group
  std::vector<uint64_t> header_addresses_;  // offsets of the object headers, one per dataset
  std::vector<uint64_t> tree_addresses_;    // offsets of the chunk indexes, for chunked datasets
  std::vector<uint64_t> data_addresses_;    // offsets of the data, one per dataset
  uint64_t end_ = 0;
};

}  // namespace penstock
