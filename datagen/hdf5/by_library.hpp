// The two ways to a file behind Hdf5Input::open: by the HDF5 that the program links, and by the parallel one
// in a module of its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "datagen/hdf5/hdf5_input.hpp"

namespace penstock {

Result<std::unique_ptr<Hdf5Input>> open_by_library(Backend& backend, std::string_view name,
                                                   Hdf5Driver driver);

// Collective, for Hdf5Driver::mpio and ::mpio_collective: no rank gets an input where one finds no file that
// may be read. What the library itself finds wrong then it may tell some ranks alone: the job is to be
// abandoned.
Result<std::unique_ptr<Hdf5Input>> open_by_mpio(Backend& backend, std::string_view name, Hdf5Driver driver);

// Where the driver, which reads files alone, finds the object; `unsupported` where it is none.
Result<std::string> path_for_hdf5(const Backend& backend, std::string_view name, Hdf5Driver driver);

// What libpenstock_hdf5_mpio.so gives: the symbol `penstock_hdf5_mpio_module` is a function that returns it.
struct Hdf5MpioModule {
  const char* version;  // of the build
  // Collective: MPI has been started. A rank whose `path` is empty has none, and no rank opens anything then.
  Result<std::unique_ptr<Hdf5Input>> (*open)(const std::string& path, std::string_view name,
                                             Hdf5Driver driver);
};
inline constexpr const char* kHdf5MpioModuleSymbol = "penstock_hdf5_mpio_module";
using Hdf5MpioModuleFunction = const Hdf5MpioModule* (*)();

}  // namespace penstock
