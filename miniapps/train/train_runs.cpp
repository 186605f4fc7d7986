#include "miniapps/train/train_runs.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/find_accelerators.hpp"
#include "miniapps/train/train_input.hpp"
#include "miniapps/train/train_metrics.hpp"

namespace penstock {
namespace {

// Of the run that was last added to the record; every run of a search adds one.
std::optional<double> latest(const Record& record, const std::string& metric) {
  const auto at = record.metrics.find(metric);
  if (at == record.metrics.end() || at->second.samples.empty()) return std::nullopt;
  return at->second.samples.back();
}

// A run that says nothing about how many accelerators it feeds.
bool failed(const Record& record) {
  return verdict_exit_code(record.verdict) != 0;
}

}  // namespace

struct TrainRuns::Search {
  // Why that many accelerators were not fed.
  struct Miss {
    std::string_view by;  // "input": they waited; "client": this machine was too busy; "memory": for batches
    double utilization = 0;
  };
  const Tier& tier;
  CellEnd end = CellEnd::done;
  bool broken = false;                     // the last trial failed: there is no more to find
  std::map<std::uint64_t, Miss> missed{};  // by their number, the last miss
  std::uint64_t most_fed = 0;              // in one run

  // Of a search that does not come to its end: what is known so far, of each of some ranks.
  std::string so_far(int ranks) const {
    const auto first_missed =
        std::find_if(missed.begin(), missed.end(), [&](const auto& miss) { return miss.first > most_fed; });
    return (most_fed == 0 ? "no number of accelerators was"
                          : count_of(most_fed, "accelerator") + (most_fed == 1 ? " was" : " were")) +
           " fed in a run" + (ranks == 1 ? "" : " by each rank") +
           (first_missed == missed.end() ? "" : ", " + format_count(first_missed->first) + " were not");
  }
};

// Whether samples are used where the tier has them: on all ranks, or on none.
Result<bool> TrainRuns::all_in_place(const Tier& tier) {
  if (setup_.treats().slot_bytes() != 0) return false;
  const std::string_view why = why_copied(setup_, corpus_, tier);
  std::uint64_t can = why.empty() ? 1 : 0;
  PENSTOCK_TRY(setup_.ranks->all_reduce(std::span(&can, 1), Reduction::min));
  if (can == 0 && tier.backend->caps().zero_copy && reported_copied_.insert(tier.name).second)
    note("samples of '" + tier.name +
         "' are copied, and not used in place: " + std::string(why.empty() ? "another rank has to" : why));
  return can != 0;
}

// On all ranks, or on none.
Result<void> TrainRuns::make_pool(const Tier& tier) {
  PENSTOCK_ASSIGN(const bool in_place, all_in_place(tier));
  const BatchShape shape = batch_shape(setup_, corpus_, in_place);
  if (pool_ && pool_->shape() == shape) return success();
  pool_.reset();
  Result<BatchPool> made = BatchPool::make(shape, setup_.pool_prefetch());
  PENSTOCK_TRY(agree(*setup_.ranks, outcome_of(made)));
  pool_ = *std::move(made);
  return success();
}

Result<CellEnd> TrainRuns::train(const Tier& tier, Trial& trial) {
  PENSTOCK_TRY(make_pool(tier));
  return measure_training(setup_, corpus_, tier, *pool_, trial);
}

// After a call that hangs the ranks make no more calls of each other than they must.
Result<CellEnd> TrainRuns::keep(Trial trial, CellEnd end) {
  if (verdict_exit_code(trial.record().verdict) == 1 && !interrupted())
    warn(trial.record().tiers.value("data", Json::object()).value("name", "") + ": " + trial.record().reason);
  const Result<void> looked = end == CellEnd::done ? run_.inspect_ranks() : success();
  run_.keep(std::move(trial));
  if (!looked.ok()) return looked.error();
  return end;
}

Result<CellEnd> TrainRuns::measure(const Tier& tier) {
  run_.measured_tier(tier);
  Trial trial = run_.trial();
  Result<CellEnd> measured = train(tier, trial);
  if (measured.ok()) return keep(std::move(trial), *measured);
  trial.fail(measured.error());
  run_.keep(std::move(trial));
  return measured;
}

void TrainRuns::skip(const Tier& tier, const std::string& why) {
  Trial trial = run_.trial();
  trial.parameter("app", setup_.app->name);
  trial.parameter("tier", tier.name);
  trial.tier("data", tier);
  trial.verdict(Verdict::skipped, why);
  run_.keep(std::move(trial));
}

// One more run, which adds to `trial`.
Result<bool> TrainRuns::feeds(Search& search, std::uint64_t accelerators, Trial& trial) {
  setup_.accelerators = accelerators;
  if (const Result<void> pool = make_pool(search.tier); !pool.ok()) {
    if (pool.error().code != Errc::exhausted) return pool.error();
    search.missed[accelerators] = {.by = "memory"};
    return false;
  }
  const Result<CellEnd> trained = train(search.tier, trial);
  if (!trained.ok() && trained.error().code == Errc::exhausted) {
    search.missed[accelerators] = {.by = "memory"};
    return false;
  }
  PENSTOCK_TRY(trained);
  search.end = *trained;
  const Record& record = trial.record();
  if (search.end == CellEnd::stuck || failed(record)) {
    search.broken = true;
    return make_error(Errc::io, record.reason);
  }
  // Of several ranks the least busy one counts.
  const std::optional<double> least = latest(record, "accelerator_utilization_min");
  const double utilization = least ? *least : latest(record, "accelerator_utilization").value_or(0);
  if (latest(record, "step_overshoot").value_or(0) > setup_.overshoot_tolerance()) {
    search.missed[accelerators] = {.by = "client", .utilization = utilization};
    return false;
  }
  if (utilization >= setup_.busy_at_least) {
    search.most_fed = std::max(search.most_fed, accelerators);
    return true;
  }
  search.missed[accelerators] = {.by = "input", .utilization = utilization};
  return false;
}

// As many as leave a run two steps: utilization leaves the first one out. A cold cache is one for an epoch.
std::uint64_t TrainRuns::most_to_try(const Sampler& sampler) const {
  const std::uint64_t batches = samples_an_epoch(setup_, sampler) / setup_.batch;
  const bool one_step_an_epoch_is_enough = setup_.limits.epochs == 0 || setup_.limits.epochs > 1;
  return one_step_an_epoch_is_enough ? batches : batches / 2;
}

// A run is one epoch, which has one step of even one accelerator.
Error TrainRuns::too_few_samples(std::uint64_t samples) const {
  const bool cold = setup_.cache == CacheRequest::cold;  // whatever the user says of epochs
  std::string remedy = cold ? "" : "more --epochs";
  if (samples >= 2)
    remedy = "--batch " + std::to_string(samples / 2) + " or smaller" + (cold ? "" : ", or " + remedy);
  return make_error(Errc::invalid_argument,
                    "'" + corpus_.name + "' has " + format_count(samples) +
                        (setup_.ranks->size() == 1 ? " samples" : " samples for each rank") +
                        ", too few for two steps of --batch " + std::to_string(setup_.batch) +
                        " in one epoch" + (cold ? ", behind which no cache is cold" : "") +
                        (remedy.empty() ? "" : ": choose " + remedy));
}

Result<CellEnd> TrainRuns::find_accelerators(const Tier& tier) {
  run_.measured_tier(tier);
  setup_.accelerators = 1;
  PENSTOCK_ASSIGN(const Sampler sampler, make_sampler(setup_, corpus_));
  const std::uint64_t most = most_to_try(sampler);
  if (most == 0) return too_few_samples(samples_an_epoch(setup_, sampler));

  Search search{.tier = tier};
  Trial trial = run_.trial();
  Result<std::uint64_t> fed = most_fed(most, [&](std::uint64_t n) -> Result<bool> {
    trial = run_.trial();
    return feeds(search, n, trial);
  });
  std::uint64_t counted = 0;  // what the trial's runs have
  if (fed.ok() && *fed > 0) {
    fed = most_fed_in_a_row(*fed, kInARow, [&](std::uint64_t n) -> Result<bool> {
      if (std::exchange(counted, n) != n) trial = run_.trial();
      return feeds(search, n, trial);
    });
  }
  if (!fed.ok()) {
    if (!search.broken) trial.fail(fed.error());
    trial.parameter("fed_so_far", search.most_fed * static_cast<std::uint64_t>(setup_.ranks->size()));
    note("the search ended early: " + search.so_far(setup_.ranks->size()) + "; the record has its last runs");
    PENSTOCK_ASSIGN(const CellEnd kept, keep(std::move(trial), search.end));
    return search.broken ? Result<CellEnd>(kept) : fed.error();
  }
  trial.sample(train_metrics::kAcceleratorsFed, static_cast<double>(*fed) * setup_.ranks->size());
  if (const auto more = search.missed.find(*fed + 1); more != search.missed.end()) {
    trial.parameter("one_more_missed_by", more->second.by);
    if (more->second.by == "input") trial.sample(train_metrics::kOneMore, more->second.utilization);
  }
  if (*fed == most) trial.parameter("accelerators_at_most", most);
  return keep(std::move(trial), CellEnd::done);
}

}  // namespace penstock
