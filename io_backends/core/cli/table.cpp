#include "io_backends/core/cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

size_t width_of(std::string_view text) {
  return size_t(std::count_if(text.begin(), text.end(),
                              [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  assert(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = width_of(columns_[i].title);
    for (const auto& cells : rows_) width = std::max(width, width_of(cells[i]));
    widths.push_back(width);
  }
  std::string out;
  const auto add_line = [&](const auto& cell) {
    std::string text;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string& content = cell(i);
      const std::string blanks(widths[i] - width_of(content), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].align == Align::right ? blanks + content : content + blanks;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  add_line([&](size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& cells : rows_) add_line([&](size_t i) -> const std::string& { return cells[i]; });
  return out;
}

std::string_view rate_unit(const Output& output) {
  return output.si_units ? "MB/s" : "MiB/s";
}

std::string format_rate(double bytes_per_s, const Output& output) {
  return format_number(bytes_per_s / (output.si_units ? 1e6 : 1048576.0), output);
}

std::string format_bytes(double bytes, const Output& output) {
  if (!std::isfinite(bytes)) return "-";
  const std::string text = scaled_size(bytes, output.si_units);
  const size_t number_chars = text.find(' ');
  return digits_text(text.substr(0, number_chars), output) + text.substr(std::min(number_chars, text.size()));
}

std::string digits_text(std::string number, const Output& output) {
  if (!output.groups_digits) return number;
  const size_t sign_chars = number.starts_with('-') ? 1 : 0;
  for (size_t at = std::min(number.find('.'), number.size()); at > sign_chars + 3;)
    number.insert(at -= 3, 1, ',');
  return number;
}

std::string format_count(uint64_t count, const Output& output) {
  return digits_text(std::to_string(count), output);
}

std::string format_number(double value) {
  return format_number(value, Output{});
}

std::string format_number(double value, const Output& output) {
  if (!std::isfinite(value)) return "-";
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0";
  if (magnitude >= 1e15) return fmt::format("{:.3g}", value);
  if (magnitude >= 999.95) return digits_text(fmt::format("{:.0f}", value), output);
  if (magnitude >= 9.995) return fmt::format("{:.1f}", value);
  if (magnitude >= 0.0995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.2g}", value);
}

std::string format_percent(double fraction) {
  if (!std::isfinite(fraction)) return "-";
  const double percent = fraction * 100;
  if (std::abs(percent) >= 0.05 && std::abs(percent) < 1) return fmt::format("{:.1f}%", percent);
  if (percent >= 99.5 && percent < 99.995) return fmt::format("{:.{}f}%", percent, percent < 99.95 ? 1 : 2);
  return (std::abs(percent) >= 1e15 ? fmt::format("{:.3g}", percent) : fmt::format("{:.0f}", percent)) + "%";
}

std::string format_percent_apart(double fraction, double other) {
  constexpr int kMostDecimals = 4;
  const std::string text = format_percent(fraction);
  if (fraction == other || text != format_percent(other)) return text;
  for (int decimals = 1; decimals <= kMostDecimals; ++decimals)
    if (std::string longer = fmt::format("{:.{}f}%", fraction * 100, decimals);
        longer != fmt::format("{:.{}f}%", other * 100, decimals))
      return longer;
  return text;
}

std::string format_ratio(double ratio) {
  return format_ratio(ratio, Output{});
}

std::string format_ratio(double ratio, const Output& output) {
  if (!std::isfinite(ratio)) return "-";
  return (std::abs(ratio) >= 1e15 ? fmt::format("{:.3g}", ratio)
                                  : digits_text(fmt::format("{:.2f}", ratio), output)) +
         "x";
}

std::string format_ms(double ns) {
  return format_ms(ns, Output{});
}

std::string format_ms(double ns, const Output& output) {
  return format_number(ns / 1e6, output);
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || std::abs(seconds) > 9e9) return "-";
  if (seconds == 0) return "0 s";
  return format_duration(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
}

}  // namespace penstock
