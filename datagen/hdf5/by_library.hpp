// The functions that do the work of Hdf5Input::open(). open_by_library() uses the HDF5 library that the
// program links. open_by_mpio() uses HDF5's parallel library, which a separate module links.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "datagen/hdf5/hdf5_input.hpp"

namespace penstock {

Result<std::unique_ptr<Hdf5Input>> open_by_library(Backend& backend, std::string_view name,
                                                   Hdf5Driver driver);

// Opens a file with Hdf5Driver::mpio or ::mpio_collective. All ranks must call it together.
// If one rank does not find a readable file, every rank gets an error. An error that the library detects
// later may reach only some ranks. The caller must then abandon the job, because the other ranks may wait for
// ever.
Result<std::unique_ptr<Hdf5Input>> open_by_mpio(Backend& backend, std::string_view name, Hdf5Driver driver);

// The path of the object's file, for a driver that opens files by their path. `unsupported` if the back end
// has no such file.
Result<std::string> path_for_hdf5(const Backend& backend, std::string_view name, Hdf5Driver driver);

// The interface of the module libpenstock_hdf5_mpio.so. The module's function `penstock_hdf5_mpio_module`
// returns it.
struct Hdf5MpioModule {
  const char* version;  // Penstock's version when the module was built; must be that of the program
  // Opens a file by MPI-IO. All ranks must call it together, and MPI must be initialized. A rank without a
  // readable file passes an empty `path`; then no rank opens the file, and all get an error.
  Result<std::unique_ptr<Hdf5Input>> (*open)(const std::string& path, std::string_view name,
                                             Hdf5Driver driver);
};
inline constexpr const char* kHdf5MpioModuleSymbol = "penstock_hdf5_mpio_module";
using Hdf5MpioModuleFunction = const Hdf5MpioModule* (*)();

}  // namespace penstock
