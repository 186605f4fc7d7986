// Formats results for people: aligned tables, and bytes, rates and times in the units that the user chose.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"

namespace penstock {

enum class Align : uint8_t { left, right };

// A text table: a line of titles, then rows. Two blanks separate columns, and no line ends in blanks. A
// column is aligned to the right unless its Align is `left`. Widths are counted in UTF-8 code points. Only
// one thread may use an instance.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::right;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row. If there are fewer cells than columns, the rest is empty. More cells than columns fail an
  // assertion.
  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string text() const;  // ends in a newline

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// rate_unit() returns "MiB/s" or "MB/s". format_rate() returns a number in this unit, without the unit's
// name: "135.5".
std::string_view rate_unit(const Output& output);
std::string format_rate(double bytes_per_s, const Output& output);
// Formats bytes with the unit that fits their size: "1.8 GiB", "112 KB".
std::string format_bytes(double bytes, const Output& output);

// Decides for every number whether its digits are grouped: "-16384.5" becomes "-16,384.5" if `output` says
// so.
std::string digits_text(std::string number, const Output& output);
// A count in a table or a document. Messages and logs have format_count(count), which never groups digits.
std::string format_count(uint64_t count, const Output& output);
// Formats a number: "0.71", "12.3", "135.5", "1234". Below 100 it has two or three significant digits; from
// 1000 on it has no decimals. "-" if it is not finite. Without an output its digits are not grouped.
std::string format_number(double value);
std::string format_number(double value, const Output& output);
// "11%", "98%", "0.3%". A fraction just below 1 has decimals ("99.6%"), so that it does not look like all.
std::string format_percent(double fraction);
// The same with as many decimals as tell it from `other`: 0.896 next to 0.9 is "89.6%", and 0.9 next to 0.896
// "90.0%". Print both numbers with this function, because only their equal number of decimals keeps them in
// order. No more decimals if the two are equal, or differ by less than 0.0001%.
std::string format_percent_apart(double fraction, double other);
std::string format_ratio(double ratio);  // "1.02x"
std::string format_ratio(double ratio, const Output& output);
std::string format_ms(double ns);  // nanoseconds as milliseconds, without the unit
std::string format_ms(double ns, const Output& output);
std::string format_seconds(double seconds);  // "1.23 s", "4.5 ms"

}  // namespace penstock
