#include "benchmarks/read/prepared_repeat.hpp"

#include <algorithm>

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kUntimedAtLeast{30};
constexpr int kUntimedTimes = 10;

ReadSpec next_pass(const RepeatPlan& plan, const RunTally& so_far, bool emptied) {
  ReadSpec pass = plan.spec;
  const std::chrono::nanoseconds gone(static_cast<std::int64_t>(so_far.elapsed_s * 1e9));
  if (emptied) pass.max_passes = 1;
  pass.first_pass = plan.spec.first_pass.value_or(0) + so_far.passes;
  pass.measured_before = std::chrono::nanoseconds(static_cast<std::int64_t>(so_far.wall_s * 1e9));
  pass.ramp = std::max(plan.spec.ramp - gone, std::chrono::nanoseconds(0));
  if (const std::chrono::nanoseconds limit = time_limit(plan.spec.end); limit.count() != 0)
    pass.end =
        with_time_limit(plan.spec.end, std::max(limit + plan.spec.ramp - gone, std::chrono::nanoseconds(1)));
  return pass;
}

}  // namespace

std::optional<RepeatFigures> run_repeat(Tier& tier, CacheControl& cache, ReadTeam& team,
                                        const RepeatPlan& plan) {
  RepeatFigures figures;
  figures.device_bytes = 0;
  const std::chrono::nanoseconds wanted = std::max(time_limit(plan.spec.end), shortest(plan.spec.end));
  const Clock::time_point latest = Clock::now() + kUntimedAtLeast + kUntimedTimes * wanted;
  for (bool first = true;; first = false) {
    if (plan.note) plan.note("preparing the cache");
    const Result<CacheOutcome> prepared = team.prepare(cache);
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
    const RunTally tally = team.run(next_pass(plan, figures.tally, emptied),
                                    [&](const ReadSpec& pass) { return plan.run(pass, observer); });
    std::optional<std::uint64_t> fetched;
    if (const auto device_after = device_bytes_read(); device && device_after)
      fetched = *device_after - *device;
    fetched = team.sum(fetched);
    figures.read_call_bytes += team.sum(tier.backend->moved_bytes().read - moved);
    if (!fetched) figures.device_bytes.reset();
    if (figures.device_bytes) *figures.device_bytes += *fetched;
    figures.tally.append(tally);
    if (tally.failure || team.stopped() || !emptied) break;
    if (figures.tally.wall_s >= std::chrono::duration<double>(wanted).count()) break;
    if (team.any(Clock::now() >= latest)) break;
  }
  return figures;
}

}  // namespace penstock
