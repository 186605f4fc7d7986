// What the file of a sweep asks for (docs/sweeps.md has its keys).
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

// An option of the swept command as it is in a file: one value, or several of a list or of an option that
// may be repeated.
struct SweepSetting {
  std::string key;  // as on the line: "min-time"
  std::vector<std::string> values;
};

// One dimension of the grid; each of its values is what one cell's setting holds. One key means the command's
// arguments.
struct SweepAxis {
  std::string key;
  std::vector<std::vector<std::string>> values;
};

// One of several programs or settings that are measured in turn.
struct SweepArm {
  std::string name;
  std::string program;  // "": this one
  std::vector<SweepSetting> fixed;
};

struct SweepSlurm {
  std::string partition;
  std::string account;
  std::string time;                  // as sbatch --time takes it; "": the partition's own
  std::string mpi = "pmix";          // of srun --mpi=; "" leaves it to the site
  std::vector<std::string> options;  // more words of sbatch
  std::vector<std::string> srun;     // more words of srun
};

struct SweepSpec {
  std::string name;
  std::string command;
  std::vector<std::string> arguments;
  std::vector<SweepSetting> fixed;
  std::vector<SweepAxis> grid;
  std::vector<SweepArm> arms;        // none, or two and more
  std::vector<std::uint64_t> ranks;  // of a job; none: plain processes, unless there are nodes
  std::vector<std::uint64_t> nodes;
  std::uint64_t tasks_per_node = 0;  // 0: as many as there are ranks
  std::string launcher;              // "mpirun -np {ranks}"; "": srun in an allocation, else mpirun
  std::string after;                 // a line for sh behind every run, whatever came of it
  std::uint64_t repeats = 1;
  std::optional<std::uint64_t> seed;
  std::optional<std::chrono::nanoseconds> budget;
  std::string until_metric;
  double until_interval = 0;  // as a fraction of the median; 0: all repeats are made
  std::string results = "penstock-results";
  SweepSlurm slurm;
};

// invalid_argument names the file, the key, and the valid keys where it is unknown. What the command makes of
// its options is not looked at.
Result<SweepSpec> read_sweep_file(const std::filesystem::path& file);
// The same from text; `file` is for messages.
Result<SweepSpec> parse_sweep(const std::string& text, std::string_view file);

}  // namespace penstock
