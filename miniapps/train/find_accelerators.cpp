#include "miniapps/train/find_accelerators.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/train_metrics.hpp"

namespace penstock {
namespace {

constexpr uint64_t kSearchSteps = 20;  // least number of steps in each run of --find-accelerators
constexpr std::chrono::duration<double> kSearchTime{2};

// Returns the metric's value in the latest run. The record has one value for each run that the search has
// made.
std::optional<double> latest_value(const Record& record, const std::string& metric) {
  const auto entry = record.metrics.find(metric);
  if (entry == record.metrics.end() || entry->second.samples.empty()) return std::nullopt;
  return entry->second.samples.back();
}

// What the search for the number of accelerators has found so far.
class AcceleratorSearch {
 public:
  AcceleratorSearch(TrainPlan& plan, const TrainOnce& train) : plan_(plan), train_(train) {}

  // Why a number of accelerators did not count as fed (kept busy).
  struct NotFed {
    // "input": the accelerators waited for batches. "client": this machine was too busy to emulate the
    // accelerators. "memory": there was too little memory for the batches.
    std::string_view cause;
    double utilization = 0;
  };
  bool stuck = false;
  bool run_failed = false;  // the last run failed, which ends the search
  // Each number of accelerators that was not kept busy when it was tried last, and the reason.
  std::map<uint64_t, NotFed> missed{};
  uint64_t most_fed = 0;  // the largest number that was fed in a run

  Result<bool> try_number(uint64_t accelerators, Trial& trial);
  std::string result_so_far() const;

 private:
  TrainPlan& plan_;
  const TrainOnce& train_;
};

// Says which numbers of accelerators were fed so far. It is a part of the message if the search ends early.
std::string AcceleratorSearch::result_so_far() const {
  const auto first_missed =
      std::find_if(missed.begin(), missed.end(), [&](const auto& miss) { return miss.first > most_fed; });
  return (most_fed == 0 ? "no number of accelerators was"
                        : count_of(most_fed, "accelerator") + (most_fed == 1 ? " was" : " were")) +
         " kept busy in a run" + (plan_.ranks->size() == 1 ? "" : " by each rank") +
         (first_missed == missed.end() ? "" : ", " + format_count(first_missed->first) + " were not");
}

// Makes one run with this number of accelerators and adds it to `trial`. Returns whether the accelerators
// were kept busy.
Result<bool> AcceleratorSearch::try_number(uint64_t accelerators, Trial& trial) {
  plan_.accelerators = accelerators;
  const Result<bool> trained = train_(trial);
  if (!trained.ok() && trained.error().code == Errc::exhausted) {
    missed[accelerators] = {.cause = "memory"};
    return false;
  }
  PENSTOCK_TRY(trained);
  stuck = !*trained;
  const Record& record = trial.record();
  if (stuck || verdict_exit_code(record.verdict) != 0) {
    run_failed = true;
    return make_error(Errc::io, record.reason);
  }
  // With several ranks, the rank with the lowest utilization decides whether the accelerators are fed.
  const std::optional<double> least_utilization = latest_value(record, "accelerator_utilization_min");
  const double utilization =
      least_utilization ? *least_utilization : latest_value(record, "accelerator_utilization").value_or(0);
  if (latest_value(record, "step_overshoot").value_or(0) > plan_.overshoot_tolerance()) {
    missed[accelerators] = {.cause = "client", .utilization = utilization};
    return false;
  }
  if (utilization >= plan_.required_utilization) {
    most_fed = std::max(most_fed, accelerators);
    return true;
  }
  missed[accelerators] = {.cause = "input", .utilization = utilization};
  return false;
}

// The largest number of accelerators to try. A run must have at least two steps, since utilization does not
// count the first one; a run of a single epoch must have both in that epoch. With a cold cache a run is one
// epoch.
uint64_t most_to_try(const TrainPlan& plan) {
  const uint64_t batches = plan.samples_an_epoch() / plan.batch;
  const bool one_step_an_epoch_is_enough = plan.limits.epochs == 0 || plan.limits.epochs > 1;
  return one_step_an_epoch_is_enough ? batches : batches / 2;
}

// The error if each run is one epoch, and even a single accelerator makes fewer than two steps in it.
Error too_few_samples(const TrainPlan& plan) {
  const uint64_t samples = plan.samples_an_epoch();
  // With a cold cache request_search() sets one epoch for each run, so more --epochs would not help.
  const bool cold_cache = plan.cache == CacheRequest::cold;
  std::string remedy = cold_cache ? "" : "more --epochs";
  if (samples >= 2)
    remedy = "--batch " + std::to_string(samples / 2) + " or smaller" + (cold_cache ? "" : ", or " + remedy);
  return make_error(Errc::invalid_argument,
                    "'" + plan.corpus.name + "' has " + format_count(samples) +
                        (plan.ranks->size() == 1 ? " samples" : " samples for each rank") +
                        ", too few for two steps of --batch " + std::to_string(plan.batch) + " in one epoch" +
                        (cold_cache ? ", and the cache is cold only for one epoch" : "") +
                        (remedy.empty() ? "" : ": choose " + remedy));
}

}  // namespace

Result<uint64_t> most_fed(uint64_t most, const KeepsBusy& feeds) {
  uint64_t fed_number = 0;
  uint64_t unfed_number = most + 1;
  while (unfed_number - fed_number > 1) {
    const bool doubling = unfed_number == most + 1;
    const uint64_t next = doubling ? std::min(std::max<uint64_t>(1, 2 * fed_number), most)
                                   : fed_number + (unfed_number - fed_number) / 2;
    PENSTOCK_ASSIGN(bool were_fed, feeds(next));
    if (!were_fed) {  // tries once more: a single slow run may be chance
      PENSTOCK_ASSIGN(were_fed, feeds(next));
    }
    (were_fed ? fed_number : unfed_number) = next;
  }
  return fed_number;
}

Result<uint64_t> most_fed_in_a_row(uint64_t from, unsigned in_a_row, const KeepsBusy& feeds) {
  for (uint64_t accelerators = from; accelerators > 0; --accelerators) {
    unsigned fed_runs = 0;
    while (fed_runs < in_a_row) {
      PENSTOCK_ASSIGN(const bool were_fed, feeds(accelerators));
      if (!were_fed) break;
      ++fed_runs;
    }
    if (fed_runs == in_a_row) return accelerators;
  }
  return uint64_t{0};
}

Result<bool> find_accelerators(TrainPlan& plan, const Run& run, const TrainOnce& train,
                               const KeepTrial& keep) {
  plan.accelerators = 1;
  PENSTOCK_TRY(check_epoch_size(plan));
  const uint64_t most = most_to_try(plan);
  if (most == 0) return too_few_samples(plan);

  AcceleratorSearch search(plan, train);
  Trial trial = run.trial();
  Result<uint64_t> fed = most_fed(most, [&](uint64_t n) -> Result<bool> {
    trial = run.trial();
    return search.try_number(n, trial);
  });
  uint64_t trial_accelerators = 0;  // number of accelerators in the runs that `trial` has
  if (fed.ok() && *fed > 0) {
    fed = most_fed_in_a_row(*fed, kRunsInARow, [&](uint64_t n) -> Result<bool> {
      if (std::exchange(trial_accelerators, n) != n) trial = run.trial();
      return search.try_number(n, trial);
    });
  }
  if (!fed.ok()) {
    if (!search.run_failed) trial.fail(fed.error());
    trial.parameter("fed_so_far", search.most_fed * uint64_t(plan.ranks->size()));
    PENSTOCK_ASSIGN(const bool ended, keep(std::move(trial), !search.stuck,
                                           "the search ended early: " + search.result_so_far() +
                                               "; the record contains its last runs"));
    return search.run_failed ? Result<bool>(ended) : fed.error();
  }
  trial.sample(train_metrics::kAcceleratorsFed, double(*fed) * plan.ranks->size());
  if (const auto one_more = search.missed.find(*fed + 1); one_more != search.missed.end()) {
    trial.parameter("one_more_missed_by", one_more->second.cause);
    if (one_more->second.cause == "input")
      trial.sample(train_metrics::kWithOneMore, one_more->second.utilization);
  }
  if (*fed == most) trial.parameter("accelerators_at_most", most);
  return keep(std::move(trial), true, "");
}

Result<void> request_search(const Options& options, const Accelerator& accelerator, TrainRequest& request) {
  const double step_s = std::chrono::duration<double>(accelerator.nominal_step()).count();
  if (step_s <= 0)
    return make_error(Errc::invalid_argument,
                      "--find-accelerators needs a step time: --accelerator emulated:step=10ms");
  if (options.given("accelerators"))
    return make_error(
        Errc::invalid_argument,
        "--find-accelerators searches for the number of accelerators: leave out --accelerators");
  for (const char* name : {"checkpoint-to", "checkpoint-every", "validation"})
    if (options.given(name))
      return make_error(Errc::invalid_argument,
                        "--find-accelerators only measures input: leave out --" + std::string(name));
  for (const char* name : {"jitter", "stdev"})
    if (request.accelerator.find(std::string(name) + "=") != std::string::npos)
      return make_error(Errc::invalid_argument,
                        "--find-accelerators does not support {}, because accelerators would wait for each "
                        "other and not for the tier: leave it out",
                        name);
  if (options.given("steps") && options.integer("steps") < 2)
    return make_error(Errc::invalid_argument, "--find-accelerators needs at least 2 --steps");
  if (!options.given("steps") && !options.given("epochs")) {
    request.limits = {.batches = std::max(kSearchSteps, uint64_t(std::ceil(kSearchTime.count() / step_s)))};
    request.enough_time = std::chrono::duration_cast<std::chrono::nanoseconds>(kSearchTime);
    request.enough_steps = kSearchSteps;
  }
  // A cold run must not be longer than one epoch: after the first epoch the cache is not cold any more.
  if (parse_cache_request(options.text("cache")) == CacheRequest::cold) request.limits.epochs = 1;
  request.searches_accelerators = true;
  if (request.required_utilization <= 0 || request.required_utilization > 1)
    return make_error(Errc::invalid_argument, "--au must be a fraction above 0 and up to 1, such as 0.9");
  return success();
}

}  // namespace penstock
