// How long the parts of a read sweep are expected to take. A short look at each tier gives the figures.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

#include "benchmarks/read/read_sweep.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/time_range.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::milliseconds kCachedLook{5};  // short, so that it reads what the look before it read
constexpr double kMostLooking_s = 1;                 // for one tier; further thread counts are estimated
constexpr uint64_t kMostPreparedObjects = 20'000;    // of a corpus that is made cold for the look
constexpr double kPrepareObject_s = 60e-6;           // for one object, if it was not measured
constexpr double kSlowestBytes_per_s = 20e6;         // assumed if nothing could be read
// The most that a repeat takes beyond its wanted time (run_repeat()).
constexpr double kExtraRepeat_s = 30;
constexpr double kRepeatFactor = 10;

double as_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double since(Clock::time_point start) {
  return as_seconds(Clock::now() - start);
}

// The time of one run_repeat(). `pass_s`: of one pass. `prepare_s`: to prepare the cache once. If the cache
// is emptied, it is prepared before each pass.
double repeat_seconds(const ReadEnd& end, double pass_s, double prepare_s, bool empties_cache) {
  const double limit_s = as_seconds(time_limit(end));
  const double wanted_s = std::max(limit_s, as_seconds(shortest_time(end)));
  const double passes = std::max(1.0, std::ceil(wanted_s / pass_s));
  double total_s = prepare_s + (limit_s > 0 ? limit_s : passes * pass_s);
  if (empties_cache) total_s = passes * prepare_s + (limit_s > 0 ? limit_s : passes * pass_s);
  return std::min(total_s, kExtraRepeat_s + kRepeatFactor * wanted_s + pass_s + prepare_s);
}

// The same with the tolerance of an estimate.
TimeRange repeat_range(const ReadEnd& end, double pass_s, double prepare_s, bool empties_cache) {
  constexpr double kFaster = 0.75;
  constexpr double kSlower = 1.3;
  TimeRange range{1e300, 0};
  for (const double factor : {kFaster, 1.0, kSlower}) {
    const double expected_s = repeat_seconds(end, factor * pass_s, prepare_s, empties_cache);
    range.low_s = std::min(range.low_s, expected_s);
    range.high_s = std::max(range.high_s, expected_s);
  }
  // At least 3%, because threads start and end.
  return {range.low_s, std::max(range.high_s, 1.03 * range.low_s) + (kSlower - 1) / 2 * prepare_s};
}

}  // namespace

// Reads for a moment, and returns how long a whole pass takes at that rate; 0 if nothing could be read.
double ReadSweep::look(ReadTier& tier, unsigned threads, std::chrono::nanoseconds time) {
  if (!may_try_speed(tier.tier)) return 0;
  ReadSpec spec{.threads = threads, .max_passes = 1, .end = Duration{time}, .first_pass = 0};
  const RunTally tally = team_.run(spec, [&](const ReadSpec& mine) { return tier.engine->run(mine); });
  if (tally.failure || tally.samples == 0 || tally.wall_s <= 0) return 0;
  return double(samples_.size()) / double(tally.samples) * tally.wall_s;
}

// Estimates the times of a pass and of preparing the cache. The times of a pass are for options_.threads, and
// one more is for the warm-up pass.
void ReadSweep::estimate_pass_times(ReadTier& tier, std::vector<double>& pass_s, double& prepare_s) {
  const Clock::time_point start = Clock::now();
  const bool cold = options_.cache == CacheRequest::cold;
  const bool few_objects = manifest_.objects() <= kMostPreparedObjects;
  const double helpers = std::min<double>(options_.most_threads(), double(usable_cpus()));
  prepare_s = kPrepareObject_s * double(manifest_.objects()) / helpers;
  const auto prepare = [&] {
    if (options_.cache == CacheRequest::warm || !few_objects) return;  // warm: this would read everything
    const Clock::time_point begin = Clock::now();
    if (team_.prepare(*tier.cache).ok()) prepare_s = since(begin);
  };
  prepare();
  // Ranks of a collective read must make equally many reads, so there is no look of a given time.
  double warm_up_s = options_.collective ? 0 : look(tier, options_.most_threads(), kLook);
  if (warm_up_s <= 0) warm_up_s = double(manifest_.payload_bytes()) / kSlowestBytes_per_s;
  for (const unsigned threads : options_.threads) {
    double looked_s = 0;
    const bool time_is_left = team_.any_rank(since(start) < kMostLooking_s);
    if (!options_.collective && time_is_left && !team_.stopped()) {
      if (cold) prepare();
      looked_s = look(tier, threads, cold ? std::chrono::nanoseconds(kLook) : kCachedLook);
    }
    // Between "threads do not matter" and "half the threads, half the rate".
    const double slower = std::sqrt(double(options_.most_threads()) / threads);
    pass_s.push_back(std::max(1e-6, looked_s > 0 ? looked_s : warm_up_s * slower));
  }
  // Cold, the warm-up pass is like the others with as many threads.
  if (cold) warm_up_s = (warm_up_s + *std::min_element(pass_s.begin(), pass_s.end())) / 2;
  pass_s.push_back(warm_up_s);
}

TimeRange ReadSweep::ceiling_time(const ReadTier& tier, unsigned threads, double pass_s, double prepare_s,
                                  bool empties_cache) const {
  // Probes do not decode.
  const double fastest_s = options_.decode ? 0.1 * pass_s : 0.6 * pass_s;
  TimeRange sum;
  const auto add_probe = [&](std::chrono::nanoseconds time, bool is_queued) {
    const ReadEnd end = Passes{time};
    // Shorter passes need more preparations of the cache.
    const double of_fast_s = repeat_seconds(end, fastest_s, prepare_s, empties_cache);
    const double of_slow_s = repeat_seconds(end, 1.2 * pass_s, prepare_s, empties_cache);
    sum.low_s += std::min(of_fast_s, of_slow_s);
    sum.high_s += std::max(of_fast_s, of_slow_s);
    if (!is_queued || empties_cache) return;
    sum += {fastest_s, 1.2 * pass_s};  // its first pass may not count
  };
  const std::chrono::nanoseconds first_time = tier.yardsticks->first_probe_time();
  bool any_queued = false;
  for (const LoopShape& shape : tier.yardsticks->probe_series(threads)) {
    add_probe(first_time, shape.kind == LoopKind::queued);
    any_queued |= shape.kind == LoopKind::queued;
  }
  for (int again = 0; again < 2; ++again) add_probe(3 * first_time, any_queued);
  return sum;
}

Result<void> ReadSweep::plan_time(TimePlan& plan) {
  PENSTOCK_TRY(open_tiers());
  plan_ = &plan;
  const auto bytes_read = [this] {
    uint64_t sum = 0;
    for (const std::unique_ptr<ReadTier>& tier : tiers_) sum += tier->bytes_read();
    return sum;
  };
  const uint64_t bytes_before = bytes_read();
  const auto cells = double(cells_.size());
  TimeRange warm_ups;
  TimeRange repeats;
  TimeRange ceilings;
  for (const std::unique_ptr<ReadTier>& tier : tiers_) {
    std::vector<double> pass_s;
    double prepare_s = 0;
    if (progress_) progress_->set_note(tier->tier.name + ": estimating its speed");
    estimate_pass_times(*tier, pass_s, prepare_s);
    const bool empties_cache = tier->cache->empties_cache();
    const double warm_up_s = warm_up_limit().count() != 0 ? as_seconds(warm_up_limit()) : pass_s.back();
    warm_ups += {0.7 * warm_up_s, 1.3 * warm_up_s};
    for (size_t i = 0; i < options_.threads.size(); ++i) {
      repeats += repeat_range(options_.end, pass_s[i], prepare_s, empties_cache);
      ceilings += ceiling_time(*tier, options_.threads[i], pass_s[i], prepare_s, empties_cache);
    }
  }
  plan.count_read(team_.sum(bytes_read() - bytes_before));
  const double ramp_s = as_seconds(options_.ramp);
  const TimeRange repeat = 1 / cells * repeats;
  const uint64_t count = cells_.size() * options_.repeats;
  plan.add({.name = "warm-up",
            .asked = tiers_.size(),
            .each = 1.0 / double(tiers_.size()) * warm_ups,
            .least = tiers_.size()});
  plan.add({.name = "repeats",
            .asked = count,
            .each = repeat + TimeRange{ramp_s, ramp_s},
            .least = cells_.size(),
            .group = cells_.size()});
  if (options_.measure_baseline)
    plan.add({.name = "baseline", .asked = count, .each = repeat, .group = cells_.size()});
  if (options_.measure_ceiling)
    plan.add(
        {.name = "ceiling", .asked = cells_.size(), .each = 1 / cells * ceilings, .group = cells_.size()});
  return success();
}

bool ReadSweep::begin_part(std::string_view part, const ReadCell& cell, std::string_view what) {
  if (plan_ == nullptr) return true;
  return plan_->begin(
      part, fmt::format("{}, {}: {}", tiers_[cell.tier]->tier.name, count_of(cell.threads, "thread"), what));
}

}  // namespace penstock
