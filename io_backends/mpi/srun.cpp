#include "io_backends/mpi/srun.hpp"

#include <mpi.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace penstock {
namespace {

#ifdef OPEN_MPI

// Whether srun started this task without PMIx (srun.hpp). Open MPI recognises a task of srun by
// SLURM_STEP_ID. Ranks of mpirun have that variable, too, because srun starts mpirun's daemons. So a rank
// that mpirun started, which has OMPI_COMM_WORLD_SIZE, does not count.
bool is_task_without_pmix(const Launch& launch) {
  return std::getenv("SLURM_STEP_ID") != nullptr && std::getenv("PMIX_NAMESPACE") == nullptr &&
         launch.size_variable != "OMPI_COMM_WORLD_SIZE";
}

// Whether this Open MPI 4 has an interface to srun that is older than PMIx: Slurm's own or Cray's. It is
// found by the names of its MPI_T variables. The interface of Flux (in Debian's build) does not count,
// because srun does not support it.
bool has_older_interface() {
  int threads = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &threads) != MPI_SUCCESS) return false;
  int variables = 0;
  MPI_T_cvar_get_num(&variables);
  bool found = false;
  for (int i = 0; i < variables && !found; ++i) {
    std::array<char, 256> name{};
    int length = name.size();
    int verbosity = 0;
    int bind = 0;
    int scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (MPI_T_cvar_get_info(i, name.data(), &length, &verbosity, &type, nullptr, nullptr, nullptr, &bind,
                            &scope) != MPI_SUCCESS)
      continue;
    for (const std::string_view component : {"pmix_s1_", "pmix_s2_", "pmix_cray_"})
      found = found || std::string_view(name.data()).starts_with(component);
  }
  MPI_T_finalize();
  return found;
}

#endif

}  // namespace

#ifdef OPEN_MPI

Result<void> ranks_can_join(const Launch& launch) {
  if (!is_task_without_pmix(launch) || has_older_interface()) return success();
  return make_error(Errc::unsupported,
                    "{} is {}, and Open MPI cannot connect ranks without PMIx: use srun --mpi=pmix (srun "
                    "--mpi=list shows what srun supports), or start them with mpirun inside salloc or sbatch",
                    launch.size_variable, launch.ranks);
}

void start_alone_without_pmix(const Launch& launch) {
  if (launch.ranks <= 1 && is_task_without_pmix(launch)) ::unsetenv("SLURM_STEP_ID");
}

#else

Result<void> ranks_can_join(const Launch&) {
  return success();
}

void start_alone_without_pmix(const Launch&) {}

#endif

}  // namespace penstock
