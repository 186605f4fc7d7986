// Reads the file that describes a sweep (docs/reference/sweep-files.md explains its keys).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// An option of the swept command with its values, as they are in the sweep's file. It has several values if
// the option takes a list or may be given several times.
struct SweepSetting {
  std::string key;  // as on the command line: "min-time"
  std::vector<std::string> values;
};

// One dimension of the grid. In each cell, the option `key` is set to one entry of `values`. One special key
// (its name is kArgumentsKey in plan.cpp) sets the command's positional arguments instead of an option.
struct SweepAxis {
  std::string key;
  std::vector<std::vector<std::string>> values;
};

// One of the alternatives that the sweep compares: a program, arguments and settings.
struct SweepArm {
  std::string name;
  std::string program;                 // "": this program
  std::vector<std::string> arguments;  // after those of the cell
  std::vector<SweepSetting> fixed_settings;
};

struct SweepSlurm {
  std::string partition;
  std::string account;
  std::string time;                  // in the format of sbatch --time; "": the partition's default
  std::string mpi = "pmix";          // for srun --mpi=; "": the site's default
  std::vector<std::string> options;  // further options for sbatch
  std::vector<std::string> srun;     // further options for srun
};

struct SweepSpec {
  std::string name;
  std::string command;
  std::vector<std::string> arguments;
  std::vector<SweepSetting> fixed_settings;
  std::vector<SweepAxis> grid;
  std::vector<SweepArm> arms;   // empty, or at least two arms
  std::vector<uint64_t> ranks;  // numbers of ranks; if `nodes` is empty too, runs are plain processes
  std::vector<uint64_t> nodes;
  uint64_t tasks_per_node = 0;  // 0: as many tasks on a node as the ranks need
  std::string launcher;         // "mpirun -np {ranks}"; "": srun in an allocation, else mpirun
  // A line for sh. It is run after every run, even after a failed one.
  std::string command_after_run;
  uint64_t repeats = 1;
  std::optional<uint64_t> seed;
  std::optional<std::chrono::nanoseconds> budget;
  std::string until_metric;
  double until_interval = 0;  // a fraction of the median; 0: always make all repeats
  std::string results = "penstock-results";
  SweepSlurm slurm;
};

// Reads a sweep's file. Errors: invalid_argument, which names the file and the key; if the key is unknown, it
// also lists the valid keys. Whether the command accepts the options is not checked here.
Result<SweepSpec> read_sweep_file(const std::filesystem::path& file);
// Parses the text of a sweep's file; `file` is its name in messages.
Result<SweepSpec> parse_sweep(const std::string& text, std::string_view file);

}  // namespace penstock
