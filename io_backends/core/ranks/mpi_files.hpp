// Reads files by MPI-IO. libpenstock_mpi.so implements it for the back end mpiio, so that the program itself
// does not use MPI.
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

// Hints that the MPI library gets when it opens a file (MPI_Info): key and value.
using MpiHints = std::vector<std::pair<std::string, std::string>>;

// One file, open for reading. Any thread may call it. Errors of MPI are of kind `io`, with MPI's text.
class MpiFile {
 public:
  virtual ~MpiFile() = default;

  // The present size of the file in bytes.
  virtual Result<uint64_t> size() = 0;

  // Fills `out` from byte `offset` (at most 2^63 - 1 - out.size()) of the file, or up to the end of the file.
  // Returns the number of bytes read. With MpiSharing::shared all ranks of the job call it together. Each
  // then reads at most 2^31 - 1 bytes, and for more it returns `unsupported`. A rank that needs no bytes
  // passes an empty span.
  virtual Result<size_t> read_at(uint64_t offset, std::span<std::byte> out) = 0;
};

enum class MpiSharing : uint8_t {
  alone,   // opened and read by this process, independent of other ranks
  shared,  // opened, read and closed by every rank of the job together, in the same order
};

// Opens files by MPI-IO. Any thread may call it.
class MpiFiles {
 public:
  virtual ~MpiFiles() = default;

  // Opens a file to read it. `path` is absolute; messages contain `name`. The open of a shared file succeeds
  // on every rank or fails on every rank.
  virtual Result<std::unique_ptr<MpiFile>> open(const std::string& path, std::string_view name,
                                                MpiSharing sharing) = 0;

  // Whether several threads may call this MPI library at once. If they may not, this class makes each thread
  // wait until no other thread is in a call.
  virtual bool many_threads() const = 0;
};

}  // namespace penstock
