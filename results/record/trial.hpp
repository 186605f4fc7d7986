// The way from a measurement to a record file: Run, Trial, Record. There is no other.
//
// A Run is one call of a measuring command. It passes what users must know to the context's `log` and `warn`.
// A Trial is one cell of the run: it takes the parameters and raw samples, holds the worst verdict with its
// reason, and becomes a Record. Even a failed cell becomes a record, with the reason, so that no row is
// missing. Only one thread at a time may use a Run or a Trial.
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
  // Adds a series of amounts over time: `values` has the amount of each interval of `interval_s` seconds.
  void series(std::string_view name, double interval_s, std::vector<double> values) {
    record_.series[std::string(name)] = {interval_s, std::move(values)};
  }
  void pair(std::string_view suite, uint64_t index, std::string_view arm);

  // Adds one more raw sample of a metric. If the metric is a family (its name has a star), `part` replaces
  // the star.
  void sample(const MetricInfo& metric, double value) { sample(metric, "", value); }
  void sample(const MetricInfo& family, std::string_view part, double value);

  // Adds a verdict. Of all verdicts the worst wins, with its reason (add_verdict() in record.hpp).
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
  // `--label`, `--pair` and `--json` from the context. Also takes the first parameters from it: every option
  // with a value, and options of role `work` even without a value (false or null). Their values have the type
  // of the option, '-' in a name becomes '_', and durations are in seconds with "_s" at the end of the name.
  // What `context` refers to must outlive the run. Collective.
  static Result<Run> begin(const CommandContext& context);

  int ranks() const { return context_.communicator.size(); }

  // Makes a trial with this run's command line, seed, labels, environment and parameters.
  Trial trial() const;
  // Takes a finished trial, so that finish() writes its record. With --json, rank 0 prints the record now.
  // All its metrics must be declared in the command's table (asserted). If the user has stopped the program,
  // its verdict becomes `interrupted`.
  void add(Trial trial);
  std::span<const Record> records() const { return records_; }

  // Measures the clock offsets of all ranks once more, if the job has several ranks. begin() measured them
  // first. Records that are added from now on have both. Call it when the measurement has ended. Collective.
  Result<void> inspect_ranks();

  // Adds a warning to later records if the results folder is on the same device as this tier. The warning
  // also goes to the context's `warn`, but only in the run that makes the folder: the figures are not
  // affected, since the record file is written after the measurement. Rank 0 also logs the tier's remarks.
  void check_tier(const Tier& tier);

  // Writes the record file of this run, logs its path and returns it. Returns "" without writing if there is
  // no record or this is not rank 0. If the user has stopped the program and no record has the verdict
  // `interrupted`, it first adds a record with that verdict and without metrics.
  Result<std::string> finish();

  // The exit code of the command. If any record's verdict has the exit code 1, it is 1. Otherwise, if any has
  // 77, it is 77, and else 0.
  int exit_code() const;

 private:
  explicit Run(const CommandContext& context);
  // Which of these parameters describe the work, in their order.
  std::vector<std::string> work_of(const Json& parameters) const;
  bool root() const { return context_.communicator.root(); }

  CommandContext context_;
  std::string results_folder_;
  std::map<std::string, OptionRole> roles_;  // parameter name -> role of its option
  Record prototype_;                         // the fields that all records of the run have in common
  // The value of environment.ranks in the records; [] on all ranks but rank 0.
  Json rank_records_ = Json::array();
  std::vector<Record> records_;
  std::vector<std::string> warnings_;
};

}  // namespace penstock
