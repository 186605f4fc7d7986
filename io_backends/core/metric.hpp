// Declares metrics: name, unit and direction, once for each metric, in the code that measures it.
// Trial::sample() takes a metric, and every command lists its metrics (CommandInfo::metrics).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

enum class Better : uint8_t { higher, lower, neither };
constexpr std::string_view better_name(Better better) {
  return better == Better::higher ? "higher" : better == Better::lower ? "lower" : "neither";
}

inline constexpr bool kHeadline = true;  // for tables of metrics: the value `true` of MetricInfo::headline

struct MetricInfo {
  std::string_view name;  // with one '*' it is a family: "calls.*" covers "calls.pread" and "calls.open"
  std::string_view unit;  // one of "B/s", "s", "ns", "1/s", "1", "B"
  Better better = Better::neither;
  std::string_view per = "run";  // the unit of one sample: "repeat", "step", "checkpoint", "run"
  bool headline = false;         // `penstock compare` compares this metric unless the user names others
  double percent = 0;            // 99 if the metric is a 99th percentile; 0 if it is no percentile

  constexpr bool matches(std::string_view metric) const {
    const size_t star = name.find('*');
    if (star == std::string_view::npos) return metric == name;
    return metric.size() + 1 >= name.size() && metric.starts_with(name.substr(0, star)) &&
           metric.ends_with(name.substr(star + 1));
  }
  // Returns the name of one metric of the family: `name` with `part` in place of its '*'.
  std::string with(std::string_view part) const {
    const size_t star = name.find('*');
    if (star == std::string_view::npos) return std::string(name);
    return std::string(name.substr(0, star)).append(part).append(name.substr(star + 1));
  }
};

// Joins several tables of metrics into one.
template <size_t... Sizes>
constexpr auto joined_tables(const MetricInfo (&... tables)[Sizes]) {
  std::array<MetricInfo, (Sizes + ...)> all{};
  size_t next = 0;
  const auto append = [&](const auto& table) {
    for (const MetricInfo& metric : table) all[next++] = metric;
  };
  (append(tables), ...);
  return all;
}

}  // namespace penstock
