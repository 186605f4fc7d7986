#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "results/record/json_members.hpp"
#include "results/record/time_plan.hpp"
#include "results/sweep/prepare.hpp"
#include "results/sweep/runner.hpp"
#include "results/sweep/slurm.hpp"
#include "results/sweep/spec.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr OptionSpec kSweepOptions[] = {
    {.name = "dry-run",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "what would be run and how long it takes, nothing more; with --slurm the batch script",
     .group = "Sweep"},
    {.name = "results",
     .role = OptionRole::output,
     .value = "DIR",
     .help = "folder for the records and the journal (default: the one in the file, else penstock-results)",
     .group = "Sweep"},
    {.name = "budget",
     .role = OptionRole::repeat,
     .type = OptionType::duration,
     .value = "TIME",
     .help = "start no run that is expected to exceed TIME (default: the one in the file)",
     .group = "Sweep"},
    kTimeLimitOption,
    {.name = "slurm",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "run in one exclusive Slurm allocation: submit, follow and collect; resume what was interrupted",
     .group = "Slurm"},
    {.name = "resubmit",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "0",
     .help = "resubmit automatically, at most N times, while runs are left",
     .group = "Slurm",
     .at_least = 0},
    kMetricsPortOption,
};

class Sweep {
 public:
  explicit Sweep(const CommandContext& context) : context_(context) {}

  Result<int> run() {
    PENSTOCK_TRY(prepare());
    const bool uses_slurm = context_.options.flag("slurm");
    if (context_.options.flag("dry-run")) return uses_slurm ? print_script() : print_plan();
    if (uses_slurm) PENSTOCK_TRY(check_slurm());
    return uses_slurm && work_.job.empty() ? run_on_cluster() : run_here();
  }

 private:
  const SweepSpec& spec() const { return work_.spec; }

  Result<void> prepare() {
    work_.log = note;
    file_ = context_.positionals[0];
    PENSTOCK_ASSIGN(work_.spec, read_sweep_file(file_));
    if (context_.options.given("results")) work_.spec.results = context_.options.text("results");
    if (context_.options.given("budget")) work_.spec.budget = context_.options.duration("budget");
    PENSTOCK_TRY(prepare_work(work_, context_, file_));
    constexpr uint64_t kLeastRepeatsForInterval = 6;
    if (spec().until_interval > 0 && spec().repeats < kLeastRepeatsForInterval)
      warn(fmt::format("{}: 'until' needs six repeats at least, and there are {}", file_, spec().repeats));
    work_.uses_srun = work_.uses_srun || context_.options.flag("slurm");
    return success();
  }

  Result<int> run_here() {
    PENSTOCK_ASSIGN(SweepState state, open_sweep(work_, context_, file_));
    if (spec().budget) work_.budget_s = std::chrono::duration<double>(*spec().budget).count();
    if (!work_.job.empty()) limit_to_allocation();
    if (state.history().turns.empty()) expect_times(work_, context_);
    PENSTOCK_TRY(limit_time(state.history()));
    const size_t turns_before = state.history().turns.size();
    if (turns_before > 0)
      note(fmt::format("continuing the sweep '{}': {} done", spec().name,
                       count_of(turns_before, "turn is", "turns are")));
    PENSTOCK_ASSIGN(const SweepEnd end, run_sweep(work_, state, context_.output));
    return conclude(state.history(), end.turns_left, end.reason);
  }

  // Prints how long the sweep takes, if that is long. Applies --time-limit: fails with invalid_argument if
  // not even one turn fits.
  Result<void> limit_time(const SweepHistory& history) {
    constexpr double kLongSweep_s = 10;
    const SweepTimes times(history);
    const TimeRange left = time_left(work_, history, times);
    if (left.high_s > kLongSweep_s && (context_.output.progress || context_.output.logs_steps))
      note(fmt::format("plan: {} for {}", to_text(left), count_of(turns_left(work_, history), "turn")));
    if (!context_.options.given("time-limit")) return success();
    const double limit_s = std::chrono::duration<double>(context_.options.duration("time-limit")).count();
    if (!work_.budget_s || limit_s - process_seconds() < *work_.budget_s) {
      work_.budget_s = limit_s - process_seconds();
      work_.budget_reason = kEndedByTimeLimit;
    }
    double shortest_turn_s = left.high_s;
    for (const SweepCell& cell : work_.cells)
      shortest_turn_s = std::min(shortest_turn_s, times.turn(cell).middle_s());
    if (turns_left(work_, history) > 0 && shortest_turn_s > *work_.budget_s)
      return make_error(Errc::invalid_argument,
                        "--time-limit {:g}s is too short for one turn, which takes about {}: give at least "
                        "--time-limit {:.0f}s",
                        limit_s, rough_duration(shortest_turn_s),
                        std::ceil(1.2 * shortest_turn_s + process_seconds() + 1));
    if (left.high_s > *work_.budget_s)
      note(
          fmt::format("--time-limit {:g}s leaves out the turns that do not fit; the same command makes them "
                      "later",
                      limit_s));
    return success();
  }

  // In a Slurm allocation, limits the budget so that the sweep ends 5 seconds before Slurm ends the
  // allocation.
  void limit_to_allocation() {
    constexpr double kAllocationMargin_s = 5;
    const std::optional<double> job_left_s = job_seconds_left(work_.job);
    if (!job_left_s || (work_.budget_s && *work_.budget_s <= *job_left_s - kAllocationMargin_s)) return;
    work_.budget_s = *job_left_s - kAllocationMargin_s;
    work_.budget_reason = kEndedByAllocation;
  }

  // The functions below run on a login node and submit the sweep to Slurm.

  std::vector<std::string> job_command_line() const {
    std::error_code ignored;
    std::vector<std::string> line{
        work_.program.string(), "sweep", fs::absolute(file_, ignored).string(), "--slurm", "--results",
        spec().results};
    if (context_.options.given("budget"))
      line.insert(line.end(), {"--budget", fmt::format("{}ns", context_.options.duration("budget").count())});
    if (work_.no_config) line.emplace_back("--no-config");
    return line;
  }

  std::string script() const { return batch_script(spec(), work_.cells, job_command_line()); }

  Result<int> print_script() const {
    print_text(script());
    return 0;
  }

  // Returns the number of the job that was submitted last. "" if that job is neither waiting nor running, or
  // if there is none. Slurm forgets a job some time after its end, so a job of unknown state counts as ended.
  Result<std::string> active_job() const {
    const auto history = SweepState::read_history(spec().results, spec().name);
    if (!history.ok() && history.error().code != Errc::not_found) return history.error();
    if (!history.ok() || history->job.empty()) return std::string();
    const JobPhase phase = job_phase(inspect_job(history->job));
    if (phase == JobPhase::unknown)
      note(fmt::format("the state of job {} is unknown to Slurm: it counts as ended", history->job));
    return phase == JobPhase::waiting || phase == JobPhase::running ? history->job : std::string();
  }

  // Submits a job that runs the sweep, and returns the job's number. Submits nothing and returns "" if there
  // are no turns left to make.
  Result<std::string> submit() {
    PENSTOCK_ASSIGN(SweepState state, open_sweep(work_, context_, file_));
    if (turns_left(work_, state.history()) == 0) return std::string();
    const fs::path file = batch_file(spec());
    PENSTOCK_TRY(write_whole_file(file.string(), "the batch script", script()));
    PENSTOCK_ASSIGN(std::string job, submit_batch(file));
    PENSTOCK_TRY(state.record_job(job));
    note(fmt::format("job {}: {} (its output: {})", job, file.string(), batch_log(spec()).string()));
    return job;
  }

  Result<int> run_on_cluster() {
    for (int64_t submissions = 0;; ++submissions) {
      PENSTOCK_ASSIGN(std::string job, active_job());
      if (!job.empty()) note(fmt::format("job {} is under way: following it", job));
      if (job.empty()) {
        PENSTOCK_ASSIGN(job, submit());
      }
      const auto history_before = SweepState::read_history(spec().results, spec().name);
      PENSTOCK_TRY(history_before);
      work_.seed = history_before->seed;
      work_.suite = history_before->suite;
      if (job.empty()) return conclude(*history_before, 0, "");
      const uint64_t total_turns = history_before->turns.size() + turns_left(work_, *history_before);
      const auto last_state = follow_job(job, spec(), total_turns, context_.output.progress);
      if (!last_state.ok()) {
        if (interrupted())
          note(fmt::format("job {} keeps running: the same command follows it again, `scancel {}` ends it",
                           job, job));
        return last_state.error();
      }
      PENSTOCK_ASSIGN(const SweepHistory history_after,
                      SweepState::read_history(spec().results, spec().name));
      const uint64_t left = turns_left(work_, history_after);
      if (left == 0) return conclude(history_after, 0, "");
      const bool ended_itself = history_after.end && history_after.end->job == job &&
                                history_after.end->reason != kEndedByInterrupt;
      const bool ended_by_budget = ended_itself && history_after.end->reason == kEndedByBudget;
      const bool made_progress = history_after.turns.size() > history_before->turns.size();
      if (!ended_by_budget && made_progress && submissions < context_.options.integer("resubmit")) {
        note(fmt::format("job {} ended as {}; {} left, submitting again", job, *last_state,
                         count_of(left, "turn is", "turns are")));
        continue;
      }
      const std::string ended_by =
          ended_itself ? history_after.end->reason : fmt::format("job {}, {}", job, *last_state);
      PENSTOCK_ASSIGN(const int code, conclude(history_after, left, ended_by));
      if (!made_progress)
        note(fmt::format("job {} completed nothing; its output is in {}", job, batch_log(spec()).string()));
      // If not the user's budget but something else ended the job, its work was cut off, so the exit code is
      // 1.
      return ended_by_budget ? code : 1;
    }
  }

  // The functions below print the plan and the results of the sweep.

  Result<int> print_plan() {
    SweepHistory history;
    if (auto known = SweepState::read_history(spec().results, spec().name); known.ok())
      history = *std::move(known);
    else if (known.error().code != Errc::not_found)
      return known.error();
    work_.seed = history.identity.is_null() ? spec().seed.value_or(0) : history.seed;
    work_.suite = history.identity.is_null() ? spec().name : history.suite;
    if (history.identity.is_null() && !spec().seed)
      note("the order is an example: the sweep draws another one, unless the file has a 'seed'");
    if (history.turns.empty()) expect_times(work_, context_);
    const SweepTimes times(history);
    const uint64_t left = turns_left(work_, history);
    const TimeRange time = time_left(work_, history, times);
    if (context_.output.json) {
      print_plan_lines(history);
      print_json(
          {{"kind", "plan"}, {"turns_left", left}, {"expected_s", Json::array({time.low_s, time.high_s})}});
      return 0;
    }
    const uint64_t total = left + history.turns.size();
    fmt::print("sweep {}: {}, {} at most{}; {} of {} left, {}\n", spec().name,
               count_of(work_.cells.size(), "cell"), count_of(spec().repeats, "repeat"),
               spec().arms.empty() ? "" : fmt::format(", {} arms", spec().arms.size()), left,
               count_of(total, "turn is", "turns are"), to_text(time));
    for_each_turn(history, [&](const SweepCell& cell, uint64_t round, size_t arm) {
      fmt::print("{}\n", shell_line(run_line(work_, cell, arm, round, spec().results, "{run}")));
    });
    return 0;
  }

  void print_plan_lines(const SweepHistory& history) const {
    for_each_turn(history, [&](const SweepCell& cell, uint64_t round, size_t arm) {
      Json json{{"kind", "run"}, {"cell", cell.key}, {"title", cell.title}, {"repeat", round}};
      if (!spec().arms.empty()) json["arm"] = spec().arms[arm].name;
      json["argv"] = run_line(work_, cell, arm, round, spec().results, "{run}");
      fmt::print("{}\n", one_line(json));
    });
  }

  template <class Take>
  void for_each_turn(const SweepHistory& history, Take handle_turn) const {
    for (uint64_t round = 0; round < spec().repeats; ++round)
      for (const size_t cell : round_order(work_.cells, work_.seed, round)) {
        if (history.has_turn(work_.cells[cell].key, round)) continue;
        for (const size_t arm : arm_order(spec(), work_.cells[cell], work_.seed, round))
          handle_turn(work_.cells[cell], round, arm);
      }
  }

  std::vector<std::string> record_folders() const {
    std::vector<std::string> folders;
    for (const SweepArm& arm : spec().arms)
      folders.push_back(SweepState::records_folder(spec().results, spec().name, arm.name).string());
    if (folders.empty()) folders.push_back(spec().results);
    return folders;
  }

  Result<int> conclude(const SweepHistory& history, uint64_t left, const std::string& why) const {
    const std::vector<SweepRow> rows = sweep_rows(spec(), work_.cells, history);
    const std::vector<std::string> folders = record_folders();
    const int code = sweep_exit_code(history);
    if (context_.output.json) {
      for (const SweepRow& row : rows) fmt::print("{}\n", sweep_row_line(row));
      const Json last{{"kind", "sweep"},    {"name", spec().name},
                      {"results", folders}, {"done", history.turns.size()},
                      {"left", left},       {"ended_by", why}};
      fmt::print("{}\n", one_line(last));
    } else if (!rows.empty()) {
      fmt::print("{}\n", sweep_table(rows, context_.output));
    }
    std::set<std::string> printed;
    for (const SweepRow& row : rows)
      if (!row.reason.empty() && verdict_exit_code(row.verdict) != 0 && printed.insert(row.reason).second)
        note(fmt::format("{}: {}: {}", row.cell->title, verdict_name(row.verdict), row.reason));
    if (left > 0)
      note(fmt::format("{} done and {} left (ended by: {}); the same command line continues",
                       count_of(history.turns.size(), "turn is", "turns are"), count_of(left, "is", "are"),
                       why));
    if (!context_.output.json) report_next_step(folders);
    return code;
  }

  void report_next_step(const std::vector<std::string>& folders) const {
    const std::string words = shell_line(folders);
    fmt::print("Records: {} (label sweep={})\nReport:  penstock report {} -o report.html\n", words,
               spec().name, words);
    if (folders.size() == 2) fmt::print("Compare: penstock compare {}\n", words);
  }

  const CommandContext& context_;
  std::string file_;
  SweepWork work_;
};

Result<int> run_sweep(const CommandContext& context) {
  return Sweep(context).run();
}

}  // namespace

extern const CommandInfo command_sweep;
const CommandInfo command_sweep{
    .name = "sweep",
    .summary =
        "runs a measuring command over a grid, interleaved in random order, resumable; also under Slurm",
    .options = kSweepOptions,
    .run = run_sweep,
    .synopsis = "penstock sweep FILE.yaml [--dry-run] [--slurm] [options]",
    .examples = {"penstock sweep threads.yaml                # every cell in turn; the same command resumes "
                 "after Ctrl-C",
                 "penstock sweep threads.yaml --slurm         # the same in one exclusive allocation, and "
                 "follows it"},
    .arguments = "FILE.yaml",
};

}  // namespace penstock
