#include "benchmarks/read/read_team.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

constexpr std::chrono::hours kNoBound{24 * 365};
constexpr double kMostPasses = 1e12;

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

// All ranks run the same program, so that a histogram travels as it is in memory.
static_assert(std::is_trivially_copyable_v<Histogram>);
Json packed(const Histogram& histogram) {
  std::vector<std::uint8_t> bytes(sizeof histogram);
  std::memcpy(bytes.data(), &histogram, sizeof histogram);
  return Json::binary(std::move(bytes));
}
Histogram histogram_of(const Json& json) {
  Histogram histogram;
  std::memcpy(&histogram, json.get_binary().data(), sizeof histogram);
  return histogram;
}

Json packed(const TimesByCall& calls) {
  Json json = Json::array();
  for (const auto& [call, times] : calls)
    json.push_back(Json::array({static_cast<int>(call), packed(times.ns), times.bytes, times.errors}));
  return json;
}
TimesByCall calls_of(const Json& json) {
  TimesByCall calls;
  for (const Json& one : json)
    calls[static_cast<TimedCall>(one[0].get<int>())] = {histogram_of(one[1]), one[2].get<std::uint64_t>(),
                                                        one[3].get<std::uint64_t>()};
  return calls;
}

Json packed(const ReadTally& tally) {
  Json ranks = Json::array();
  for (const RankFigures& rank : tally.ranks) ranks.push_back(Json::array({rank.bytes, rank.wall_s}));
  return {{"samples", tally.samples},
          {"bytes", tally.bytes},
          {"errors", tally.errors},
          {"wrong", tally.wrong},
          {"passes", tally.passes},
          {"wall_s", tally.wall_s},
          {"elapsed_s", tally.elapsed_s},
          {"first_done_s", tally.first_done_s},
          {"first_done_bytes", tally.first_done_bytes},
          {"stonewall_s", tally.stonewall_s},
          {"stonewall_bytes", tally.stonewall_bytes},
          {"latency_ns", packed(tally.latency_ns)},
          {"late_ns", packed(tally.late_ns)},
          {"due", tally.due},
          {"open_s", tally.open_s},
          {"calls", packed(tally.calls)},
          {"bytes_by_second", tally.bytes_by_second},
          {"first_errors", tally.first_errors},
          {"first_wrong", tally.first_wrong},
          {"failure", tally.failure ? packed(*tally.failure) : Json()},
          {"ranks", std::move(ranks)}};
}

ReadTally tally_of(const Json& json) {
  ReadTally tally;
  json["samples"].get_to(tally.samples);
  json["bytes"].get_to(tally.bytes);
  json["errors"].get_to(tally.errors);
  json["wrong"].get_to(tally.wrong);
  json["passes"].get_to(tally.passes);
  json["wall_s"].get_to(tally.wall_s);
  json["elapsed_s"].get_to(tally.elapsed_s);
  json["first_done_s"].get_to(tally.first_done_s);
  json["first_done_bytes"].get_to(tally.first_done_bytes);
  json["stonewall_s"].get_to(tally.stonewall_s);
  json["stonewall_bytes"].get_to(tally.stonewall_bytes);
  tally.latency_ns = histogram_of(json["latency_ns"]);
  tally.late_ns = histogram_of(json["late_ns"]);
  json["due"].get_to(tally.due);
  json["open_s"].get_to(tally.open_s);
  tally.calls = calls_of(json["calls"]);
  json["bytes_by_second"].get_to(tally.bytes_by_second);
  json["first_errors"].get_to(tally.first_errors);
  json["first_wrong"].get_to(tally.first_wrong);
  if (!json["failure"].is_null()) tally.failure = error_of(json["failure"]);
  for (const Json& rank : json["ranks"])
    tally.ranks.push_back({rank[0].get<std::uint64_t>(), rank[1].get<double>()});
  return tally;
}

// Ranks that ran at the same time.
ReadTally side_by_side(const std::vector<ReadTally>& tallies) {
  ReadTally all;
  all.first_done_s = tallies.front().first_done_s;
  for (const ReadTally& one : tallies) {
    all.samples += one.samples;
    all.bytes += one.bytes;
    all.errors += one.errors;
    all.wrong += one.wrong;
    all.passes = std::max(all.passes, one.passes);
    all.wall_s = std::max(all.wall_s, one.wall_s);
    all.elapsed_s = std::max(all.elapsed_s, one.elapsed_s);
    all.first_done_s = std::min(all.first_done_s, one.first_done_s);
    all.stonewall_s = std::max(all.stonewall_s, one.stonewall_s);
    all.stonewall_bytes += one.stonewall_bytes;
    all.latency_ns.merge(one.latency_ns);
    all.late_ns.merge(one.late_ns);
    all.due += one.due;
    all.open_s = std::max(all.open_s, one.open_s);
    merge(all.calls, one.calls);
    all.bytes_by_second.resize(std::max(all.bytes_by_second.size(), one.bytes_by_second.size()));
    for (std::size_t i = 0; i < one.bytes_by_second.size(); ++i)
      all.bytes_by_second[i] += one.bytes_by_second[i];
    for (const std::string& error : one.first_errors)
      if (all.first_errors.size() < ReadTally::kErrorsNamed) all.first_errors.push_back(error);
    if (all.first_wrong.empty()) all.first_wrong = one.first_wrong;
    if (!all.failure) all.failure = one.failure;
    all.ranks.push_back({one.bytes, one.wall_s});
  }
  double by_then = 0;
  for (const ReadTally& one : tallies)
    if (one.first_done_s > 0)
      by_then += static_cast<double>(one.first_done_bytes) * all.first_done_s / one.first_done_s;
  all.first_done_bytes = static_cast<std::uint64_t>(std::llround(by_then));
  return all;
}

}  // namespace

RankShare ReadTeam::share(std::uint64_t shift) const {
  return {.rank = static_cast<std::uint64_t>(ranks_.rank()),
          .ranks = static_cast<std::uint64_t>(ranks_.size()),
          .shift = shift};
}

ReadTally ReadTeam::run(const ReadSpec& spec, const Mine& mine) {
  if (alone()) return mine(spec);
  const bool by_time = spec.max_passes == 0 && time_limit(spec.end).count() == 0;
  const double wanted_s = std::chrono::duration<double>(shortest(spec.end) + spec.ramp).count();
  const SignalsForAll signals(ranks_);
  ReadTally all;
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

ReadTally ReadTeam::joined(const ReadTally& mine) {
  const Result<GatheredJson> said = gather_json(ranks_, packed(mine), [](const std::vector<Json>& each) {
    std::vector<ReadTally> tallies;
    tallies.reserve(each.size());
    for (const Json& one : each) tallies.push_back(tally_of(one));
    return packed(side_by_side(tallies));
  });
  if (!said.ok()) {
    ReadTally none;
    none.failure = said.error();
    return none;
  }
  stopped_ |= said->signal != 0;
  return tally_of(said->json);
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
