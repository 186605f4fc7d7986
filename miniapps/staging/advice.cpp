#include "miniapps/staging/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/utc_time.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

constexpr int kResamples = 400;
constexpr double kLowestPercentile = 2.5;
constexpr double kHighestPercentile = 97.5;

// How many requests per epoch are for bytes that are not in the page cache.
double uncached_requests(const FileThatWasRead& file) {
  return file.requests * (1 - file.cached);
}

// The read times of both tiers: one time for each cell (a number of threads and a read size). The times are
// the medians, the medians shifted by their errors, or means of repeats drawn at random.
struct TierTimes {
  CellTimes slow;
  CellTimes fast;
};

class Advisor {
 public:
  Advisor(const SessionWork& work, const TierSpeeds& speeds, const AdviceRequest& request)
      : work_(work),
        speeds_(speeds),
        request_(request),
        program_{.threads = double(request.threads != 0 ? request.threads : work.threads),
                 .think_s = work.think_s},
        medians_{median_times(speeds.slow), median_times(speeds.fast)} {}

  void make_items() {
    for (const FileThatWasRead& file : work_.files) {
      StagingItem& item = items_.emplace_back();
      item.bytes = file.bytes;
      item.first_ns = file.first_ns;
      add(item.slow, speeds_.slow.reads_of(file.request_bytes), uncached_requests(file));
      add(item.fast, speeds_.fast.reads_of(file.request_bytes), uncached_requests(file));
      item.saved_s = slow_time(item.slow, medians_).seconds(program_.threads) -
                     fast_time(item.fast, medians_).seconds(program_.threads);
    }
  }

  StagingProblem problem(uint64_t capacity) const {
    return {.items = items_,
            .capacity = capacity,
            .epoch = [this](const ReadDemand& slow, const ReadDemand& fast) {
              return epoch(slow, fast, medians_);
            }};
  }

  double epoch(const ReadDemand& slow, const ReadDemand& fast, const TierTimes& times) const {
    return epoch_seconds(slow_time(slow, times), fast_time(fast, times), program_);
  }

  Result<PolicyOutcome> outcome(std::string_view policy, uint64_t capacity) const {
    PENSTOCK_ASSIGN(const StagingPolicy choose, parse_policy(policy));
    const StagingProblem all = problem(capacity);
    PolicyOutcome outcome{.policy = std::string(policy), .chosen = choose(all)};
    for (const size_t i : outcome.chosen) outcome.bytes += items_[i].bytes;
    outcome.after_s = all.epoch_with(outcome.chosen);
    outcome.gain = all.epoch_with({}) / outcome.after_s - 1;
    return outcome;
  }

  // Calculates the gain and its interval, which covers three uncertainties:
  // 1. The noise of the repeats: they are drawn at random 400 times.
  // 2. The overlap of the tiers: for each draw, the gain is calculated without overlap and with the greatest
  //    possible overlap.
  // 3. The errors of the medians: the times of both tiers are shifted by them, in opposite directions. The
  //    errors of different read sizes are not assumed to cancel: the files were chosen by these same times,
  //    so the choice prefers sizes where noise favours the fast tier.
  PredictedGain predict(const PolicyOutcome& outcome) const {
    ReadDemand slow{};
    ReadDemand fast{};
    ReadDemand all{};  // the demand on the slow tier if nothing is staged
    ReadDemand nothing{};
    add_demands(items_, outcome.chosen, slow, fast);
    add_demands(items_, {}, all, nothing);
    PredictedGain gain{
        .before_s = epoch(all, nothing, medians_), .after_s = outcome.after_s, .gain = outcome.gain};
    const RandomStream random(request_.seed, "staging gain");
    uint64_t drawn_count = 0;
    const auto draw = [&](size_t n) { return size_t(random.below(drawn_count++, n)); };
    std::vector<double> low_gains;
    std::vector<double> high_gains;
    for (int i = 0; i < kResamples; ++i) {
      const TierTimes times{drawn_times(speeds_.slow, draw), drawn_times(speeds_.fast, draw)};
      const double with_overlap = epoch(all, nothing, times) / epoch(slow, fast, times) - 1;
      const double without_overlap =
          epoch_without_overlap(all, nothing, times) / epoch_without_overlap(slow, fast, times) - 1;
      low_gains.push_back(std::min(with_overlap, without_overlap));
      high_gains.push_back(std::max(with_overlap, without_overlap));
    }
    const CellTimes slow_errors = time_errors(speeds_.slow);
    const CellTimes fast_errors = time_errors(speeds_.fast);
    const auto gain_at = [&](double sign) {
      const TierTimes times{shift_times(medians_.slow, slow_errors, sign),
                            shift_times(medians_.fast, fast_errors, -sign)};
      return epoch(all, nothing, times) / epoch(slow, fast, times) - 1;
    };
    gain.low = std::min({percentile(low_gains, kLowestPercentile), gain_at(-1), gain.gain});
    gain.high = std::max({percentile(high_gains, kHighestPercentile), gain_at(1), gain.gain});
    gain.copy_s = copy_seconds(outcome.chosen);
    const double saved_s = gain.before_s - gain.after_s;
    if (saved_s > 0) gain.break_even_epochs = gain.copy_s / saved_s;
    return gain;
  }

  LineFit slow_line() const { return line(speeds_.slow, medians_.slow); }
  LineFit fast_line() const { return line(speeds_.fast, medians_.fast); }
  double threads() const { return program_.threads; }

 private:
  DemandTime slow_time(const ReadDemand& demand, const TierTimes& times) const {
    return DemandTime(speeds_.slow, times.slow, demand);
  }
  DemandTime fast_time(const ReadDemand& demand, const TierTimes& times) const {
    return DemandTime(speeds_.fast, times.fast, demand);
  }
  double epoch_without_overlap(const ReadDemand& slow, const ReadDemand& fast, const TierTimes& times) const {
    return epoch_seconds_without_overlap(slow_time(slow, times), fast_time(fast, times), program_);
  }

  // The seconds that the copy of the chosen files takes. Each copying thread reads a whole file, then writes
  // it, then reads it back, so these times add up. The part of a file that is in the page cache takes no time
  // to read on the slow tier.
  double copy_seconds(const Chosen& chosen) const {
    ReadDemand read{};
    ReadDemand write{};
    for (const size_t i : chosen) {
      const auto bytes = double(items_[i].bytes);
      add(read, speeds_.slow.reads_of(bytes), 1 - work_.files[i].cached);
      add(write, speeds_.fast.reads_of(bytes));
    }
    double seconds = slow_time(read, medians_).seconds(request_.copy_threads) +
                     fast_time(write, medians_).seconds(request_.copy_threads);
    for (size_t k = 0; k < speeds_.fast.write_s.size(); ++k) seconds += write[k] * speeds_.fast.write_s[k];
    return seconds;
  }

  LineFit line(const SpeedTable& table, const CellTimes& times) const {
    size_t nearest = 0;
    for (size_t i = 0; i < table.threads.size(); ++i)
      if (table.threads[i] <= program_.threads) nearest = i;
    return fit_line(table, times, nearest);
  }

  const SessionWork& work_;
  const TierSpeeds& speeds_;
  const AdviceRequest& request_;
  const ProgramThreads program_;
  const TierTimes medians_;
  std::vector<StagingItem> items_;
};

std::string epochs_text(double epochs) {
  const auto whole_epochs = uint64_t(std::ceil(epochs));
  return count_of(whole_epochs, "epoch");
}

// Why staging does not help; "" if it helps.
std::string why_not(const Advice& advice, const SessionWork& work, const AdviceRequest& request) {
  const PredictedGain& gain = advice.plan.predicted;
  const double bytes = double(std::max<uint64_t>(work.bytes(), 1));
  if (work.cached_bytes() >= 0.99 * bytes)
    return "its files are already in this machine's page cache, so no tier would be faster; to assume an "
           "empty cache: --cache cold";
  if (advice.capacity == 0) return "the fast tier has no free space";
  if (advice.outcomes.front().chosen.empty()) {
    const bool fits = std::any_of(work.files.begin(), work.files.end(),
                                  [&](const FileThatWasRead& file) { return file.bytes <= advice.capacity; });
    return fits ? "the fast tier reads no file faster than the slow one"
                : "no file fits into the free space of the fast tier";
  }
  if (gain.gain < kLeastGain)
    return fmt::format("the gain would be {}, at the cost of a copy", signed_percent(gain.gain));
  if (gain.low <= 0)
    return fmt::format("a gain is not certain: {} to {}", signed_percent(gain.low),
                       signed_percent(gain.high));
  if (request.epochs != 0 && gain.break_even_epochs > double(request.epochs))
    return fmt::format("copying takes {:.3g} s and pays off after {}, and {} remain", gain.copy_s,
                       epochs_text(gain.break_even_epochs), request.epochs);
  return "";
}

}  // namespace

std::optional<double> observed_over_model(const Advice& advice, const SessionWork& work) {
  const double model_s = advice.plan.predicted.before_s;
  if (work.observed_s <= 0 || model_s <= 0 || advice.plan.threads != work.threads) return std::nullopt;
  return work.observed_s / model_s;
}

std::string signed_percent(double part) {
  return fmt::format("{:+.1f}%", part * 100);
}

Result<Advice> advise(const SessionWork& work, const TierSpeeds& speeds, const AdviceRequest& request,
                      uint64_t free_bytes) {
  Advisor advisor(work, speeds, request);
  advisor.make_items();
  Advice advice;
  advice.slow = advisor.slow_line();
  advice.fast = advisor.fast_line();
  const double room = free_bytes == UINT64_MAX ? 1e19 : double(free_bytes) * kUsableShare;
  advice.capacity = uint64_t(std::min(double(request.capacity), room));
  PENSTOCK_ASSIGN(PolicyOutcome wanted, advisor.outcome(request.policy, advice.capacity));
  advice.outcomes.push_back(std::move(wanted));
  for (const char* other : {"density", "threshold=2MB", "best-single", "first-come"}) {
    if (request.policy == other) continue;
    PENSTOCK_ASSIGN(PolicyOutcome alternative, advisor.outcome(other, advice.capacity));
    advice.outcomes.push_back(std::move(alternative));
  }
  StagingPlan& plan = advice.plan;
  plan.id = random_id(16);
  plan.made_at = utc_now();
  plan.policy = request.policy;
  plan.capacity_bytes = advice.capacity;
  plan.threads = unsigned(advisor.threads());
  const PolicyOutcome& requested = advice.outcomes.front();
  plan.predicted = advisor.predict(requested);
  plan.reason = why_not(advice, work, request);
  plan.should_stage = plan.reason.empty();
  if (!plan.should_stage) return advice;
  plan.reason = fmt::format("an epoch takes {:.4g} s instead of {:.4g} s", plan.predicted.after_s,
                            plan.predicted.before_s);
  for (const size_t i : requested.chosen)
    plan.files.push_back({work.files[i].name, work.files[i].bytes, work.files[i].mtime_ns});
  return advice;
}

}  // namespace penstock
