// Reads HDF5 with HDF5's own library, as training programs do. (When Penstock itself needs an HDF5 file, it
// uses the reader in datagen/format, which is faster and needs no library.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/sample/sample.hpp"
#include "io_backends/backend/backend.hpp"

namespace penstock {

// How the library reads the file's bytes.
enum class Hdf5Driver : uint8_t {
  reader,  // the library reads through a Reader, so it can read from any back end
  sec2,    // by the library's own system calls; needs Caps::native_path
  core,    // like sec2, but reads the whole file into memory when it opens it (as the climate benchmark does)
  // By MPI-IO, which needs Caps::native_path. All ranks of the job must open and close the file together.
  // Each rank reads independently.
  mpio,
  // Like mpio, but all ranks must also make every read together. A rank that needs no data reads a block
  // without elements. If the read of one rank fails, the other ranks may wait for ever in their reads. The
  // caller must then abandon the job (Communicator::abandon).
  mpio_collective,
};
std::string_view hdf5_driver_name(Hdf5Driver driver);
Result<Hdf5Driver> parse_hdf5_driver(std::string_view name);

// Fails with `unsupported` if this build lacks HDF5's library. The two MPI drivers need other parts as well;
// if one is missing, open() reports it.
Result<void> hdf5_available();

// One open file, for reading. Any thread may call it, but each copy of HDF5's library runs only one call at a
// time (library_input.hpp).
class Hdf5Input {
 public:
  // Opens an object of the back end, which must outlive the result. Errors name the object. `not_found` if
  // there is no such object, and `corrupt` if it is no HDF5 file. `unsupported` if the driver needs a file
  // and the object is none, or if the build or machine lacks a part.
  static Result<std::unique_ptr<Hdf5Input>> open(Backend& backend, std::string_view name, Hdf5Driver driver);
  virtual ~Hdf5Input() = default;

  // The lengths of the data set's dimensions, outermost first. `not_found` if the file has no data set of
  // that name ("climate/data").
  virtual Result<std::vector<uint64_t>> shape(const std::string& data_set) = 0;

  // Reads the block that begins at `begin` and has `counts[i]` elements along dimension i. `begin` and
  // `counts` have one entry per dimension of the data set. Converts the elements to the machine's type for
  // `element`. Fails if `out` does not have exactly the size of the block. If it succeeds, it has filled all
  // of `out`.
  virtual Result<void> read(const std::string& data_set, std::span<const uint64_t> begin,
                            std::span<const uint64_t> counts, Element element, std::span<std::byte> out) = 0;
};

}  // namespace penstock
