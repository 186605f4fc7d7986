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
  reader,  // by calls of a Reader, so with any back end
  sec2,    // by the library's own system calls; needs Caps::native_path
  core,    // like sec2, but reads the whole file into memory when it opens it (as the climate benchmark does)
  // By MPI-IO: all ranks of the job open and close the file together, and each rank reads independently;
  // needs Caps::native_path.
  mpio,
  // Like mpio, but all ranks make every read together. A rank that needs no data reads a block without
  // elements. If the read of one rank fails, the reads of the others may wait forever. The caller must then
  // abandon the job (Communicator::abandon).
  mpio_collective,
};
std::string_view hdf5_driver_name(Hdf5Driver driver);
Result<Hdf5Driver> parse_hdf5_driver(std::string_view name);

// `unsupported`, with the reason, if this build lacks HDF5's library. open() reports what else the MPI
// drivers need.
Result<void> hdf5_available();

// One open file, for reading. Any thread; the library runs one call at a time.
class Hdf5Input {
 public:
  // Errors name the object: `not_found`, `corrupt` if it is no HDF5 file, and others. The back end must
  // outlive the input.
  static Result<std::unique_ptr<Hdf5Input>> open(Backend& backend, std::string_view name, Hdf5Driver driver);
  virtual ~Hdf5Input() = default;

  // The lengths of the dimensions, outermost first. `not_found` if the file has no data set of that name
  // ("climate/data").
  virtual Result<std::vector<uint64_t>> shape(const std::string& data_set) = 0;

  // Reads the block that begins at `begin` and has `counts` elements in each dimension. Converts it to the
  // machine's `element` type. Fills all of `out`, which has exactly as many bytes, or returns an error.
  // `begin` and `counts` have one entry per dimension of the data set.
  virtual Result<void> read(const std::string& data_set, std::span<const uint64_t> begin,
                            std::span<const uint64_t> counts, Element element, std::span<std::byte> out) = 0;
};

}  // namespace penstock
