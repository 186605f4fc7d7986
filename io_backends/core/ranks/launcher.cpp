#include "io_backends/core/ranks/launcher.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/ranks/module.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr const char* kModuleFile = "libpenstock_mpi.so";
constexpr uint64_t kMostRanks = 1U << 30;

struct LauncherVariables {
  const char* size_variable;
  const char* rank_variable;
};
// Each row has the variables that some launchers set. First row: Open MPI and PRRTE. Second row: MPICH, Intel
// MPI and srun --mpi=pmi2. Third row: any srun. SLURM_NTASKS is not used, because a batch script has it, too,
// although it is only one process.
constexpr LauncherVariables kLaunchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                            {"PMI_SIZE", "PMI_RANK"},
                                            {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};

int env_number(const char* name, int fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  const Result<uint64_t> number = parse_count(text);
  return number.ok() && *number <= kMostRanks ? int(*number) : fallback;
}

Error no_module_error(std::string_view why) {
  return make_error(
      Errc::unsupported,
      "this needs the MPI module, {}. A wheel has none: build Penstock from source on a machine with MPI's "
      "headers (Debian: libopenmpi-dev), or start one process without a launcher and use the back end posix",
      why);
}

}  // namespace

Launch look_for_launcher() {
  for (const LauncherVariables& variables : kLaunchers)
    if (const int ranks = env_number(variables.size_variable, 0); ranks > 0)
      return {.rank = env_number(variables.rank_variable, 0),
              .ranks = ranks,
              .size_variable = variables.size_variable};
  return {};
}

Result<const MpiModule*> mpi_module() {
  // RTLD_GLOBAL makes MPI's symbols visible to the libraries that MPI itself opens later.
  static const Result<void*> symbol = module_symbol(kModuleFile, kMpiModuleSymbol, RTLD_GLOBAL);
  if (!symbol.ok()) return no_module_error("and " + symbol.error().what);
  const MpiModule* table = reinterpret_cast<MpiModuleFunction>(*symbol)();
  if (build_info().version != table->version)
    return no_module_error(fmt::format("and the installed one belongs to Penstock {}, not {}", table->version,
                                       build_info().version));
  return table;
}

Result<void> check_launch(const Launch& launch) {
  if (launch.ranks <= 1) return success();
  const Result<const MpiModule*> module = mpi_module();
  return module.ok() ? (*module)->can_join(launch) : success();
}

Result<std::unique_ptr<Communicator>> join_ranks(const Launch& launch) {
  if (launch.ranks <= 1) return single_process();
  PENSTOCK_ASSIGN(const MpiModule* const module, mpi_module());
  PENSTOCK_ASSIGN(auto ranks, module->join());
  if (ranks->size() != launch.ranks)
    return make_error(
        Errc::unsupported,
        "{} is {}, but MPI has {} ranks: the launcher and Penstock use different MPI libraries; use the "
        "mpirun of the MPI that Penstock was built with, or srun with a matching --mpi",
        launch.size_variable, launch.ranks, ranks->size());
  return ranks;
}

}  // namespace penstock
