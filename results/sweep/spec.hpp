// Reads the file of a sweep (docs/sweeps.md has its keys).
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

// An option of the swept command as the file has it. It has one value, or several if it takes a list or may
// be repeated.
struct SweepSetting {
  std::string key;  // as on the command line: "min-time"
  std::vector<std::string> values;
};

// One dimension of the grid. A cell has one entry of `values` as its setting. One special key is for the
// command's arguments.
struct SweepAxis {
  std::string key;
  std::vector<std::vector<std::string>> values;
};

// One of several programs or settings that the sweep compares.
struct SweepArm {
  std::string name;
  std::string program;  // "": this program
  std::vector<SweepSetting> fixed;
};

struct SweepSlurm {
  std::string partition;
  std::string account;
  std::string time;                  // in the format of sbatch --time; "": the partition's default
  std::string mpi = "pmix";          // for srun --mpi=; "": the site's default
  std::vector<std::string> options;  // more options of sbatch
  std::vector<std::string> srun;     // more options of srun
};

struct SweepSpec {
  std::string name;
  std::string command;
  std::vector<std::string> arguments;
  std::vector<SweepSetting> fixed;
  std::vector<SweepAxis> grid;
  std::vector<SweepArm> arms;   // none, or at least two
  std::vector<uint64_t> ranks;  // ranks of a job; empty: plain processes, unless there are nodes
  std::vector<uint64_t> nodes;
  uint64_t tasks_per_node = 0;    // 0: as many as the ranks need
  std::string launcher;           // "mpirun -np {ranks}"; "": srun in an allocation, else mpirun
  std::string command_after_run;  // a line for sh after every run, whether or not it failed
  uint64_t repeats = 1;
  std::optional<uint64_t> seed;
  std::optional<std::chrono::nanoseconds> budget;
  std::string until_metric;
  double until_interval = 0;  // as a fraction of the median; 0: make all repeats
  std::string results = "penstock-results";
  SweepSlurm slurm;
};

// Reads a sweep's file. invalid_argument names the file and the key, and lists the valid keys if the key is
// unknown. Whether the command accepts the options is not checked here.
Result<SweepSpec> read_sweep_file(const std::filesystem::path& file);
// Parses the text of a sweep's file; `file` is its name in messages.
Result<SweepSpec> parse_sweep(const std::string& text, std::string_view file);

}  // namespace penstock
