// For tests of the sentences' claims: random records, and the figures computed again without the code under
// test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <regex>
#include <string>
#include <vector>

namespace penstock {

// Seeded random numbers, the same on every machine.
class Draws {
 public:
  explicit Draws(uint64_t seed) : engine_(seed) {}
  double between(double low, double high) { return low + (high - low) * double(engine_() >> 11) * 0x1.0p-53; }
  size_t below(size_t bound) { return size_t(engine_() % bound); }
  bool chance(double probability) { return between(0, 1) < probability; }
  // `count` values around `middle`, up to `apart` of it from the lowest to the highest.
  std::vector<double> around(double middle, double apart, size_t count) {
    std::vector<double> values(count);
    for (double& value : values) value = middle * between(1 - apart / 2, 1 + apart / 2);
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

inline double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline double apart_of(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return values.size() < 2 ? 0 : (*high - *low) / middle_of(values);
}

// A number as sentences print it: "1 234.5" with its digits in groups.
inline double number_in(std::string text) {
  std::erase(text, ' ');
  return std::stod(text);
}

// Whether a printed number is `value`, rounded to as many digits as `text` has.
inline bool is_rounded(const std::string& text, double value) {
  const size_t dot = text.find('.');
  const double digits = dot == std::string::npos ? 0 : double(text.size() - dot - 1);
  return std::abs(number_in(text) - value) <= 0.5000001 * std::pow(10.0, -digits) + 1e-9 * std::abs(value);
}
// The same for a fraction that is printed in percent.
inline bool is_percent(const std::string& text, double fraction) {
  return is_rounded(text, 100 * fraction);
}

// The groups of `pattern` in `text`; empty if it does not match. In patterns, # is a printed number.
inline std::vector<std::string> parts_of(const std::string& text, std::string pattern) {
  for (size_t at = 0; (at = pattern.find('#', at)) != std::string::npos;)
    pattern.replace(at, 1, "([0-9. ]+)");
  std::smatch match;
  std::vector<std::string> parts;
  if (std::regex_search(text, match, std::regex(pattern)))
    for (size_t i = 1; i < match.size(); ++i) parts.push_back(match[i]);
  return parts;
}

}  // namespace penstock
