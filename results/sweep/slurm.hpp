// Uses Slurm for a sweep: writes a batch script, submits it, and queries the state of jobs.
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

// Checks that Slurm's programs are there. If one is missing, the error is `unsupported` and names it.
Result<void> check_slurm();

// The job in whose allocation this process runs; "" if in none.
std::string own_slurm_job();

// The paths of two files of a sweep's job: the batch script, and the file for its output.
std::filesystem::path batch_file(const SweepSpec& spec);
std::filesystem::path batch_log(const SweepSpec& spec);

// Makes the text of a batch script. The job of this script gets whole nodes for itself: as many as the cell
// with the most nodes needs. The script runs the sweep with the command line `line`.
std::string batch_script(const SweepSpec& spec, const std::vector<SweepCell>& cells,
                         const std::vector<std::string>& line);

// Submits the script with sbatch and returns the number of the job.
Result<std::string> submit_batch(const std::filesystem::path& script);

enum class JobPhase : uint8_t { waiting, running, ended, unknown };
// The state of a job as Slurm names it: "RUNNING" or "PENDING (Resources)". "" if Slurm does not know the
// job.
std::string inspect_job(const std::string& job);
JobPhase job_phase(std::string_view state);
bool is_running(const std::string& job);
// How many seconds are left until the job's time limit. Empty if the job has no limit, or if Slurm does not
// report it.
std::optional<double> job_seconds_left(const std::string& job);
// Converts Slurm's times, such as "29:59" and "1-02:03:04", to seconds. Empty for UNLIMITED and for any other
// text.
std::optional<double> parse_slurm_time(std::string_view text);

// Waits until the job is over or unknown to Slurm, and returns its last state. Errc::interrupted if this
// process is asked to stop; the job itself continues. With `progress` it shows a line on stderr: the state of
// the job, and how many of the `turns` are done.
Result<std::string> follow_job(const std::string& job, const SweepSpec& spec, uint64_t turns, bool progress);

}  // namespace penstock
