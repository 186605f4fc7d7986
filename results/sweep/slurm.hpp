// The words that a sweep exchanges with Slurm: a batch script, and questions after jobs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "results/sweep/plan.hpp"
#include "results/sweep/spec.hpp"

namespace penstock {

// unsupported, saying which program is not here.
Result<void> check_slurm();

// The job in whose allocation this process runs; "" in none.
std::string own_slurm_job();

// The script of a sweep's job, and what the job says.
std::filesystem::path batch_file(const SweepSpec& spec);
std::filesystem::path batch_log(const SweepSpec& spec);

// One exclusive allocation of the largest number of nodes, in which `line` works through the sweep.
std::string batch_script(const SweepSpec& spec, const std::vector<SweepCell>& cells,
                         const std::vector<std::string>& line);

// sbatch: the number of the job.
Result<std::string> submit_batch(const std::filesystem::path& script);

enum class JobPhase : std::uint8_t { waiting, running, over, unknown };
// Slurm's words for the state of a job, "RUNNING" or "PENDING (Resources)"; "" where it knows no such job.
std::string inspect_job(const std::string& job);
JobPhase job_phase(std::string_view words);
bool is_running(const std::string& job);
// Until the job's time limit; nothing where there is none, or Slurm does not say.
std::optional<double> seconds_of_job_left(const std::string& job);
// "29:59", "1-02:03:04"; nothing for UNLIMITED and the like.
std::optional<double> parse_slurm_time(std::string_view text);

// Waits until the job is over, interrupted, or unknown to Slurm. With `progress` a line on stderr: its phase,
// and the turns done of `turns`.
Result<std::string> follow_job(const std::string& job, const SweepSpec& spec, std::uint64_t turns,
                               bool progress);

}  // namespace penstock
