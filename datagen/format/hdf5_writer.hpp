// HDF5 files whose metadata is in front of all data, for streaming: version 2 superblock and object
// headers, which HDF5 1.8 and later read (HDF5 File Format Specification, version 3.0). No times: the same
// shapes, the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "datagen/format/sample_arrays.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Where everything of a file lies, a dataset for each array ("climate/data": in the group climate). Sides of
// datasets may change without moving anything in front of data_begin().
class Hdf5Layout {
 public:
  explicit Hdf5Layout(std::vector<ArrayPlan> datasets);

  // invalid_argument where no file can hold such datasets, saying why: two of one name, a name that is also a
  // group's, more sides than HDF5 has.
  static Result<void> check(std::span<const ArrayPlan> datasets);

  std::vector<std::byte> metadata() const;  // the file's first bytes, up to data_begin()
  std::uint64_t data_begin() const { return addresses_.empty() ? end_ : addresses_.front(); }
  // Of a dataset's bytes, in the order given; what lies between two is padding.
  std::uint64_t address(std::size_t dataset) const { return addresses_[dataset]; }
  std::uint64_t end() const { return end_; }

 private:
  struct Group {
    std::vector<std::pair<std::string, std::size_t>> groups{};    // and its number
    std::vector<std::pair<std::string, std::size_t>> datasets{};  // likewise
    std::uint64_t header = 0;
  };
  std::size_t group_of(std::string_view path);
  std::vector<std::byte> group_header(const Group& group) const;
  std::vector<std::byte> dataset_header(std::size_t dataset) const;

  std::vector<ArrayPlan> datasets_;
  std::vector<Group> groups_;             // the root first
  std::vector<std::uint64_t> headers_;    // of datasets
  std::vector<std::uint64_t> trees_;      // of chunked datasets
  std::vector<std::uint64_t> addresses_;  // of their bytes
  std::uint64_t end_ = 0;
};

}  // namespace penstock
