#include "benchmarks/read/run_tally.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace penstock {
namespace {

using BySecond = std::vector<std::uint64_t>;

// add() for each type of figure.
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

// A member without a row would get lost between ranks.
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
  // The first second of `later` continues the second in which this run ended.
  const auto second = static_cast<std::size_t>(wall_s);
  figures([&](const char*, auto member, const RunFigure&) {
    using T = std::remove_reference_t<decltype(this->*member)>;
    if constexpr (std::is_same_v<T, BySecond>)
      add(this->*member, later.*member, second);
    else
      add(this->*member, later.*member);
  });
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
