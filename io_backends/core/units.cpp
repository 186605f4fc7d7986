#include "io_backends/core/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Removes a decimal number (digits with at most one point, independent of the locale) and the blanks after it
// from the start of `text`. Returns the number.
std::string_view take_number(std::string_view& text) {
  size_t end = 0;
  bool has_point = false;
  while (end < text.size() && (is_digit(text[end]) || (text[end] == '.' && !has_point))) {
    has_point = has_point || text[end] == '.';
    ++end;
  }
  const std::string_view number = text.substr(0, end);
  text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
  return number;
}

Error bad_text(std::string_view what, std::string_view text, std::string_view hint) {
  return make_error(Errc::invalid_argument, "'{}' is not a {}: {}", text, what, hint);
}

constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();

// Returns number * factor. Exact for whole numbers, rounded down for fractions.
Result<uint64_t> scaled(std::string_view number, uint64_t factor, std::string_view what,
                        std::string_view text, std::string_view hint) {
  const size_t dot = number.find('.');
  const std::string_view whole_text = number.substr(0, dot);
  const std::string_view fraction_text = dot == std::string_view::npos ? "" : number.substr(dot + 1);
  if (whole_text.empty() && fraction_text.empty()) return bad_text(what, text, hint);
  uint64_t whole_number = 0;
  for (const char c : whole_text) {
    const auto digit = uint64_t(c - '0');
    if (whole_number > (kMaxNumber - digit) / 10) return bad_text(what, text, "too large");
    whole_number = whole_number * 10 + digit;
  }
  if (factor != 0 && whole_number > kMaxNumber / factor) return bad_text(what, text, "too large");
  uint64_t total = whole_number * factor;
  double fraction = 0;
  double digit_value = 1;
  for (const char c : fraction_text) fraction += (digit_value /= 10) * (c - '0');
  const auto rest = uint64_t(fraction * double(factor) + 1e-9);
  if (rest > kMaxNumber - total) return bad_text(what, text, "too large");
  total += rest;
  return total;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view hint = "write 4096, 4k, 4KiB, 1.5GiB, or 150MB (1 MB = 1000000)";
  std::string_view rest = text;
  const std::string_view number = take_number(rest);
  if (number.empty()) return bad_text("size", text, hint);
  const std::string unit = lower_case(rest);
  if (unit.empty() || unit == "b") return scaled(number, 1, "size", text, hint);
  constexpr std::string_view letters = "kmgtpe";
  const size_t power = letters.find(unit[0]);
  if (power == std::string_view::npos) return bad_text("size", text, hint);
  const std::string_view unit_tail = std::string_view(unit).substr(1);
  const bool decimal = unit_tail == "b";
  if (!decimal && !unit_tail.empty() && unit_tail != "ib" && unit_tail != "i")
    return bad_text("size", text, hint);
  uint64_t factor = 1;
  for (size_t i = 0; i <= power; ++i) factor *= decimal ? 1000U : 1024U;
  return scaled(number, factor, "size", text, hint);
}

Result<uint64_t> parse_rate(std::string_view text) {
  std::string_view size = text;
  if (size.ends_with("/s")) size.remove_suffix(2);
  const bool has_unit = !size.empty() && (size.back() < '0' || size.back() > '9');
  if (Result<uint64_t> bytes = parse_size(size); bytes.ok() && has_unit) return bytes;
  return bad_text("rate", text, "write 150MB/s or 1GiB/s");
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  constexpr std::string_view hint = "write 250us, 10ms, 1.5s, 2m or 1h";
  constexpr std::array<std::pair<std::string_view, uint64_t>, 7> units{{{"ns", 1},
                                                                        {"us", 1'000},
                                                                        {"ms", 1'000'000},
                                                                        {"s", 1'000'000'000},
                                                                        {"m", 60'000'000'000},
                                                                        {"min", 60'000'000'000},
                                                                        {"h", 3'600'000'000'000}}};
  std::string_view unit = text;
  const std::string_view number = take_number(unit);
  if (number.empty()) return bad_text("duration", text, hint);
  if (unit.empty() && number == "0") return std::chrono::nanoseconds{0};
  for (const auto& [name, factor] : units) {
    if (unit != name) continue;
    PENSTOCK_ASSIGN(const uint64_t ns, scaled(number, factor, "duration", text, hint));
    if (ns > uint64_t(std::numeric_limits<int64_t>::max())) return bad_text("duration", text, "too large");
    return std::chrono::nanoseconds{int64_t(ns)};
  }
  return bad_text("duration", text, hint);
}

Result<uint64_t> parse_count(std::string_view text) {
  constexpr std::string_view hint = "write a whole number such as 2000, 50k or 10m";
  std::string_view rest = text;
  const std::string_view number = take_number(rest);
  const std::string unit = lower_case(rest);
  if (number.find('.') != std::string_view::npos && unit.empty()) return bad_text("number", text, hint);
  if (unit.empty()) return scaled(number, 1, "number", text, hint);
  if (unit == "k") return scaled(number, 1'000, "number", text, hint);
  if (unit == "m") return scaled(number, 1'000'000, "number", text, hint);
  if (unit == "g") return scaled(number, 1'000'000'000, "number", text, hint);
  return bad_text("number", text, hint);
}

Result<double> parse_real(std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  const std::string_view number = take_number(rest);
  if (number.empty() || number == ".") return bad_text("number", text, "write it as 0.5 or 1e-3");
  double value = 0;
  double digit_value = 1;
  bool fraction = false;
  for (const char c : number) {
    if (c == '.') {
      fraction = true;
    } else if (fraction) {
      value += (digit_value /= 10) * (c - '0');
    } else {
      value = value * 10 + (c - '0');
    }
  }
  if (!rest.empty()) {
    std::string_view exponent = rest;
    if (exponent[0] != 'e' && exponent[0] != 'E') return bad_text("number", text, "write it as 0.5 or 1e-3");
    exponent.remove_prefix(1);
    const bool negative_exponent = exponent.starts_with('-');
    if (negative_exponent || exponent.starts_with('+')) exponent.remove_prefix(1);
    if (exponent.empty() || exponent.size() > 3 || !std::all_of(exponent.begin(), exponent.end(), is_digit))
      return bad_text("number", text, "write it as 0.5 or 1e-3");
    int power = 0;
    for (const char c : exponent) power = power * 10 + (c - '0');
    value *= std::pow(10.0, negative_exponent ? -power : power);
  }
  if (!std::isfinite(value)) return bad_text("number", text, "too large");
  return negative ? -value : value;
}

namespace {

constexpr size_t kMaxListSize = 100'000;

Result<void> append_range(std::string_view item, std::string_view text, std::vector<uint64_t>& out) {
  constexpr std::string_view hint = "write 1,2,4,8 or 1..8 or 1..64*2 or 0..100+10";
  const size_t dots = item.find("..");
  if (dots == std::string_view::npos) {
    Result<uint64_t> single = parse_count(item);
    if (!single.ok()) return bad_text("list", text, hint);
    out.push_back(*single);
    return success();
  }
  std::string_view last_text = item.substr(dots + 2);
  char operation = '+';
  uint64_t step = 1;
  if (const size_t at = last_text.find_first_of("*+"); at != std::string_view::npos) {
    operation = last_text[at];
    Result<uint64_t> parsed = parse_count(last_text.substr(at + 1));
    if (!parsed.ok()) return bad_text("list", text, hint);
    step = *parsed;
    last_text = last_text.substr(0, at);
  }
  const Result<uint64_t> first = parse_count(item.substr(0, dots));
  const Result<uint64_t> last = parse_count(last_text);
  if (!first.ok() || !last.ok()) return bad_text("list", text, hint);
  if (*first > *last) return bad_text("list", text, "the range is descending");
  if ((operation == '*' && (step < 2 || *first == 0)) || (operation == '+' && step == 0))
    return bad_text("list", text, "the range never ends");
  for (uint64_t value = *first;; value = operation == '*' ? value * step : value + step) {
    out.push_back(value);
    if (out.size() > kMaxListSize) return bad_text("list", text, "more than 100000 numbers");
    if (operation == '*' ? value > *last / step : step > *last - value) break;
  }
  return success();
}

}  // namespace

Result<std::vector<uint64_t>> parse_list(std::string_view text) {
  std::vector<uint64_t> out;
  std::string_view rest = text;
  while (true) {
    const bool last = rest.find(',') == std::string_view::npos;
    PENSTOCK_TRY(append_range(take_part(rest, ','), text, out));
    if (last) return out;
  }
}

std::string format_size(uint64_t bytes) {
  return scaled_size(double(bytes), false);
}

std::string scaled_size(double bytes, bool si) {
  constexpr std::array<std::string_view, 7> kSiUnits{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  constexpr std::array<std::string_view, 7> kIecUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const double base = si ? 1000 : 1024;
  size_t power = 0;
  while (std::abs(bytes) >= base - 0.5 && power + 1 < kSiUnits.size()) {
    bytes /= base;
    ++power;
  }
  const std::string_view unit = si ? kSiUnits[power] : kIecUnits[power];
  if (power == 0 || std::abs(bytes) >= 99.95) return fmt::format("{:.0f} {}", bytes, unit);
  // Three digits, so that sizes of a page add up. Zeros at the end are left out: "4.0 KiB" and "64 GiB".
  const bool is_small = std::abs(bytes) < 9.995;
  std::string number = is_small ? fmt::format("{:.2f}", bytes) : fmt::format("{:.1f}", bytes);
  if (is_small && number.ends_with('0')) number.pop_back();
  if (!is_small && number.ends_with(".0")) number.resize(number.size() - 2);
  return number + " " + std::string(unit);
}

std::string format_duration(std::chrono::nanoseconds duration) {
  const auto ns = double(duration.count());
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3g} ms", ns / 1e6);
  if (ns < 120e9) return fmt::format("{:.3g} s", ns / 1e9);
  if (ns < 7200e9) return fmt::format("{:.1f} min", ns / 60e9);
  return fmt::format("{:.1f} h", ns / 3600e9);
}

std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& names) {
  // The smallest number of steps from one word to the other (optimal string alignment). A step inserts,
  // deletes or changes a letter, or swaps two neighbouring letters.
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<size_t> row_before_last(b.size() + 1);
    std::vector<size_t> last_row(b.size() + 1);
    std::vector<size_t> row(b.size() + 1);
    std::iota(last_row.begin(), last_row.end(), size_t{0});
    for (size_t i = 1; i <= a.size(); ++i) {
      row[0] = i;
      for (size_t j = 1; j <= b.size(); ++j) {
        row[j] =
            std::min({last_row[j] + 1, row[j - 1] + 1, last_row[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
          row[j] = std::min(row[j], row_before_last[j - 2] + 1);
      }
      std::swap(row_before_last, last_row);
      std::swap(last_row, row);
    }
    return last_row[b.size()];
  };
  if (word.size() > 64) return "";
  std::string_view best;
  size_t best_distance = 1 + std::max<size_t>(1, word.size() / 3);
  for (const std::string_view name : names) {
    size_t steps = distance(lower_case(word), lower_case(name));
    if (steps > 0 && word.size() >= 3 && name.starts_with(word)) steps = 1;
    if (steps < best_distance) {
      best_distance = steps;
      best = name;
    }
  }
  return best;
}

}  // namespace penstock
