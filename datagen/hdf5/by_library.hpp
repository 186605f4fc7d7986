// The two functions behind Hdf5Input::open. One uses the HDF5 library that the program links. The other uses
// the parallel HDF5 library in a separate module.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "datagen/hdf5/hdf5_input.hpp"

namespace penstock {

Result<std::unique_ptr<Hdf5Input>> open_by_library(Backend& backend, std::string_view name,
                                                   Hdf5Driver driver);

// Collective, for Hdf5Driver::mpio and ::mpio_collective. If one rank does not find a readable file, every
// rank gets an error. An error that the library detects later may reach only some ranks. The caller must then
// abandon the job, because other ranks may still wait.
Result<std::unique_ptr<Hdf5Input>> open_by_mpio(Backend& backend, std::string_view name, Hdf5Driver driver);

// The path of the object for a driver that reads native files. `unsupported` if the object has none.
Result<std::string> path_for_hdf5(const Backend& backend, std::string_view name, Hdf5Driver driver);

// The interface of libpenstock_hdf5_mpio.so. Its symbol `penstock_hdf5_mpio_module` is a function that
// returns this.
struct Hdf5MpioModule {
  const char* version;  // version of Penstock when the module was built; must be the program's
  // Collective; MPI is already initialized. A rank without a readable file passes an empty `path`, and then
  // no rank opens the file.
  Result<std::unique_ptr<Hdf5Input>> (*open)(const std::string& path, std::string_view name,
                                             Hdf5Driver driver);
};
inline constexpr const char* kHdf5MpioModuleSymbol = "penstock_hdf5_mpio_module";
using Hdf5MpioModuleFunction = const Hdf5MpioModule* (*)();

}  // namespace penstock
