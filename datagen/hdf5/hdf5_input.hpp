// Reading HDF5 as programs do that use HDF5's own library. (What Penstock itself needs of a file, its own
// reader in datagen/format finds without the library, and faster.)
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

// How the library gets at the file's bytes.
enum class Hdf5Driver : std::uint8_t {
  reader,  // through the back end, whatever it is
  sec2,    // by the library's own system calls; needs Caps::native_path
  core,    // likewise, all of the file into memory when it is opened (as the climate benchmark reads)
  mpio,    // by MPI-IO: all ranks of the job open and close the file together, and each reads on its own;
           // needs Caps::native_path
  mpio_collective,  // likewise, and all ranks make every read together; whoever needs nothing asks for a
                    // block without elements. A rank whose read fails may leave the others waiting in theirs:
                    // the job has to be abandoned (Communicator::abandon)
};
std::string_view hdf5_driver_name(Hdf5Driver driver);
Result<Hdf5Driver> parse_hdf5_driver(std::string_view name);

// unsupported, with the reason, where this build lacks HDF5's library. What the drivers over MPI need besides
// is said by open().
Result<void> hdf5_available();

// One file, open to read. Any thread: the library does one thing at a time, whoever asks.
class Hdf5Input {
 public:
  // not_found, corrupt (no HDF5) and so on, naming the object. The back end outlives it.
  static Result<std::unique_ptr<Hdf5Input>> open(Backend& backend, std::string_view name, Hdf5Driver driver);
  virtual ~Hdf5Input() = default;

  // not_found where the file has no data set of that name ("climate/data").
  virtual Result<std::vector<std::uint64_t>> shape(const std::string& data_set) = 0;  // outermost side first

  // The block of `counts` elements a side that begins at `begin`, turned into the machine's `element`s: all
  // of it into `out`, which has as many bytes, or an error. Both have as many sides as the data set.
  virtual Result<void> read(const std::string& data_set, std::span<const std::uint64_t> begin,
                            std::span<const std::uint64_t> counts, Element element,
                            std::span<std::byte> out) = 0;
};

}  // namespace penstock
