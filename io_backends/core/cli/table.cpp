#include "io_backends/core/cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Separates the digits before the point by blanks, in groups of three.
std::string grouped(const std::string& number) {
  const std::size_t sign = number.starts_with('-') ? 1 : 0;
  const std::size_t point = std::min(number.find('.'), number.size());
  std::string out;
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (i > sign && i < point && (point - i) % 3 == 0) out += ' ';
    out += number[i];
  }
  return out;
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  assert(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = width_of(columns_[i].title);
    for (const auto& cells : rows_) width = std::max(width, width_of(cells[i]));
    widths.push_back(width);
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& content = cell(i);
      const std::string blanks(widths[i] - width_of(content), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].align == Align::right ? blanks + content : content + blanks;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& cells : rows_) line([&](std::size_t i) -> const std::string& { return cells[i]; });
  return out;
}

std::string_view rate_unit(const Output& output) {
  return output.si_units ? "MB/s" : "MiB/s";
}

std::string format_rate(double bytes_per_s, const Output& output) {
  return format_number(bytes_per_s / (output.si_units ? 1e6 : 1048576.0));
}

std::string format_bytes(double bytes, const Output& output) {
  if (!std::isfinite(bytes)) return "-";
  static constexpr std::array<std::string_view, 7> kSi{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  static constexpr std::array<std::string_view, 7> kIec{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const double base = output.si_units ? 1000 : 1024;
  std::size_t power = 0;
  while (std::abs(bytes) >= base - 0.5 && power + 1 < kSi.size()) {
    bytes /= base;
    ++power;
  }
  const std::string_view unit = output.si_units ? kSi[power] : kIec[power];
  return std::abs(bytes) < 9.95 && power > 0 ? fmt::format("{:.1f} {}", bytes, unit)
                                             : fmt::format("{:.0f} {}", bytes, unit);
}

std::string format_number(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e15) return fmt::format("{:.3g}", value);
  if (size >= 999.95) return grouped(fmt::format("{:.0f}", value));
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.0995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.2g}", value);
}

std::string format_percent(double fraction) {
  if (!std::isfinite(fraction)) return "-";
  const double percent = fraction * 100;
  if (std::abs(percent) >= 0.05 && std::abs(percent) < 1) return fmt::format("{:.1f}%", percent);
  return (std::abs(percent) >= 1e15 ? fmt::format("{:.3g}", percent)
                                    : grouped(fmt::format("{:.0f}", percent))) +
         "%";
}

std::string format_ratio(double ratio) {
  if (!std::isfinite(ratio)) return "-";
  return (std::abs(ratio) >= 1e15 ? fmt::format("{:.3g}", ratio) : grouped(fmt::format("{:.2f}", ratio))) +
         "x";
}

std::string format_ms(double ns) {
  return format_number(ns / 1e6);
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || std::abs(seconds) > 9e9) return "-";
  if (seconds == 0) return "0 s";
  return format_duration(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
}

}  // namespace penstock
