// The way from a measurement to a record file: a Run makes Trials, and each Trial becomes a Record.
//
// A Run is one call of a measuring command. It passes on what users must know to the `log` and `warn` of its
// context. A Trial is one cell of the run: it takes the parameters and raw samples, and holds the worst
// verdict with its reason. Even a failed cell becomes a record, with the reason, so that no cell is missing
// in the results. Only one thread at a time may use a Run or a Trial.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/environment.hpp"
#include "results/record/record.hpp"
#include "results/record/time_plan.hpp"

namespace penstock {

class Trial {
 public:
  void parameter(std::string_view name, Json value) {
    record_.parameters[std::string(name)] = std::move(value);
  }
  void tier(std::string_view role, const Tier& tier);
  void cache(Json state) { record_.cache = std::move(state); }    // cache_json()
  void corpus(Json facts) { record_.corpus = std::move(facts); }  // corpus_json()
  // Adds a series of amounts over time: `values` has one amount for each interval of `interval_s` seconds.
  void series(std::string_view name, double interval_s, std::vector<double> values) {
    series(name, Series{interval_s, std::move(values)});
  }
  void series(std::string_view name, Series series) { record_.series[std::string(name)] = std::move(series); }
  void pair(std::string_view suite, uint64_t index, std::string_view arm);

  // Adds one more raw sample of a metric. If the metric is a family, its name has a star, which `part`
  // replaces.
  void sample(const MetricInfo& metric, double value) { sample(metric, "", value); }
  void sample(const MetricInfo& family, std::string_view part, double value);

  // Adds a verdict. The record gets the worst of all verdicts, with its reason (add_verdict() in record.hpp).
  void verdict(Verdict verdict, std::string_view reason);
  void fail(const Error& error);

  const Record& record() const { return record_; }

 private:
  friend class Run;
  Record record_;
};

class Run {
 public:
  // Starts a run: inspects the environment once and checks that records can be written. Takes `--results`,
  // `--label`, `--pair` and `--json` from the context. What `context` refers to must outlive the run.
  // Collective.
  // The options in the context become the first parameters: every option with a value, and each option of
  // role `work` even without a value (as false or null). Left out are options that all measuring commands
  // have, unless their role is `work`. A value has the type of the option. In a name '-' becomes '_'. A
  // duration is in seconds, and its name ends with "_s".
  static Result<Run> begin(const CommandContext& context);

  int ranks() const { return context_.communicator.size(); }

  // The time plan of the command. Records that are added after TimePlan::settle() have it as
  // environment.plan.
  TimePlan& plan() { return plan_; }

  // Makes a trial with this run's command line, seed, labels, environment and parameters.
  Trial trial() const;
  // Takes a finished trial, so that finish() writes its record. With --json, rank 0 prints the record now.
  // The command's table must declare all metrics of the trial; an assertion checks it. If the user has
  // stopped the program, the verdict of the trial becomes `interrupted`. The record says for how long a
  // processor quota kept the processes of the cgroup from running (environment.throttled_s; absent if that is
  // unknown). If that is 5% of the time that the quota allows or more, the verdict becomes client_bound.
  // So it does if the process got SIGCONT since the trial before (environment.continued), which continues one
  // that was stopped.
  void add(Trial trial);
  std::span<const Record> records() const { return records_; }

  // Measures the clock offsets of all ranks once more, if the job has several ranks; begin() measured them
  // first. Records that are added from now on have both measurements. Call it when the measured work has
  // ended. Collective.
  Result<void> inspect_ranks();

  // Adds a remark to later records (environment.warnings) if the results folder is on the same device as this
  // tier. The figures are not affected, because the record file is written after the measurement. Only a
  // results folder inside the tier is also a warning: a scan would find the records.
  // Also makes the tier one of the live_tiers of the context. So the tier must outlive the run.
  // Rank 0 also logs the tier's remarks. add() logs those that came up later, during the measurement.
  void check_tier(const Tier& tier);

  // Writes the record file of this run, logs its path and returns it. Writes nothing and returns "" if there
  // is no record, and on all ranks but rank 0. If the user has stopped the program, but no record has the
  // verdict `interrupted`, it first adds a record with that verdict and without metrics.
  Result<std::string> finish();

  // The exit code of the command, from the exit codes of the verdicts of its records: 1 if one of them is 1;
  // otherwise 77 if one of them is 77; otherwise 0.
  int exit_code() const;

 private:
  explicit Run(const CommandContext& context);
  // Returns the names of those parameters that describe the work, in their order.
  std::vector<std::string> work_of(const Json& parameters) const;
  bool root() const { return context_.communicator.root(); }
  void add_throttling(Trial& trial);
  void add_stops(Trial& trial);
  void log_remark(const std::string& tier, const std::string& remark);

  CommandContext context_;
  TimePlan plan_;
  std::string results_folder_;
  std::map<std::string, OptionRole> roles_;  // parameter name -> role of its option
  Record prototype_;                         // the fields that all records of the run have in common
  // The value of environment.ranks in the records; [] on all ranks but rank 0.
  Json rank_records_ = Json::array();
  std::vector<Record> records_;
  std::vector<std::string> warnings_;
  // While these exist, other threads read the counters of the measured tiers (LiveTiers).
  std::vector<std::shared_ptr<void>> watched_tiers_;
  std::set<std::string> logged_remarks_;
  // When the previous trial was added, and for how long the cgroup's quota had kept this process from running
  // until then.
  std::chrono::steady_clock::time_point last_added_ = std::chrono::steady_clock::now();
  std::optional<double> last_throttled_s_;  // absent: unknown
  unsigned last_continued_ = times_continued();
};

}  // namespace penstock
