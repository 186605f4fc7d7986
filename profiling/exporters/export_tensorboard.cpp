#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "profiling/exporters/event_file.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/exporters/xplane_file.hpp"
#include "profiling/report/session_report.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/transfers.hpp"

namespace penstock {
namespace {

constexpr double kMostPoints = 300;
constexpr std::size_t kRows = 50;
constexpr double kMebibyte = 1 << 20;

// The last bucket has no end, which a histogram cannot draw.
double end_of(std::size_t bucket) {
  constexpr std::uint64_t kDrawn = std::uint64_t{1} << 40U;
  return static_cast<double>(std::min(size_bucket_end(bucket), kDrawn));
}

// Text that Markdown takes for nothing but text, in a table as well.
std::string plain_markdown(std::string_view text) {
  std::string out;
  for (const char c : printable_path(text)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (std::string_view("\\`*_{}[]()#+-.!|~>").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string row_markdown(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + plain_markdown(cell) + " |";
  return line + "\n";
}

std::string table_markdown(const Rows& rows) {
  std::string text = row_markdown(rows.titles) + "|";
  for (std::size_t i = 0; i < rows.titles.size(); ++i) text += i == 0 ? "---|" : "---:|";
  text += "\n";
  for (const auto& row : rows.rows) text += row_markdown(row);
  const std::string more = not_shown_text(rows);
  return more.empty() ? text : text + "\n" + plain_markdown(more) + "\n";
}

std::string facts_markdown(const std::vector<Fact>& facts) {
  std::string text = "| the session | in whole |\n|---|---|\n";
  for (const Fact& fact : facts) text += row_markdown({fact.title, fact.text});
  return text;
}

class Exporter {
 public:
  Exporter(const Session& session, const FileSums& sums, const SessionFilter& filter, WholeFile& events)
      : session_(session),
        sums_(sums),
        filter_(filter),
        report_(inspect_session(session, sums, filter, "file", kRows)),
        begin_s_(static_cast<double>(report_.summary.begin_ns) / 1e9),
        events_(events) {}

  Result<std::uint64_t> write() {
    PENSTOCK_TRY(events_.begin(begin_s_));
    PENSTOCK_TRY(texts());
    PENSTOCK_TRY(histograms());
    PENSTOCK_TRY(series());
    return events_.values();
  }
  std::int64_t begin_ns() const { return report_.summary.begin_ns; }

 private:
  Result<void> texts() {
    const SessionSummary& summary = report_.summary;
    std::string facts = facts_markdown(session_facts(session_, summary, filter_, {}));
    facts +=
        summary.io_is_union
            ? "\nEvery call was kept: the series over time are exact.\n"
            : "\nNot every call was kept: over time, what a thread did to a file is spread evenly from its "
              "first call to its last one. `penstock profile run --trace` keeps them.\n";
    PENSTOCK_TRY(events_.text("summary/session", begin_s_, facts));
    PENSTOCK_TRY(events_.text("summary/sizes", begin_s_, table_markdown(size_rows(summary))));
    PENSTOCK_TRY(
        events_.text("summary/files_most_bytes", begin_s_,
                     table_markdown(file_rows(report_.most_bytes, {}, report_.not_shown.most_bytes))));
    PENSTOCK_TRY(events_.text("summary/files_most_time", begin_s_,
                              table_markdown(file_rows(report_.most_time, {}, report_.not_shown.most_time))));
    return events_.text("summary/processes", begin_s_,
                        table_markdown(process_rows(report_.processes, kRows, {})));
  }

  Result<void> histograms() {
    const LayerSum& all = report_.summary.in.all;
    PENSTOCK_TRY(histogram("sizes/read", all.read_sizes, static_cast<double>(all.bytes_read)));
    PENSTOCK_TRY(histogram("sizes/write", all.write_sizes, static_cast<double>(all.bytes_written)));
    return histogram("sizes/file", report_.summary.file_sizes, 0);
  }

  // `sum` of all sizes; 0 where it is unknown.
  Result<void> histogram(std::string_view tag, const std::array<std::uint64_t, PENSTOCK_SIZE_BUCKETS>& sizes,
                         double sum) {
    std::vector<double> ends;
    std::vector<double> counts;
    double least = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0 && counts.empty()) continue;
      if (counts.empty() && i > 0) least = end_of(i - 1);
      ends.push_back(end_of(i));
      counts.push_back(static_cast<double>(sizes[i]));
    }
    while (!counts.empty() && counts.back() == 0) {
      counts.pop_back();
      ends.pop_back();
    }
    if (counts.empty()) return success();
    return events_.histogram(tag, begin_s_, {least, ends.back(), sum, ends, counts});
  }

  Result<void> series() {
    const SessionSummary& summary = report_.summary;
    const TransferSeries series(summary.begin_ns, summary.span_s, kMostPoints);
    std::vector<double> bytes[2];
    std::vector<double> operations[3];
    each_transfer(session_, sums_, filter_, summary.io_is_union, [&](const Transfer& transfer) {
      const auto kind = static_cast<std::size_t>(transfer.kind);
      if (transfer.kind != TransferKind::metadata) series.add(bytes[kind], transfer, transfer.bytes);
      series.add(operations[kind], transfer, transfer.operations);
    });
    PENSTOCK_TRY(scalars("bandwidth_MiB_per_s/read", series, bytes[0], kMebibyte));
    PENSTOCK_TRY(scalars("bandwidth_MiB_per_s/write", series, bytes[1], kMebibyte));
    PENSTOCK_TRY(scalars("operations_per_s/read", series, operations[0], 1));
    PENSTOCK_TRY(scalars("operations_per_s/write", series, operations[1], 1));
    return scalars("operations_per_s/metadata", series, operations[2], 1);
  }

  // A value at the end of each interval; its step is that moment in milliseconds.
  Result<void> scalars(std::string_view tag, const TransferSeries& series, const std::vector<double>& amounts,
                       double unit) {
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      const double at_s = static_cast<double>(i + 1) * series.interval_s();
      const auto step = static_cast<std::uint64_t>(at_s * 1000 + 0.5);
      PENSTOCK_TRY(events_.scalar(tag, begin_s_ + at_s, step, amounts[i] / series.interval_s() / unit));
    }
    return success();
  }

  const Session& session_;
  const FileSums& sums_;
  const SessionFilter& filter_;
  const SessionReport report_;
  const double begin_s_;
  EventFile events_;
};

}  // namespace

Result<TensorBoardCounts> export_tensorboard(const Session& session, const FileSums& sums,
                                             const SessionFilter& filter, WholeFile& events,
                                             WholeFile* trace) {
  Exporter exporter(session, sums, filter, events);
  TensorBoardCounts counts;
  PENSTOCK_ASSIGN(counts.values, exporter.write());
  if (trace == nullptr) return counts;
  const NamedFiles files(session, sums, filter);
  PENSTOCK_ASSIGN(const TracedCalls traced,
                  write_xplane(session, files, exporter.begin_ns(), kMostTracedCalls, *trace));
  counts.calls = traced.calls;
  counts.calls_left_out = traced.left_out;
  return counts;
}

}  // namespace penstock
