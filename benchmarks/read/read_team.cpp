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

constexpr std::chrono::hours kNoTimeLimit{24 * 365};
constexpr double kMostPasses = 1e12;

template <class T>
Json pack(const T& figure) {
  return figure;
}
template <class T>
void unpack(const Json& json, T& figure) {
  json.get_to(figure);
}

// A histogram is sent to other ranks as its bytes in memory. This works because all ranks run the same
// program.
static_assert(std::is_trivially_copyable_v<Histogram>);
Json pack(const Histogram& histogram) {
  std::vector<uint8_t> bytes(sizeof histogram);
  std::memcpy(bytes.data(), &histogram, sizeof histogram);
  return Json::binary(std::move(bytes));
}
void unpack(const Json& json, Histogram& histogram) {
  std::memcpy(&histogram, json.get_binary().data(), sizeof histogram);
}
Json pack(const TimesByCall& calls) {
  Json json = Json::array();
  for (const auto& [call, times] : calls)
    json.push_back(Json::array({int(call), pack(times.ns), times.bytes, times.errors}));
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
Json pack(const PictureWarningCounts& warnings) {
  return warnings.json();
}
void unpack(const Json& json, PictureWarningCounts& warnings) {
  warnings = PictureWarningCounts::from_json(json);
}
Json pack(const std::vector<RankFigures>& ranks) {
  Json json = Json::array();
  for (const RankFigures& rank : ranks) json.push_back(Json::array({rank.bytes, rank.wall_s}));
  return json;
}
void unpack(const Json& json, std::vector<RankFigures>& ranks) {
  for (const Json& rank : json) ranks.push_back({rank[0].get<uint64_t>(), rank[1].get<double>()});
}

}  // namespace

Json tally_json(const RunTally& tally) {
  Json json;
  RunTally::figures(
      [&](const char* name, auto member, const RunFigure&) { json[name] = pack(tally.*member); });
  return json;
}

RunTally tally_from_json(const Json& json) {
  RunTally tally;
  RunTally::figures(
      [&](const char* name, auto member, const RunFigure&) { unpack(json[name], tally.*member); });
  return tally;
}

RunTally join_over_ranks(std::span<const RunTally> rank_tallies) {
  RunTally joined;
  double first_done_s = rank_tallies.front().first_done_s;
  for (const RunTally& one : rank_tallies) {
    joined.join(one);
    first_done_s = std::min(first_done_s, one.first_done_s);
    joined.ranks.push_back({one.bytes, one.wall_s});
  }
  // An estimate of how much all ranks together had read when the first rank was done. It assumes that each
  // rank read at a constant rate.
  double bytes_at_first_done = 0;
  for (const RunTally& one : rank_tallies)
    if (one.first_done_s > 0)
      bytes_at_first_done += double(one.first_done_bytes) * first_done_s / one.first_done_s;
  joined.first_done_s = first_done_s;
  joined.first_done_bytes = uint64_t(std::llround(bytes_at_first_done));
  return joined;
}

RankShare ReadTeam::share(uint64_t shift) const {
  return {.rank = uint64_t(ranks_.rank()), .ranks = uint64_t(ranks_.size()), .shift = shift};
}

RunTally ReadTeam::run(const ReadSpec& spec, const OwnRun& own_run) {
  if (is_single_rank()) return own_run(spec);
  const bool more_may_follow = spec.max_passes == 0 && time_limit(spec.end).count() == 0;
  const double wanted_s = std::chrono::duration<double>(shortest_time(spec.end) + spec.ramp).count();
  const SignalsForAll signals(ranks_);
  RunTally total;
  ReadSpec full_spec = spec;
  Result<void> barrier;
  full_spec.at_gate = [&] { barrier = ranks_.barrier(); };
  if (std::holds_alternative<Stonewall>(spec.end))
    full_spec.at_stonewall = [&](uint64_t taken) { return reduce(taken, Reduction::max); };
  if (more_may_follow) {
    full_spec.max_passes = 1;
    if (std::holds_alternative<Passes>(full_spec.end)) full_spec.end = Passes{kNoTimeLimit};
  }
  ReadSpec next_run = full_spec;
  while (true) {
    total.append(join_tallies(own_run(next_run)));
    if (!barrier.ok() && !total.failure) total.failure = barrier.error();
    if (!more_may_follow || total.failure || stopped_ || total.passes == 0 || total.elapsed_s >= wanted_s)
      return total;
    const double seconds_per_pass = std::max(total.elapsed_s / double(total.passes), 1e-9);
    next_run = rest_of(full_spec, total);
    next_run.max_passes =
        uint64_t(std::clamp(std::ceil((wanted_s - total.elapsed_s) / seconds_per_pass), 1.0, kMostPasses));
  }
}

RunTally ReadTeam::join_tallies(const RunTally& mine) {
  const Result<GatheredJson> gathered =
      gather_json(ranks_, tally_json(mine), [](const std::vector<Json>& rank_jsons) {
        std::vector<RunTally> tallies;
        tallies.reserve(rank_jsons.size());
        for (const Json& one : rank_jsons) tallies.push_back(tally_from_json(one));
        return tally_json(join_over_ranks(tallies));
      });
  if (!gathered.ok()) {
    RunTally failed;
    failed.failure = gathered.error();
    return failed;
  }
  stopped_ |= gathered->signal != 0;
  return tally_from_json(gathered->json);
}

Result<CacheOutcome> ReadTeam::prepare(CacheControl& cache) {
  Result<CacheOutcome> prepared = prepare_together(ranks_, cache);
  stopped_ |= prepared.ok() ? prepared->stopped : interrupted();
  return prepared;
}

Result<void> ReadTeam::all_ok(const Result<void>& mine) {
  return penstock::all_ok(ranks_, mine);
}

uint64_t ReadTeam::reduce(uint64_t mine, Reduction how) {
  // An error of all_reduce() needs no handling: the next run() makes a collective call too, which also fails,
  // and reports the error.
  static_cast<void>(ranks_.all_reduce(std::span(&mine, 1), how).ok());
  return mine;
}

uint64_t ReadTeam::sum(uint64_t mine) {
  return reduce(mine, Reduction::sum);
}

std::optional<uint64_t> ReadTeam::sum(std::optional<uint64_t> mine) {
  const bool any_missing = any_rank(!mine);
  const uint64_t total = sum(mine.value_or(0));
  return any_missing ? std::nullopt : std::optional(total);
}

bool ReadTeam::any_rank(bool mine) {
  return reduce(mine ? 1 : 0, Reduction::max) != 0;
}

bool ReadTeam::stopped() const {
  return is_single_rank() ? interrupted() : stopped_;
}

}  // namespace penstock
