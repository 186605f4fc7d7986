#include <algorithm>
#include <array>

#include "datagen/hdf5/hdf5_input.hpp"

namespace penstock {
namespace {

constexpr std::array<std::string_view, 3> kDrivers{"reader", "sec2", "core"};

}  // namespace

std::string_view hdf5_driver_name(Hdf5Driver driver) {
  return kDrivers[static_cast<std::size_t>(driver)];
}

Result<Hdf5Driver> parse_hdf5_driver(std::string_view name) {
  const auto* const found = std::find(kDrivers.begin(), kDrivers.end(), name);
  if (found != kDrivers.end()) return static_cast<Hdf5Driver>(found - kDrivers.begin());
  return unknown_name("HDF5 driver", name, {kDrivers.begin(), kDrivers.end()});
}

std::uint64_t Hdf5Shape::elements() const {
  std::uint64_t elements = 1;
  for (const std::uint64_t side : sides) elements *= side;
  return elements;
}

}  // namespace penstock
