// The module libpenstock_hdf5_mpio.so: HDF5's parallel library and its driver mpio.
#include <mpi.h>

#include "datagen/hdf5/by_library.hpp"
#include "datagen/hdf5/library_input.hpp"
#include "io_backends/core/build_info.hpp"

namespace penstock {
namespace {

bool true_on_all_ranks(bool true_here) {
  int false_count = true_here ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &false_count, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return false_count == 0;
}

Result<std::unique_ptr<Hdf5Input>> open_on_all_ranks(const std::string& path, std::string_view name,
                                                     Hdf5Driver driver) {
  if (!true_on_all_ranks(!path.empty()))
    return make_error(Errc::io, "cannot open '{}': another rank of the job failed to", name);
  auto input = std::make_unique<LibraryInput>(name, nullptr);
  const std::scoped_lock lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
  Hdf5Id transfer(H5Pcreate(H5P_DATASET_XFER), &H5Pclose);
  const auto transfer_mode =
      driver == Hdf5Driver::mpio_collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT;
  if (H5Pset_fapl_mpio(access.get(), MPI_COMM_WORLD, MPI_INFO_NULL) < 0 ||
      H5Pset_dxpl_mpio(transfer.get(), transfer_mode) < 0)
    return make_error(Errc::internal, "HDF5's library refuses to set up its driver mpio");
  PENSTOCK_TRY(input->open(path, access.get(), std::move(transfer)));
  return std::unique_ptr<Hdf5Input>(std::move(input));
}

}  // namespace
}  // namespace penstock

extern "C" __attribute__((visibility("default"))) const penstock::Hdf5MpioModule*
penstock_hdf5_mpio_module() {
  static const penstock::Hdf5MpioModule module{.version = penstock::build_info().version.data(),
                                               .open = &penstock::open_on_all_ranks};
  return &module;
}
