// Replaces hdf5_input.cpp in a build without HDF5's library: open_by_library() always fails.
#include "datagen/hdf5/by_library.hpp"

namespace penstock {

Result<void> hdf5_available() {
  return make_error(Errc::unsupported, "this build lacks HDF5's library");
}

Result<std::unique_ptr<Hdf5Input>> open_by_library(Backend& /*backend*/, std::string_view /*name*/,
                                                   Hdf5Driver /*driver*/) {
  return hdf5_available().error();
}

}  // namespace penstock
