#include "benchmarks/read/read_team.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

constexpr std::chrono::hours kNoBound{24 * 365};
constexpr double kMostPasses = 1e12;

template <class T>
Json pack(const T& figure) {
  return figure;
}
template <class T>
void unpack(const Json& json, T& figure) {
  json.get_to(figure);
}

// A histogram is sent as its bytes in memory, because all ranks run the same program.
static_assert(std::is_trivially_copyable_v<Histogram>);
Json pack(const Histogram& histogram) {
  std::vector<std::uint8_t> bytes(sizeof histogram);
  std::memcpy(bytes.data(), &histogram, sizeof histogram);
  return Json::binary(std::move(bytes));
}
void unpack(const Json& json, Histogram& histogram) {
  std::memcpy(&histogram, json.get_binary().data(), sizeof histogram);
}
Json pack(const TimesByCall& calls) {
  Json json = Json::array();
  for (const auto& [call, times] : calls)
    json.push_back(Json::array({static_cast<int>(call), pack(times.ns), times.bytes, times.errors}));
  return json;
}
void unpack(const Json& json, TimesByCall& calls) {
  for (const Json& one : json) {
    CallTimes& times = calls[static_cast<CallKind>(one[0].get<int>())];
    unpack(one[1], times.ns);
    one[2].get_to(times.bytes);
    one[3].get_to(times.errors);
  }
}
Json pack(const std::optional<Error>& failure) {
  return failure ? error_json(*failure) : Json();
}
void unpack(const Json& json, std::optional<Error>& failure) {
  if (!json.is_null()) failure = error_from_json(json);
}
Json pack(const std::vector<RankFigures>& ranks) {
  Json json = Json::array();
  for (const RankFigures& rank : ranks) json.push_back(Json::array({rank.bytes, rank.wall_s}));
  return json;
}
void unpack(const Json& json, std::vector<RankFigures>& ranks) {
  for (const Json& rank : json) ranks.push_back({rank[0].get<std::uint64_t>(), rank[1].get<double>()});
}

}  // namespace

Json packed(const RunTally& tally) {
  Json json;
  RunTally::figures(
      [&](const char* name, auto member, const RunFigure&) { json[name] = pack(tally.*member); });
  return json;
}

RunTally unpacked(const Json& json) {
  RunTally tally;
  RunTally::figures(
      [&](const char* name, auto member, const RunFigure&) { unpack(json[name], tally.*member); });
  return tally;
}

RunTally over_ranks(std::span<const RunTally> each) {
  RunTally all;
  double first_done_s = each.front().first_done_s;
  for (const RunTally& one : each) {
    all.join(one);
    first_done_s = std::min(first_done_s, one.first_done_s);
    all.ranks.push_back({one.bytes, one.wall_s});
  }
  double by_then = 0;
  for (const RunTally& one : each)
    if (one.first_done_s > 0)
      by_then += static_cast<double>(one.first_done_bytes) * first_done_s / one.first_done_s;
  all.first_done_s = first_done_s;
  all.first_done_bytes = static_cast<std::uint64_t>(std::llround(by_then));
  return all;
}

RankShare ReadTeam::share(std::uint64_t shift) const {
  return {.rank = static_cast<std::uint64_t>(ranks_.rank()),
          .ranks = static_cast<std::uint64_t>(ranks_.size()),
          .shift = shift};
}

RunTally ReadTeam::run(const ReadSpec& spec, const Mine& mine) {
  if (alone()) return mine(spec);
  const bool more_may_follow = spec.max_passes == 0 && time_limit(spec.end).count() == 0;
  const double wanted_s = std::chrono::duration<double>(shortest(spec.end) + spec.ramp).count();
  const SignalsForAll signals(ranks_);
  RunTally all;
  ReadSpec whole = spec;
  Result<void> together;
  whole.at_gate = [&] { together = ranks_.barrier(); };
  if (std::holds_alternative<Stonewall>(spec.end))
    whole.at_stonewall = [&](std::uint64_t taken) { return reduced(taken, Reduction::max); };
  if (more_may_follow) {
    whole.max_passes = 1;
    if (std::holds_alternative<Passes>(whole.end)) whole.end = Passes{kNoBound};
  }
  ReadSpec leg = whole;
  while (true) {
    all.append(joined(mine(leg)));
    if (!together.ok() && !all.failure) all.failure = together.error();
    if (!more_may_follow || all.failure || stopped_ || all.passes == 0 || all.elapsed_s >= wanted_s)
      return all;
    const double a_pass_s = std::max(all.elapsed_s / static_cast<double>(all.passes), 1e-9);
    leg = rest_of(whole, all);
    leg.max_passes = static_cast<std::uint64_t>(
        std::clamp(std::ceil((wanted_s - all.elapsed_s) / a_pass_s), 1.0, kMostPasses));
  }
}

RunTally ReadTeam::joined(const RunTally& mine) {
  const Result<GatheredJson> said = gather_json(ranks_, packed(mine), [](const std::vector<Json>& each) {
    std::vector<RunTally> tallies;
    tallies.reserve(each.size());
    for (const Json& one : each) tallies.push_back(unpacked(one));
    return packed(over_ranks(tallies));
  });
  if (!said.ok()) {
    RunTally none;
    none.failure = said.error();
    return none;
  }
  stopped_ |= said->signal != 0;
  return unpacked(said->json);
}

Result<CacheOutcome> ReadTeam::prepare(CacheControl& cache) {
  Result<CacheOutcome> prepared = prepare_together(ranks_, cache);
  stopped_ |= prepared.ok() ? prepared->stopped : interrupted();
  return prepared;
}

Result<void> ReadTeam::all_ok(const Result<void>& mine) {
  return penstock::all_ok(ranks_, mine);
}

std::uint64_t ReadTeam::reduced(std::uint64_t mine, Reduction how) {
  // A failure here is ignored: the next run() fails as well and reports it.
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
