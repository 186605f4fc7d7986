// Files by MPI-IO: what libpenstock_mpi.so gives to the back end mpiio, so that the program names no MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// What the MPI library is told of a file when it is opened (MPI_Info): key and value.
using MpiHints = std::vector<std::pair<std::string, std::string>>;

// One file, open to read. Any thread. Errors are of kind `io`, in MPI's words.
class MpiFile {
 public:
  virtual ~MpiFile() = default;

  // The file's size in bytes now.
  virtual Result<std::uint64_t> size() = 0;

  // Fills `out` from byte `offset` (at most 2^63 - 1 - out.size()) as far as the file goes; returns how many
  // bytes came. Of a shared file at most 2^31 - 1 bytes, and every rank of the job calls it together; one
  // that needs nothing asks for nothing.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) = 0;
};

enum class MpiSharing : std::uint8_t {
  alone,   // opened and read by this process, whatever the others do
  shared,  // opened, read and closed by every rank of the job together, in the same order
};

// Any thread.
class MpiFiles {
 public:
  virtual ~MpiFiles() = default;

  // `path` is absolute; `name` is in messages. A shared file is opened on every rank or fails on every
  // rank.
  virtual Result<std::unique_ptr<MpiFile>> open(const std::string& path, std::string_view name,
                                                MpiSharing sharing) = 0;

  // Whether this MPI lets several threads call it at a time; else their calls wait for each other here.
  virtual bool many_threads() const = 0;
};

}  // namespace penstock
