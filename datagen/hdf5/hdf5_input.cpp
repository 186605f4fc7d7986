
#include "datagen/hdf5/by_library.hpp"
#include "datagen/hdf5/library_input.hpp"

namespace penstock {
namespace {

constexpr size_t kCoreGrowthBytes = size_t{1} << 20U;

}  // namespace

Result<void> hdf5_available() {
  return success();
}

Result<std::unique_ptr<Hdf5Input>> open_by_library(Backend& backend, std::string_view name,
                                                   Hdf5Driver driver) {
  PENSTOCK_ASSIGN(std::unique_ptr<Reader> reader, backend.open(name));
  auto input = std::make_unique<LibraryInput>(name, std::move(reader));
  PENSTOCK_ASSIGN(input->source().bytes, input->source().reader->size());
  const std::scoped_lock lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
  std::string path(name);
  if (driver == Hdf5Driver::reader) {
    PENSTOCK_TRY(use_reader_driver(access.get(), input->source()));
  } else {
    PENSTOCK_ASSIGN(path, path_for_hdf5(backend, name, driver));
    const bool is_core = driver == Hdf5Driver::core;
    const herr_t status =
        is_core ? H5Pset_fapl_core(access.get(), kCoreGrowthBytes, 0) : H5Pset_fapl_sec2(access.get());
    if (status < 0)
      return make_error(Errc::internal, "HDF5's library refuses to set up its driver {}",
                        hdf5_driver_name(driver));
  }
  PENSTOCK_TRY(input->open(path, access.get()));
  return std::unique_ptr<Hdf5Input>(std::move(input));
}

}  // namespace penstock
