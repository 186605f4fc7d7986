// The only way from a measurement to a record file: Run, Trial, Record.
//
// A Run is one call of a measuring command. It tells the context's `log` and `warn` what users must know. A
// Trial is one cell of it: it takes the parameters and raw samples, holds the worst verdict with its reason,
// and becomes a Record. A failure becomes a record with a reason, so that no row is missing. Neither class is
// for several threads at once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/environment.hpp"
#include "results/record/record.hpp"

namespace penstock {

class Trial {
 public:
  void parameter(std::string_view name, Json value) {
    record_.parameters[std::string(name)] = std::move(value);
  }
  void tier(std::string_view role, const Tier& tier);
  void cache(Json state) { record_.cache = std::move(state); }    // cache_json()
  void corpus(Json facts) { record_.corpus = std::move(facts); }  // corpus_json()
  // Adds a series: `values` has one amount for each interval of `interval_s` seconds.
  void series(std::string_view name, double interval_s, std::vector<double> values) {
    record_.series[std::string(name)] = {interval_s, std::move(values)};
  }
  void pair(std::string_view suite, uint64_t index, std::string_view arm);

  // Adds one more raw sample of a metric. For a family, `part` replaces the star in the name.
  void sample(const MetricInfo& metric, double value) { sample(metric, "", value); }
  void sample(const MetricInfo& family, std::string_view part, double value);

  // The worst verdict given wins, with its reason (add_verdict() in record.hpp).
  void verdict(Verdict verdict, std::string_view reason);
  void fail(const Error& error);

  const Record& record() const { return record_; }

 private:
  friend class Run;
  Record record_;
};

class Run {
 public:
  // Starts a run: inspects the environment once and checks that records can be written. `--results`,
  // `--label`, `--pair` and `--json` come from the context. So do the first parameters: every option with a
  // value, and options of role `work` even without one (false or null). They are typed, '-' in a name becomes
  // '_', and durations are in seconds with "_s" at the end of the name. What `context` refers to must outlive
  // the run. Collective.
  static Result<Run> begin(const CommandContext& context);

  int ranks() const { return context_.communicator.size(); }

  Trial trial() const;  // has this run's command line, seed, labels, environment and resolved options
  // Takes a finished trial: finish() will write its record, and with --json rank 0 prints it now. All its
  // metrics must be declared in the command's table (asserted). If the user has stopped the program, its
  // verdict is `interrupted`.
  void add(Trial trial);
  std::span<const Record> records() const { return records_; }

  // If the job has several ranks: measures the clock offsets of all ranks again, after begin() did so first.
  // Records that are added from now on have both. Collective; call it when the measurement has ended.
  Result<void> inspect_ranks();

  // Adds a warning to later records if the results folder is on the same device as this tier. The figures are
  // not affected, since the file is written after the measurement. So only the run that makes the folder
  // shows the warning. Rank 0 also shows the tier's remarks.
  void check_tier(const Tier& tier);

  // Writes the record file of this run, logs its path and returns it. Returns "" without writing if there is
  // no record or this is not rank 0. If the user has stopped the program and no record has the verdict
  // `interrupted`, it first adds a record with that verdict and without metrics.
  Result<std::string> finish();

  // The exit code of the command: 1 if the verdict of any record has this exit code, else 77 if any has it,
  // else 0.
  int exit_code() const;

 private:
  explicit Run(const CommandContext& context);
  // The names of the parameters that are work, in order.
  std::vector<std::string> work_of(const Json& parameters) const;
  bool root() const { return context_.communicator.root(); }

  CommandContext context_;
  std::string results_folder_;
  std::map<std::string, OptionRole> roles_;  // parameter name -> role of its option
  Record prototype_;                         // what all records of the run have in common
  Json rank_records_ = Json::array();        // environment.ranks of the records; [] on ranks other than 0
  std::vector<Record> records_;
  std::vector<std::string> warnings_;
};

}  // namespace penstock
