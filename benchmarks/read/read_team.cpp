#include "benchmarks/read/read_team.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::hours kNoBound{24 * 365};
constexpr double kMostPasses = 1e12;
constexpr std::chrono::seconds kUntimedAtLeast{30};
constexpr int kUntimedTimes = 10;

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

ReadSpec next_pass(const RepeatPlan& plan, const RunTally& so_far, bool emptied) {
  ReadSpec pass = plan.spec;
  const std::chrono::nanoseconds gone = nanoseconds(so_far.elapsed_s);
  if (emptied) pass.max_passes = 1;
  pass.first_pass = plan.spec.first_pass.value_or(0) + so_far.passes;
  pass.measured_before = nanoseconds(so_far.wall_s);
  pass.ramp = std::max(plan.spec.ramp - gone, std::chrono::nanoseconds(0));
  if (const std::chrono::nanoseconds limit = time_limit(plan.spec.end); limit.count() != 0)
    pass.end =
        with_time_limit(plan.spec.end, std::max(limit + plan.spec.ramp - gone, std::chrono::nanoseconds(1)));
  return pass;
}

}  // namespace

RankShare ReadTeam::share(std::uint64_t shift) const {
  return {.rank = static_cast<std::uint64_t>(ranks_.rank()),
          .ranks = static_cast<std::uint64_t>(ranks_.size()),
          .shift = shift};
}

RunTally ReadTeam::run(const ReadSpec& spec, const Mine& mine) {
  if (alone()) return mine(spec);
  const bool by_time = spec.max_passes == 0 && time_limit(spec.end).count() == 0;
  const double wanted_s = std::chrono::duration<double>(shortest(spec.end) + spec.ramp).count();
  const SignalsForAll signals(ranks_);
  RunTally all;
  ReadSpec leg = spec;
  Result<void> together;
  leg.at_gate = [&] { together = ranks_.barrier(); };
  if (std::holds_alternative<Stonewall>(spec.end))
    leg.at_stonewall = [&](std::uint64_t taken) { return reduced(taken, Reduction::max); };
  if (by_time) {
    leg.max_passes = 1;
    if (std::holds_alternative<Passes>(leg.end)) leg.end = Passes{kNoBound};
  }
  while (true) {
    all.append(joined(mine(leg)));
    if (!together.ok() && !all.failure) all.failure = together.error();
    if (!by_time || all.failure || stopped_ || all.passes == 0 || all.elapsed_s >= wanted_s) return all;
    const double a_pass_s = std::max(all.elapsed_s / static_cast<double>(all.passes), 1e-9);
    leg.max_passes = static_cast<std::uint64_t>(
        std::clamp(std::ceil((wanted_s - all.elapsed_s) / a_pass_s), 1.0, kMostPasses));
    leg.measured_before = spec.measured_before + nanoseconds(all.wall_s);
    leg.ramp = std::max(spec.ramp - nanoseconds(all.elapsed_s), std::chrono::nanoseconds(0));
    if (spec.first_pass) leg.first_pass = *spec.first_pass + all.passes;
  }
}

RunTally ReadTeam::joined(const RunTally& mine) {
  const Result<GatheredJson> said = gather_json(ranks_, mine.packed(), [](const std::vector<Json>& each) {
    std::vector<RunTally> tallies;
    tallies.reserve(each.size());
    for (const Json& one : each) tallies.push_back(RunTally::unpacked(one));
    return RunTally::over_ranks(tallies).packed();
  });
  if (!said.ok()) {
    RunTally none;
    none.failure = said.error();
    return none;
  }
  stopped_ |= said->signal != 0;
  return RunTally::unpacked(said->json);
}

std::optional<RepeatFigures> ReadTeam::repeat(Tier& tier, CacheControl& cache, const RepeatPlan& plan) {
  RepeatFigures figures;
  figures.device_bytes = 0;
  const std::chrono::nanoseconds wanted = std::max(time_limit(plan.spec.end), shortest(plan.spec.end));
  const Clock::time_point latest = Clock::now() + kUntimedAtLeast + kUntimedTimes * wanted;
  for (bool first = true;; first = false) {
    if (plan.note) plan.note("preparing the cache");
    const Result<CacheOutcome> prepared = prepare(cache);
    if (!prepared.ok()) {
      if (first) return std::nullopt;
      break;
    }
    if (first) figures.cache = prepared->state;
    judge(figures.verdict, figures.reason, prepared->verdict, prepared->reason);
    const bool emptied = prepared->state.method == "evict" || prepared->state.method == "drop";
    if (plan.note) plan.note(plan.what);
    const ReadProgress before{figures.tally.elapsed_s, figures.tally.samples, figures.tally.bytes};
    ReadObserver observer;
    if (plan.observer)
      observer = [&](const ReadProgress& now) {
        plan.observer(
            {before.elapsed_s + now.elapsed_s, before.samples + now.samples, before.bytes + now.bytes});
      };
    const std::uint64_t moved = tier.backend->moved_bytes().read;
    const std::optional<std::uint64_t> device = device_bytes_read();
    const RunTally tally = run(next_pass(plan, figures.tally, emptied),
                               [&](const ReadSpec& pass) { return plan.run(pass, observer); });
    std::optional<std::uint64_t> fetched;
    if (const auto device_after = device_bytes_read(); device && device_after)
      fetched = *device_after - *device;
    fetched = sum(fetched);
    figures.read_call_bytes += sum(tier.backend->moved_bytes().read - moved);
    if (!fetched) figures.device_bytes.reset();
    if (figures.device_bytes) *figures.device_bytes += *fetched;
    figures.tally.append(tally);
    if (tally.failure || stopped() || !emptied) break;
    if (figures.tally.wall_s >= std::chrono::duration<double>(wanted).count()) break;
    if (any(Clock::now() >= latest)) break;
  }
  return figures;
}

Result<CacheOutcome> ReadTeam::prepare(CacheControl& cache) {
  PreparedTogether prepared = prepare_together(ranks_, cache, who_prepares_);
  stopped_ |= prepared.signal != 0;
  return std::move(prepared.outcome);
}

std::uint64_t ReadTeam::reduced(std::uint64_t mine, Reduction how) {
  // A transport that fails here fails in the next run(), which can say so.
  static_cast<void>(ranks_.all_reduce(std::span(&mine, 1), how).ok());
  return mine;
}

std::uint64_t ReadTeam::sum(std::uint64_t mine) {
  return reduced(mine, Reduction::sum);
}

std::optional<std::uint64_t> ReadTeam::sum(std::optional<std::uint64_t> mine) {
  const bool missing = any(!mine);
  const std::uint64_t all = sum(mine.value_or(0));
  return missing ? std::nullopt : std::optional(all);
}

bool ReadTeam::any(bool mine) {
  return reduced(mine ? 1 : 0, Reduction::max) != 0;
}

bool ReadTeam::stopped() const {
  return alone() ? interrupted() : stopped_;
}

}  // namespace penstock
