// What a metric is: its name, unit and direction, declared once where it is made. Trial::sample() takes one,
// and every command lists its own (CommandInfo::metrics).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

enum class Better : std::uint8_t { higher, lower, neither };
constexpr std::string_view better_name(Better better) {
  return better == Better::higher ? "higher" : better == Better::lower ? "lower" : "neither";
}

inline constexpr bool kHeadline = true;  // for MetricInfo::headline

struct MetricInfo {
  std::string_view name;  // with one '*' it is a family: "calls.*" is "calls.pread" and "calls.open"
  std::string_view unit;  // "B/s", "s", "ns", "1/s", "1", "B"
  Better better = Better::neither;
  std::string_view per = "run";  // what one sample is: "repeat", "step", "checkpoint", "run"
  bool headline = false;         // records of the command are compared by it unless others are asked for

  constexpr bool matches(std::string_view metric) const {
    const std::size_t star = name.find('*');
    if (star == std::string_view::npos) return metric == name;
    return metric.size() + 1 >= name.size() && metric.starts_with(name.substr(0, star)) &&
           metric.ends_with(name.substr(star + 1));
  }
  // A family's name with `part` for the star.
  std::string with(std::string_view part) const {
    const std::size_t star = name.find('*');
    if (star == std::string_view::npos) return std::string(name);
    return std::string(name.substr(0, star)).append(part).append(name.substr(star + 1));
  }
};

// One table of several.
template <std::size_t... Sizes>
constexpr auto joined_tables(const MetricInfo (&... tables)[Sizes]) {
  std::array<MetricInfo, (Sizes + ...)> all{};
  std::size_t next = 0;
  const auto append = [&](const auto& table) {
    for (const MetricInfo& metric : table) all[next++] = metric;
  };
  (append(tables), ...);
  return all;
}

}  // namespace penstock
