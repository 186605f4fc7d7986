#include "results/sweep/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "results/sweep/child.hpp"
#include "results/sweep/state.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 12> kEndedStates{
    "COMPLETED", "CANCELLED", "FAILED",  "TIMEOUT",       "NODE_FAIL",    "PREEMPTED",
    "BOOT_FAIL", "DEADLINE",  "REVOKED", "OUT_OF_MEMORY", "SPECIAL_EXIT", "LAUNCH_FAILED"};
constexpr std::array<std::string_view, 4> kWaitingStates{"PENDING", "CONFIGURING", "REQUEUED",
                                                         "REQUEUE_HOLD"};

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kJournalPoll{250};  // pause between two reads of the journal's size, which are cheap
// First pause between two queries to Slurm's controller, which are more expensive. Later pauses are longer.
constexpr milliseconds kFirstSlurmPoll{1000};
constexpr milliseconds kLongestSlurmPoll{10'000};
constexpr int kMostUnknownAnswers = 6;  // after this many answers "unknown" in a row, a job counts as over

// The output of a tool, or "" if it fails.
std::string answer_of(const std::vector<std::string>& argv) {
  const Result<ToolOutput> answer = run_tool(argv);
  return answer.ok() && answer->exit_code == 0 ? answer->out : "";
}

std::string value_after(const std::string& text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string::npos) return "";
  const auto begin = at + key.size();
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

// Puts a value for an #SBATCH line in quotes if it has blanks. In a file name, '%' is doubled, since sbatch
// gives a single '%' a meaning of its own.
std::string quoted(const std::string& text, bool is_file_name) {
  std::string value;
  for (const char c : text) value += is_file_name && c == '%' ? "%%" : std::string(1, c);
  return value.find(' ') == std::string::npos ? value : "\"" + value + "\"";
}

}  // namespace

Result<void> check_slurm() {
  for (const std::string_view needed : {"sbatch", "squeue", "srun"})
    if (program_in_path(needed).empty())
      return make_error(Errc::unsupported,
                        "--slurm needs Slurm's commands, and '{}' is not installed: run it on a login node, "
                        "or without --slurm",
                        needed);
  return success();
}

std::string own_slurm_job() {
  const char* const job = std::getenv("SLURM_JOB_ID");
  return job == nullptr ? "" : job;
}

fs::path batch_file(const SweepSpec& spec) {
  return fs::path(spec.results) / fmt::format("sweep-{}.sh", spec.name);
}

fs::path batch_log(const SweepSpec& spec) {
  return fs::path(spec.results) / fmt::format("sweep-{}.log", spec.name);
}

std::string batch_script(const SweepSpec& spec, const std::vector<SweepCell>& cells,
                         const std::vector<std::string>& line) {
  uint64_t nodes = 1;
  uint64_t per_node = std::max<uint64_t>(1, spec.tasks_per_node);
  for (const SweepCell& cell : cells) nodes = std::max(nodes, cell.nodes);
  for (const SweepCell& cell : cells) {
    const uint64_t cell_nodes = std::max<uint64_t>(1, cell.nodes);
    per_node = std::max(per_node, (cell.ranks + cell_nodes - 1) / cell_nodes);
  }
  std::error_code ignored;
  std::string script = fmt::format(
      "#!/bin/sh\n# The sweep '{}': its runs, one after another in one allocation. To continue an unfinished "
      "sweep, submit this script again.\n",
      spec.name);
  const auto option = [&](std::string_view name, const std::string& value, bool is_file_name = false) {
    if (!value.empty()) script += fmt::format("#SBATCH --{}={}\n", name, quoted(value, is_file_name));
  };
  option("job-name", "sweep-" + spec.name);
  option("nodes", std::to_string(nodes));
  option("ntasks-per-node", std::to_string(per_node));
  script += "#SBATCH --exclusive\n";
  option("time", spec.slurm.time);
  option("partition", spec.slurm.partition);
  option("account", spec.slurm.account);
  option("chdir", fs::current_path(ignored).string());
  option("output", fs::absolute(batch_log(spec), ignored).string(), true);
  script += "#SBATCH --open-mode=append\n";
  for (const std::string& word : spec.slurm.options) script += fmt::format("#SBATCH {}\n", word);
  return script + fmt::format("exec {}\n", shell_line(line));
}

Result<std::string> submit_batch(const fs::path& script) {
  const std::vector<std::string> argv{"sbatch", "--parsable", script.string()};
  PENSTOCK_ASSIGN(const ToolOutput answer, run_tool(argv));
  if (answer.exit_code != 0)
    return make_error(Errc::io, "sbatch refuses {}: {}", script.string(),
                      answer.err.empty() ? answer.out : answer.err);
  // sbatch prints the number of the job in its last line: "12" or "12;cluster". Programs of the site that
  // filter jobs may print other lines before it.
  const std::string last_line_text = answer.out.substr(answer.out.find_last_of('\n') + 1);
  std::string job = last_line_text.substr(0, last_line_text.find(';'));
  if (job.empty() || job.find_first_not_of("0123456789") != std::string::npos)
    return make_error(Errc::io, "sbatch printed no job ID: {}", answer.out);
  return job;
}

std::string inspect_job(const std::string& job) {
  std::string state = answer_of({"squeue", "--noheader", "--jobs=" + job, "--format=%T (%r)"});
  if (state.ends_with(" (None)")) state.resize(state.size() - 7);
  if (state.empty())
    state = value_after(answer_of({"scontrol", "--oneliner", "show", "job", job}), "JobState=");
  if (state.empty())
    state =
        answer_of({"sacct", "--noheader", "--allocations", "--parsable2", "--jobs=" + job, "--format=State"});
  return state;
}

JobPhase job_phase(std::string_view state) {
  const auto starts_with_state = [&](std::string_view known) { return state.starts_with(known); };
  if (state.empty()) return JobPhase::unknown;
  if (std::any_of(kEndedStates.begin(), kEndedStates.end(), starts_with_state)) return JobPhase::ended;
  if (std::any_of(kWaitingStates.begin(), kWaitingStates.end(), starts_with_state)) return JobPhase::waiting;
  return JobPhase::running;  // COMPLETING, SUSPENDED and other states before the end count as running
}

bool is_running(const std::string& job) {
  return inspect_job(job).starts_with("RUNNING");
}

std::optional<double> job_seconds_left(const std::string& job) {
  return parse_slurm_time(answer_of({"squeue", "--noheader", "--jobs=" + job, "--format=%L"}));
}

std::optional<double> parse_slurm_time(std::string_view text) {
  double seconds = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto days = parse_count(text.substr(0, dash));
    if (!days.ok()) return std::nullopt;
    seconds = double(*days);
    text = text.substr(dash + 1);
    if (std::count(text.begin(), text.end(), ':') != 2) return std::nullopt;
    seconds *= 24;
  } else if (std::count(text.begin(), text.end(), ':') == 0) {
    return std::nullopt;
  }
  bool is_first = true;
  while (!text.empty()) {
    const auto colon = text.find(':');
    const auto number = parse_count(text.substr(0, colon));
    if (!number.ok()) return std::nullopt;
    seconds = (is_first ? seconds : seconds * 60) + double(*number);
    is_first = false;
    text = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  }
  return seconds;
}

Result<std::string> follow_job(const std::string& job, const SweepSpec& spec, uint64_t turns, bool progress) {
  Progress line(progress, fmt::format("sweep {}, job {}", spec.name, job), turns, "turns");
  uint64_t turns_shown = 0;
  int unknown_answers = 0;
  milliseconds pause = kFirstSlurmPoll;
  auto next_query = Clock::now();
  bool had_ended_before = false;
  bool has_ended = false;
  uintmax_t journal_bytes = 0;  // size of the journal when it was last read; it only grows
  while (true) {
    PENSTOCK_TRY(check_interrupt());
    std::error_code unreadable;
    const uintmax_t bytes =
        std::filesystem::file_size(SweepState::journal_file(spec.results, spec.name), unreadable);
    if (unreadable || bytes == journal_bytes) {
      // The journal has not changed since it was read, so its history is still known.
    } else if (const auto history = SweepState::read_history(spec.results, spec.name); history.ok()) {
      journal_bytes = bytes;
      const uint64_t turns_done = history->turns.size();
      if (turns_done > turns_shown) line.advance(turns_done - turns_shown);
      turns_shown = std::max(turns_shown, turns_done);
      has_ended = history->end && history->end->job == job;
    }
    if ((has_ended && !had_ended_before) || Clock::now() >= next_query) {
      const std::string state = inspect_job(job);
      const JobPhase phase = job_phase(state);
      const std::string state_text = phase == JobPhase::unknown ? "unknown" : state;
      line.set_note(state_text);
      unknown_answers = phase == JobPhase::unknown ? unknown_answers + 1 : 0;
      if (phase == JobPhase::ended || unknown_answers >= kMostUnknownAnswers) return state_text;
      pause = std::min(pause * 3 / 2, kLongestSlurmPoll);
      next_query = Clock::now() + (has_ended ? kFirstSlurmPoll : pause);
    }
    had_ended_before = has_ended;
    PENSTOCK_TRY(sleep_until(Clock::now() + kJournalPoll));
  }
}

}  // namespace penstock
