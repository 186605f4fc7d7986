#include "benchmarks/read/read_team.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

constexpr std::chrono::hours kNoBound{24 * 365};
constexpr double kMostPasses = 1e12;

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
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
