#include "benchmarks/read/run_tally.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "results/record/gather_json.hpp"

namespace penstock {
namespace {

using BySecond = std::vector<std::uint64_t>;

// How a figure of each type grows by another.
void add(std::uint64_t& sum, std::uint64_t more) {
  sum += more;
}
void add(double& sum, double more) {
  sum += more;
}
void add(Histogram& all, const Histogram& more) {
  all.merge(more);
}
void add(TimesByCall& all, const TimesByCall& more) {
  merge(all, more);
}
void add(BySecond& all, const BySecond& more, std::size_t from = 0) {
  if (!more.empty()) all.resize(std::max(all.size(), from + more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) all[from + i] += more[i];
}
void add(std::vector<std::string>& first, const std::vector<std::string>& more) {
  for (const std::string& one : more)
    if (first.size() < RunTally::kErrorsNamed) first.push_back(one);
}
void add(std::string& first, const std::string& other) {
  if (first.empty()) first = other;
}
void add(std::optional<Error>& first, const std::optional<Error>& other) {
  if (!first) first = other;
}
void add(std::vector<RankFigures>& all, const std::vector<RankFigures>& more) {
  all.resize(std::max(all.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) {
    all[i].bytes += more[i].bytes;
    all[i].wall_s += more[i].wall_s;
  }
}

template <class T>
Json pack(const T& figure) {
  return figure;
}
template <class T>
void unpack(const Json& json, T& figure) {
  json.get_to(figure);
}

// All ranks run the same program, so that a histogram travels as it is in memory.
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
  return failure ? penstock::packed(*failure) : Json();
}
void unpack(const Json& json, std::optional<Error>& failure) {
  if (!json.is_null()) failure = error_of(json);
}
Json pack(const std::vector<RankFigures>& ranks) {
  Json json = Json::array();
  for (const RankFigures& rank : ranks) json.push_back(Json::array({rank.bytes, rank.wall_s}));
  return json;
}
void unpack(const Json& json, std::vector<RankFigures>& ranks) {
  for (const Json& rank : json) ranks.push_back({rank[0].get<std::uint64_t>(), rank[1].get<double>()});
}

void record_figure(const RunTally& tally, double value, const RunFigure& figure, Trial& trial) {
  if (figure.unless_zero && value == 0) return;
  if (figure.value != nullptr) trial.sample(*figure.value, value);
  if (figure.rate != nullptr) trial.sample(*figure.rate, per_second(value, tally.*figure.seconds));
}
void record_figure(const RunTally& tally, const Histogram& times, const RunFigure& figure, Trial& trial) {
  if (tally.samples == 0 || times.count() == 0) return;
  for (const read_metrics::Percentile& one : figure.percentiles)
    trial.sample(one.metric, times.percentile(one.percent));
}
void record_figure(const RunTally&, const TimesByCall& calls, const RunFigure&, Trial& trial) {
  for (const auto& [call, times] : calls) {
    const std::string_view name = timed_call_name(call);
    trial.sample(read_metrics::kCalls, name, static_cast<double>(times.ns.count()));
    for (const read_metrics::Percentile& one : read_metrics::kOfCalls)
      trial.sample(one.metric, name, times.ns.percentile(one.percent));
  }
}
void record_figure(const RunTally&, const std::vector<RankFigures>& ranks, const RunFigure&, Trial& trial) {
  record_ranks(ranks, kRanksOfRepeat, trial);
}

// A member that is in no row would be lost between ranks.
constexpr std::size_t bytes_in_table() {
  std::size_t bytes = 0;
  RunTally::figures(
      [&](const char*, auto member, const RunFigure&) { bytes += sizeof(std::declval<RunTally>().*member); });
  return bytes;
}
static_assert(bytes_in_table() == sizeof(RunTally), "each member of RunTally has a row in its table");

}  // namespace

void RunTally::join(const RunTally& other) {
  figures([&](const char*, auto member, const RunFigure& figure) {
    using T = std::remove_reference_t<decltype(this->*member)>;
    if constexpr (std::is_arithmetic_v<T>) {
      if (figure.max) {
        this->*member = std::max(this->*member, other.*member);
        return;
      }
    }
    add(this->*member, other.*member);
  });
}

void RunTally::append(const RunTally& later) {
  // The second that this one ended in is the other's first.
  const auto second = static_cast<std::size_t>(wall_s);
  figures([&](const char*, auto member, const RunFigure&) {
    using T = std::remove_reference_t<decltype(this->*member)>;
    if constexpr (std::is_same_v<T, BySecond>)
      add(this->*member, later.*member, second);
    else
      add(this->*member, later.*member);
  });
}

RunTally RunTally::over_ranks(std::span<const RunTally> each) {
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

Json RunTally::packed() const {
  Json json;
  figures([&](const char* name, auto member, const RunFigure&) { json[name] = pack(this->*member); });
  return json;
}

RunTally RunTally::unpacked(const Json& json) {
  RunTally tally;
  figures([&](const char* name, auto member, const RunFigure&) { unpack(json[name], tally.*member); });
  return tally;
}

void RunTally::record(Trial& trial) const {
  figures([&](const char*, auto member, const RunFigure& figure) {
    using T = std::remove_cvref_t<decltype(this->*member)>;
    if constexpr (std::is_arithmetic_v<T>)
      record_figure(*this, static_cast<double>(this->*member), figure, trial);
    else if constexpr (std::is_same_v<T, Histogram> || std::is_same_v<T, TimesByCall> ||
                       std::is_same_v<T, std::vector<RankFigures>>)
      record_figure(*this, this->*member, figure, trial);
  });
}

double RunTally::payload_rate() const {
  return per_second(static_cast<double>(bytes), wall_s);
}

double RunTally::sample_rate() const {
  return per_second(static_cast<double>(samples), wall_s);
}

double per_second(double amount, double seconds) {
  return seconds > 0 ? amount / seconds : 0.0;
}

}  // namespace penstock
