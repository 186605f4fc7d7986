// Threads: only one thread calls these functions. It has at most one child process at a time.
// Lock: the caller holds the lock of the journal (SweepState).
// Memory: everything allocates.
// Ctrl-C: the runner passes the signal on to a run without a launcher, and sends SIGTERM to a launcher. It
// waits until the run has ended. Then it drops all runs of the unfinished turn, and run_sweep() returns with
// the reason. The command `after` gets no signal.
// Crash: a turn counts only after SweepState::record_turn() has synced it. The next sweep process makes all
// other turns again.
#include "results/sweep/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/subprocess.hpp"
#include "io_backends/core/utc_time.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/cells/cells.hpp"
#include "results/record/json_members.hpp"
#include "results/record/shared_metrics.hpp"
#include "results/record/trial.hpp"
#include "results/sweep/child.hpp"
#include "results/sweep/slurm.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Name of the file with a run's output; it is next to the run's records.
constexpr std::string_view kOutputFile = "output";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string arm_name(const SweepSpec& spec, size_t arm) {
  return arm < spec.arms.size() ? spec.arms[arm].name : "";
}

// The seed of all runs of one round. It is the same for all cells and arms: so if their results differ,
// different random orders are not the cause.
uint64_t round_seed(uint64_t seed, uint64_t round) {
  return RandomStream(seed, "runs").bits(round) & 0x7fffffffU;
}

std::string last_line(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string last_text;
  for (std::string line; std::getline(in, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) last_text = line;
  return last_text.substr(0, 2000);
}

// The arguments that the sweep itself adds to each run.
std::vector<std::string> arguments_of_run(const SweepWork& work, size_t arm, uint64_t round,
                                          const fs::path& results) {
  const SweepSpec& spec = work.spec;
  std::vector<std::string> arguments{"--label", "sweep=" + spec.name};
  if (!spec.arms.empty()) {
    const std::string& name = spec.arms[arm].name;
    arguments.insert(arguments.end(),
                     {"--label", "arm=" + name, "--pair", fmt::format("{},{},{}", work.suite, round, name)});
  }
  if (!sets_option(spec, arm, "seed"))
    arguments.insert(arguments.end(), {"--seed", std::to_string(round_seed(work.seed, round))});
  arguments.insert(arguments.end(), {"--results", results.string(), "--progress", "never"});
  if (work.no_config) arguments.emplace_back("--no-config");
  return arguments;
}

// The program that the arm runs: its own, or this program if it names none.
std::string program_of(const SweepWork& work, size_t arm) {
  const std::vector<SweepArm>& arms = work.spec.arms;
  return arm >= arms.size() || arms[arm].program.empty() ? work.program.string() : arms[arm].program;
}

// The programs of all arms, each with its size and time of change. run() compares them with those of the
// sweep's last start, to warn if a program was replaced.
std::map<std::string, std::string> programs_of(const SweepWork& work) {
  std::map<std::string, std::string> programs;
  const auto add = [&](const std::string& program) {
    std::error_code failed;
    const uintmax_t bytes = fs::file_size(program, failed);
    // The program is not a file here. Either it is found in PATH, or it is missing, and then its run will
    // fail.
    if (failed) return;
    const auto changed = fs::last_write_time(program, failed);
    programs[program] = fmt::format("{} bytes, changed {}", bytes, changed.time_since_epoch().count());
  };
  for (size_t arm = 0; arm < runs_per_turn(work.spec); ++arm) add(program_of(work, arm));
  return programs;
}

class Runner {
 public:
  Runner(const SweepWork& work, SweepState& state, const Output& output)
      : work_(work),
        state_(state),
        output_(output),
        times_(state.history()),
        progress_(output.progress && !output.logs_steps, "sweep " + work.spec.name, 0, ""),
        start_(Clock::now()) {}

  Result<SweepEnd> run() {
    const std::map<std::string, std::string> programs = programs_of(work_);
    for (const auto& [program, now] : programs)
      if (const auto known_program = state_.history().programs.find(program);
          known_program != state_.history().programs.end() && known_program->second != now)
        work_.warn(fmt::format(
            "'{}' is another program than it was: the turns that are done were measured with the old one",
            program));
    PENSTOCK_TRY(state_.record_start(work_.job, programs));
    SweepEnd end{.job = work_.job, .turns_left = 0, .reason = ""};
    PENSTOCK_ASSIGN(end.reason, all_rounds());
    end.turns_left = turns_left(work_, state_.history());
    PENSTOCK_TRY(state_.record_end(end));
    return end;
  }

 private:
  // Runs all rounds. If it ends early, returns the reason, otherwise "".
  Result<std::string> all_rounds() {
    for (uint64_t round = 0; round < work_.spec.repeats; ++round) {
      for (const size_t index : round_order(work_.cells, work_.seed, round)) {
        const SweepCell& cell = work_.cells[index];
        if (state_.history().has_turn(cell.key, round) || cell_is_settled(cell)) continue;
        if (interrupted()) return std::string(kEndedByInterrupt);
        if (work_.budget_s && seconds_since(start_) + times_.turn(cell).middle_s() > *work_.budget_s)
          return std::string(work_.budget_reason);
        PENSTOCK_ASSIGN(const bool turn_done, execute_turn(cell, round));
        if (!turn_done) return std::string(kEndedByInterrupt);
      }
    }
    return std::string();
  }

  bool cell_is_settled(const SweepCell& cell) {
    if (settled_cells_.contains(cell.key)) return true;
    if (!is_settled(work_.spec, turns_of(state_.history(), cell))) return false;
    settled_cells_.insert(cell.key);
    return true;
  }

  void show_progress(const SweepCell& cell) {
    if (!output_.progress && !output_.logs_steps) return;
    const SweepHistory& history = state_.history();
    const uint64_t total_turns = history.turns.size() + turns_left(work_, history);
    const std::string text =
        fmt::format("turn {} of {}, about {} left: {}", history.turns.size() + 1, total_turns,
                    rough_duration(time_left(work_, history, times_).middle_s()), cell.title);
    if (output_.logs_steps)
      work_.log(fmt::format("sweep {}: {}", work_.spec.name, text));
    else
      progress_.set_note(text);
  }

  // Runs one turn and enters it in the journal. If this process is asked to stop, it removes the runs of the
  // turn and returns false.
  Result<bool> execute_turn(const SweepCell& cell, uint64_t round) {
    show_progress(cell);
    SweepTurn turn{.cell = cell.key, .round = round, .runs = {}};
    for (const size_t arm : arm_order(work_.spec, cell, work_.seed, round)) {
      PENSTOCK_ASSIGN(std::optional<SweepRun> run, execute_run(cell, arm, round));
      if (!run) {
        for (const SweepRun& other : turn.runs) state_.remove_run(other.folder);
        return false;
      }
      turn.runs.push_back(*std::move(run));
    }
    times_.add(turn);
    // A turn counts only once record_turn() has made it durable.
    PENSTOCK_TRY(state_.record_turn(turn));
    if (output_.json) print_turn(cell, turn);
    return true;
  }

  // Makes one run in a folder of its own. If a signal ended the run, it is made once more. If this process
  // was asked to stop, or will soon be asked, removes the run and returns nothing.
  Result<std::optional<SweepRun>> execute_run(const SweepCell& cell, size_t arm, uint64_t round) {
    for (int attempt = 0;; ++attempt) {
      PENSTOCK_ASSIGN(const std::string folder, state_.run_folder());
      const fs::path run_folder = state_.run_path(folder);
      const std::vector<std::string> line = run_line(work_, cell, arm, round, run_folder, folder);
      const auto begin = Clock::now();
      PENSTOCK_ASSIGN(const int code,
                      run_child(line, run_folder / kOutputFile, cell.ranks > 0 ? SIGTERM : 0));
      SweepRun run;
      run.arm = arm_name(work_.spec, arm);
      run.folder = folder;
      run.seconds = seconds_since(begin);
      run.exit_code = code;
      PENSTOCK_TRY(clean_up(cell, folder));
      PENSTOCK_ASSIGN(RecordSet records, read_records(std::span(&run_folder, 1)));
      const bool ended_by_signal = was_ended_by_signal(code, records);
      // This process is to stop, so the run may have been cut off: it does not count. The next process of
      // this sweep makes the turn again.
      if (interrupted() || (ended_by_signal && will_be_stopped())) {
        state_.remove_run(folder);
        return std::optional<SweepRun>();
      }
      if (ended_by_signal && attempt == 0) {
        work_.warn(
            fmt::format("{}: this run was ended (exit code {}); it is made once more", cell.title, code));
        state_.remove_run(folder);
        continue;
      }
      if (work_.needs_first_result && state_.history().turns.empty())
        PENSTOCK_TRY(check_result(run, records));
      PENSTOCK_TRY(keep_records(run, records, cell, arm, round, line));
      count_run(run, records, round);
      return std::optional<SweepRun>(std::move(run));
    }
  }

  Result<void> clean_up(const SweepCell& cell, const std::string& folder) const {
    if (work_.spec.command_after_run.empty()) return success();
    const fs::path log = state_.run_path(folder) / "after";
    const std::vector<std::string> arguments{"sh", "-c", replace_run(work_.spec.command_after_run, folder)};
    PENSTOCK_ASSIGN(const int code, run_child(arguments, log, kNotSignalled));
    if (code != 0)
      work_.warn(fmt::format("{}: 'after' ended with exit code {}: {}", cell.title, code, last_line(log)));
    return success();
  }

  // Whether a signal ended the run, as its record or its exit code shows. When the allocation of a Slurm job
  // ends, srun may fail with any exit code. So in a Slurm job a run also counts as ended by a signal if it
  // left no record and has an unusual exit code.
  bool was_ended_by_signal(int code, const RecordSet& records) const {
    const bool record_is_interrupted =
        std::any_of(records.records.begin(), records.records.end(),
                    [](const StoredRecord& stored) { return stored.record.verdict == Verdict::interrupted; });
    return record_is_interrupted || code == 128 + SIGTERM || code == 128 + SIGINT || code == 128 + SIGKILL ||
           (!work_.job.empty() && records.records.empty() && code != 0 && code != 2 && code != 77);
  }

  // Whether the signal that ended a run will soon reach this process, too: a terminal, a launcher or a
  // cluster sends it to one process after another. Waits for up to one second to find out, in a Slurm job for
  // up to three.
  bool will_be_stopped() const {
    const auto deadline = Clock::now() + std::chrono::seconds(work_.job.empty() ? 1 : 3);
    while (!interrupted() && Clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return interrupted() || (!work_.job.empty() && !is_running(work_.job));
  }

  // Returns the error of a run that has no usable record, in the run's own words, and removes the run.
  Result<void> check_result(const SweepRun& run, const RecordSet& records) const {
    std::string reason = records.records.empty() ? last_line(state_.run_path(run.folder) / kOutputFile) : "";
    bool has_result = false;
    for (const StoredRecord& stored : records.records) {
      has_result = has_result || is_usable(stored.record);
      if (reason.empty()) reason = stored.record.reason;
    }
    if (has_result) return success();
    state_.remove_run(run.folder);
    return make_error(Errc::invalid_argument, "the run of '{}' has no result (exit code {}): {}",
                      run.arm.empty() ? work_.spec.command : run.arm, run.exit_code, reason);
  }

  Result<void> keep_records(SweepRun& run, RecordSet& records, const SweepCell& cell, size_t arm,
                            uint64_t round, const std::vector<std::string>& line) {
    const fs::path run_folder = state_.run_path(run.folder);
    if (records.records.empty()) {
      const std::string last_output = last_line(run_folder / kOutputFile);
      const Error why = make_error(run.exit_code == 77 ? Errc::unsupported : Errc::io,
                                   fmt::format("ended with exit code {} and no record{}{}", run.exit_code,
                                               last_output.empty() ? "" : ": ", last_output));
      work_.warn(fmt::format("{}: {}", cell.title, why.what));
      PENSTOCK_TRY(write_failure(run_folder, cell, arm, round, line, why));
      PENSTOCK_ASSIGN(records, read_records(std::span(&run_folder, 1)));
    }
    for (const fs::path& file : records.files) run.files.push_back(file.filename().string());
    run.figures = figures_of(records.records, work_.spec.until_metric, work_.command->metrics);
    for (const StoredRecord& stored : records.records) {
      if (work_.spec.until_metric.empty() || stored.record.metrics.empty() || reported_missing_metric_)
        continue;
      if (stored.record.metrics.contains(work_.spec.until_metric)) continue;
      std::vector<std::string_view> names;
      for (const auto& [name, metric] : stored.record.metrics) names.push_back(name);
      work_.warn(unknown_name("metric of 'until'", work_.spec.until_metric, names).what);
      reported_missing_metric_ = true;
    }
    return success();
  }

  // Adds a finished run to the activity of its tiers, which --metrics-port shows.
  void count_run(const SweepRun& run, const RecordSet& records, uint64_t round) {
    if (work_.live_tiers == nullptr) return;
    std::map<std::string, double> bytes_read;  // by tier; each record has the bytes of the whole run
    for (const StoredRecord& stored : records.records) {
      double& bytes = bytes_read[tier_name(stored.record)];
      bytes = std::max(bytes, metric_value(stored.record, shared_metrics::kTierBytesRead).value_or(0));
    }
    for (const auto& [name, bytes] : bytes_read) {
      Tier& tier = watched_tiers_[name];
      if (tier.name.empty()) {
        tier.name = name;
        watch_tokens_.push_back(work_.live_tiers->add(tier));
      }
      ++(run.exit_code == 0 ? tier.activity->operations : tier.activity->errors);
      tier.activity->repeat = round + 1;
      tier.activity->foreign_read_bytes += uint64_t(std::max(bytes, 0.0));
    }
  }

  // Writes a record for a run that left none. It has the parameters that the run itself would have recorded,
  // and the reason why the run failed.
  Result<void> write_failure(const fs::path& run_folder, const SweepCell& cell, size_t arm, uint64_t round,
                             const std::vector<std::string>& line, const Error& why) {
    std::vector<std::string> arguments = run_arguments(work_.spec, cell, arm, *work_.command);
    arguments.erase(arguments.begin());
    for (std::string& word : arguments) word = replace_run(std::move(word), run_folder.filename().string());
    const std::vector<std::string> added = arguments_of_run(work_, arm, round, run_folder);
    arguments.insert(arguments.end(), added.begin(), added.end());
    Result<CommandLine> parsed = parse_command_line(*work_.command, arguments, {});
    Record record;
    record.id = random_id(16) + "-0";
    record.started = utc_now();
    record.command = work_.spec.command;
    record.argv = line;
    record.verdict = why.code == Errc::unsupported ? Verdict::skipped : Verdict::failed;
    record.reason = why.what;
    record.label = {{"sweep", work_.spec.name}};
    if (parsed.ok()) {  // not ok if the arm has another program, with other options
      const std::unique_ptr<Communicator> communicator = single_process();
      const CommandContext context{.options = parsed->options,
                                   .positionals = parsed->arguments,
                                   .argv = line,
                                   .command = work_.spec.command,
                                   .output = {},
                                   .seed = round_seed(work_.seed, round),
                                   .communicator = *communicator,
                                   .findings = work_.command->findings};
      PENSTOCK_ASSIGN(const Run run, Run::begin(context));
      Trial trial = run.trial();
      trial.parameter("ranks", std::max<uint64_t>(1, cell.ranks));
      trial.fail(why);
      record = trial.record();
      record.id += "-0";
    }
    PENSTOCK_TRY(write_records(run_folder, std::span(&record, 1)));
    return success();
  }

  void print_turn(const SweepCell& cell, const SweepTurn& turn) const {
    for (const SweepRun& run : turn.runs) {
      Json json{{"kind", "run"}, {"cell", cell.key}, {"title", cell.title}, {"repeat", turn.round}};
      if (!run.arm.empty()) json["arm"] = run.arm;
      json["seconds"] = run.seconds;
      json["exit"] = run.exit_code;
      json["files"] = run.files;
      json["figures"] = Json::array();
      for (const SweepFigure& figure : run.figures) json["figures"].push_back(figure_json(figure));
      fmt::print("{}\n", one_line(json));
    }
    std::fflush(stdout);
  }

  const SweepWork& work_;
  SweepState& state_;
  const Output& output_;
  SweepTimes times_;
  Progress progress_;
  const Clock::time_point start_;
  std::set<std::string, std::less<>> settled_cells_;
  std::map<std::string, Tier> watched_tiers_;  // the tiers of finished runs, without back ends
  std::vector<std::shared_ptr<void>> watch_tokens_;
  bool reported_missing_metric_ = false;
};

}  // namespace

std::vector<std::string> run_line(const SweepWork& work, const SweepCell& cell, size_t arm, uint64_t round,
                                  const fs::path& results, std::string_view run) {
  const SweepSpec& spec = work.spec;
  std::vector<std::string> line = launcher_arguments(spec, cell, work.uses_srun, work.launcher);
  line.push_back(program_of(work, arm));
  for (std::string& word : run_arguments(spec, cell, arm, *work.command))
    line.push_back(replace_run(std::move(word), run));
  const std::vector<std::string> added = arguments_of_run(work, arm, round, results);
  line.insert(line.end(), added.begin(), added.end());
  return line;
}

uint64_t turns_left(const SweepWork& work, const SweepHistory& history) {
  uint64_t remaining_turns = 0;
  for (const SweepCell& cell : work.cells) {
    const std::vector<const SweepTurn*> turns = turns_of(history, cell);
    if (is_settled(work.spec, turns)) continue;
    for (uint64_t round = 0; round < work.spec.repeats; ++round)
      remaining_turns += history.has_turn(cell.key, round) ? 0U : 1U;
  }
  return remaining_turns;
}

TimeRange time_left(const SweepWork& work, const SweepHistory& history, const SweepTimes& times) {
  TimeRange sum;
  for (const SweepCell& cell : work.cells) {
    if (is_settled(work.spec, turns_of(history, cell))) continue;
    const TimeRange each = times.turn(cell);
    for (uint64_t round = 0; round < work.spec.repeats; ++round)
      if (!history.has_turn(cell.key, round)) sum += each;
  }
  return sum;
}

void expect_times(SweepWork& work, const CommandContext& context) {
  constexpr size_t kMostAsked = 12;
  const size_t every = (work.cells.size() + kMostAsked - 1) / kMostAsked;
  for (size_t i = 0; i < work.cells.size(); ++i) {
    SweepCell& cell = work.cells[i];
    if (i % every != 0) {
      cell.expected = work.cells[i - 1].expected;
      continue;
    }
    for (size_t arm = 0; arm < runs_per_turn(work.spec) && !interrupted(); ++arm) {
      const std::vector<std::string> line = run_arguments(work.spec, cell, arm, *work.command);
      cell.expected += run_time(*work.command, std::span(line).subspan(1), context);
    }
  }
}

Result<SweepEnd> run_sweep(const SweepWork& work, SweepState& state, const Output& output) {
  return Runner(work, state, output).run();
}

}  // namespace penstock
