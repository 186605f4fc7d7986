
#include <algorithm>
#include <array>

#include "datagen/hdf5/by_library.hpp"
#include "datagen/hdf5/hdf5_input.hpp"
#include "io_backends/core/options.hpp"

namespace penstock {
namespace {

constexpr std::array<std::string_view, 5> kDriverNames{"reader", "sec2", "core", "mpio", "mpio-collective"};

}  // namespace

std::string_view hdf5_driver_name(Hdf5Driver driver) {
  return kDriverNames[size_t(driver)];
}

Result<Hdf5Driver> parse_hdf5_driver(std::string_view name) {
  const auto* const found = std::find(kDriverNames.begin(), kDriverNames.end(), name);
  if (found != kDriverNames.end()) return static_cast<Hdf5Driver>(found - kDriverNames.begin());
  return unknown_name("HDF5 driver", name, {kDriverNames.begin(), kDriverNames.end()});
}

Result<std::string> path_for_hdf5(const Backend& backend, std::string_view name, Hdf5Driver driver) {
  if (const auto native = backend.native_path(name)) return native->string();
  return make_error(Errc::unsupported,
                    "HDF5's driver {} only reads files, and '{}' is not one: use the driver reader",
                    hdf5_driver_name(driver), name);
}

Result<std::unique_ptr<Hdf5Input>> Hdf5Input::open(Backend& backend, std::string_view name,
                                                   Hdf5Driver driver) {
  const bool is_parallel = driver == Hdf5Driver::mpio || driver == Hdf5Driver::mpio_collective;
  return is_parallel ? open_by_mpio(backend, name, driver) : open_by_library(backend, name, driver);
}

}  // namespace penstock
