#include <dlfcn.h>

#include "datagen/hdf5/by_library.hpp"
#include "io_backends/core/build_info.hpp"
#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/core/ranks/module.hpp"

namespace penstock {
namespace {

constexpr const char* kModuleFile = "libpenstock_hdf5_mpio.so";

// Flags for loading the module. The module must use its own HDF5 library, although the program may have
// loaded another one with functions of the same names.
#ifdef PENSTOCK_ADDRESS_SANITIZER
constexpr int kLoadFlags = RTLD_LOCAL;  // no RTLD_DEEPBIND: the sanitizer's functions must come first
#else
constexpr int kLoadFlags = RTLD_LOCAL | RTLD_DEEPBIND;
#endif

Result<const Hdf5MpioModule*> mpio_module() {
  const auto missing = [](const std::string& why) {
    return make_error(Errc::unsupported,
                      "HDF5's driver mpio needs a module, and " + why +
                          ": build Penstock where MPI and HDF5's parallel library are (Debian: "
                          "libopenmpi-dev, libhdf5-openmpi-dev), or use the driver reader");
  };
  PENSTOCK_ASSIGN(const MpiModule* const mpi, mpi_module());
  PENSTOCK_TRY(mpi->files({}));  // this call initializes MPI if it is not running
  static const Result<void*> symbol = module_symbol(kModuleFile, kHdf5MpioModuleSymbol, kLoadFlags);
  if (!symbol.ok()) return missing(symbol.error().what);
  const Hdf5MpioModule* const module = reinterpret_cast<Hdf5MpioModuleFunction>(*symbol)();
  if (build_info().version == module->version) return module;
  return missing("the one that is there belongs to Penstock " + std::string(module->version));
}

}  // namespace

Result<std::unique_ptr<Hdf5Input>> open_by_mpio(Backend& backend, std::string_view name, Hdf5Driver driver) {
  PENSTOCK_ASSIGN(const std::string path, path_for_hdf5(backend, name, driver));
  PENSTOCK_ASSIGN(const Hdf5MpioModule* const module, mpio_module());
  // Opens the object through the back end first. So a missing or unreadable object gives the same error as
  // with every other driver.
  const auto opened = backend.open(name);
  auto input = module->open(opened.ok() ? path : "", name, driver);
  if (!opened.ok()) return opened.error();
  return input;
}

}  // namespace penstock
