// Makes MpiFiles with the MPI library of this module.
#pragma once

#include <memory>

#include "io_backends/core/ranks/mpi_files.hpp"

namespace penstock {

Result<std::unique_ptr<MpiFiles>> mpi_files(MpiHints hints);

}  // namespace penstock
