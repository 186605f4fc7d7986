#include "io_backends/core/build_info.hpp"
#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/mpi/communicator.hpp"
#include "io_backends/mpi/files.hpp"
#include "io_backends/mpi/srun.hpp"

extern "C" __attribute__((visibility("default"))) const penstock::MpiModule* penstock_mpi_module() {
  static const penstock::MpiModule module{.version = penstock::build_info().version.data(),
                                          .can_join = &penstock::ranks_can_join,
                                          .join = &penstock::join_mpi,
                                          .files = &penstock::mpi_files};
  return &module;
}
