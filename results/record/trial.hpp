// Run -> Trial -> Record: the only road from a measurement to a file.
//
// A Run is one invocation of a measuring command. A Trial is one cell of it: it carries the parameters, takes
// raw samples, keeps the worst verdict with its reason, and ends as a Record. A failure is a record with a
// reason, never a missing row.
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
  // What was done in each interval of `interval_s`.
  void series(std::string_view name, double interval_s, std::vector<double> values) {
    record_.series[std::string(name)] = {interval_s, std::move(values)};
  }
  void pair(std::string_view suite, std::uint64_t index, std::string_view arm);

  // One more raw sample of a metric, or of a family's metric with `part` for the star.
  void sample(const MetricInfo& metric, double value) { sample(metric, "", value); }
  void sample(const MetricInfo& family, std::string_view part, double value);

  // The worst verdict given wins, with its reason (judge() in record.hpp).
  void verdict(Verdict verdict, std::string_view reason);
  void fail(const Error& error);

  const Record& record() const { return record_; }

 private:
  friend class Run;
  Record record_;
};

class Run {
 public:
  // Looks at the environment once, and whether records can be written at all. `--results`, `--label`,
  // `--pair` and `--json` come from the context; so do the first parameters: every option with a value,
  // and those of role `work` without one too (false or null), typed, '-' as '_', durations in seconds with
  // "_s" at the end of the name. Collective.
  static Result<Run> begin(const CommandContext& context);

  int ranks() const { return communicator_->size(); }

  Trial trial() const;  // a cell with this run's command line, seed, labels, environment and resolved options
  // Done: its record will be written; with --json it is printed now. All its metrics are in the command's
  // table.
  void keep(Trial trial);
  std::span<const Record> records() const { return records_; }

  // Where the job has several ranks: who they are and how far their clocks lie apart, which begin() found and
  // this finds again, for the records that are kept from now on. Collective; call it when the measurement has
  // ended.
  Result<void> inspect_ranks();

  // Notes in every record when the results folder lies on this tier. Harmless to the figures, since the file
  // is written when the measurement has ended, so it is said once: by the run that makes the folder.
  void measured_tier(const Tier& tier);

  // Writes the one immutable record file of this run (nothing, and "", when there is no record or this is not
  // rank 0) and returns its path; prints it to stderr. A cell that is kept after the user stopped us is
  // `interrupted`; when none was, a record without metrics that says so comes last.
  Result<std::string> finish();

  // 1 if any verdict asks for that, else 77 if any does, else 0.
  int exit_code() const;

 private:
  Run() = default;
  std::vector<std::string> work_of(const Json& parameters) const;  // which of them are work, in their order
  Record prototype_;
  std::map<std::string, OptionRole> roles_;  // of the options, by the name of their parameter
  std::span<const MetricInfo> metrics_;
  std::span<const std::string_view> findings_;
  std::string results_;
  bool json_ = false;
  bool root_ = true;
  Communicator* communicator_ = nullptr;
  Json ranks_ = Json::array();  // on rank 0
  std::vector<Record> records_;
  std::vector<std::string> warnings_;
};

}  // namespace penstock
