#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/units.hpp"
#include "profiling/exporters/event_file.hpp"
#include "profiling/exporters/exporter.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/exporters/xplane_file.hpp"
#include "profiling/report/session_report.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/transfers.hpp"

namespace penstock {
namespace {

constexpr double kMostPoints = 300;
constexpr size_t kTableRows = 50;
constexpr double kMebibyte = 1 << 20;

// Returns the upper end of a size bucket in bytes, for a histogram. The last bucket has no upper end; for it,
// returns a large value that TensorBoard can still draw.
double bucket_end_to_draw(size_t bucket) {
  constexpr uint64_t kLastBucketEnd = uint64_t{1} << 40U;
  return double(std::min(size_bucket_end(bucket), kLastBucketEnd));
}

// Escapes the text so that Markdown shows it unchanged, in tables too.
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
  for (const std::string& cell : cells) line += fmt::format(" {} |", plain_markdown(cell));
  return line + "\n";
}

std::string table_markdown(const Rows& rows) {
  std::string text = row_markdown(rows.titles) + "|";
  for (size_t i = 0; i < rows.titles.size(); ++i) text += i == 0 ? "---|" : "---:|";
  text += "\n";
  for (const auto& row : rows.rows) text += row_markdown(row);
  const std::string not_shown = not_shown_text(rows);
  return not_shown.empty() ? text : text + "\n" + plain_markdown(not_shown) + "\n";
}

std::string facts_markdown(const std::vector<Fact>& facts) {
  std::string text = "| session | value |\n|---|---|\n";
  for (const Fact& fact : facts) text += row_markdown({fact.title, fact.text});
  return text;
}

class EventExporter {
 public:
  EventExporter(const Session& session, const FileSums& sums, const SessionFilter& filter, WholeFile& events)
      : session_(session),
        sums_(sums),
        filter_(filter),
        report_(inspect_session(session, sums, filter, "file", kTableRows)),
        begin_s_(double(report_.summary.begin_ns) / 1e9),
        events_(events) {}

  Result<uint64_t> write() {
    PENSTOCK_TRY(events_.begin(begin_s_));
    PENSTOCK_TRY(write_texts());
    PENSTOCK_TRY(write_histograms());
    PENSTOCK_TRY(write_series());
    return events_.value_count();
  }
  int64_t begin_ns() const { return report_.summary.begin_ns; }

 private:
  Result<void> write_texts() {
    const SessionSummary& summary = report_.summary;
    std::string facts = facts_markdown(session_facts(session_, summary, filter_, {}));
    facts += summary.io_is_union ? "\nEvery call was recorded: the time series are exact.\n"
                                 : "\nCalls were not recorded individually: the time series spread a "
                                   "thread's operations on a file evenly between its first and last call. To "
                                   "record every call: `penstock profile run --trace`.\n";
    PENSTOCK_TRY(events_.add_text("summary/session", begin_s_, facts));
    PENSTOCK_TRY(events_.add_text("summary/sizes", begin_s_, table_markdown(size_rows(summary))));
    PENSTOCK_TRY(events_.add_text("summary/files_most_bytes", begin_s_,
                                  table_markdown(file_rows(report_.most_bytes, {}))));
    PENSTOCK_TRY(events_.add_text("summary/files_most_time", begin_s_,
                                  table_markdown(file_rows(report_.most_time, {}))));
    return events_.add_text("summary/processes", begin_s_,
                            table_markdown(process_rows(report_.processes, kTableRows, {})));
  }

  Result<void> write_histograms() {
    const LayerSum& all = report_.summary.included.all;
    PENSTOCK_TRY(write_histogram("sizes/read", all.read_sizes, double(all.bytes_read)));
    PENSTOCK_TRY(write_histogram("sizes/write", all.write_sizes, double(all.bytes_written)));
    return write_histogram("sizes/file", report_.summary.files_by_size, 0);
  }

  // `sum`: the sum of all sizes; 0 if unknown.
  Result<void> write_histogram(std::string_view tag, const std::array<uint64_t, PENSTOCK_SIZE_BUCKETS>& sizes,
                               double sum) {
    std::vector<double> ends;
    std::vector<double> counts;
    double smallest_size = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0 && counts.empty()) continue;
      if (counts.empty() && i > 0) smallest_size = bucket_end_to_draw(i - 1);
      ends.push_back(bucket_end_to_draw(i));
      counts.push_back(double(sizes[i]));
    }
    while (!counts.empty() && counts.back() == 0) {
      counts.pop_back();
      ends.pop_back();
    }
    if (counts.empty()) return success();
    return events_.add_histogram(tag, begin_s_, smallest_size, sum, ends, counts);
  }

  Result<void> write_series() {
    const SessionSummary& summary = report_.summary;
    const TransferSeries series(summary.begin_ns, summary.span_s, kMostPoints);
    std::vector<double> bytes[2];
    std::vector<double> operations[3];
    each_transfer(session_, sums_, filter_, summary.io_is_union, [&](const Transfer& transfer) {
      const auto kind = size_t(transfer.kind);
      if (transfer.kind != TransferKind::metadata) series.add(bytes[kind], transfer, transfer.bytes);
      series.add(operations[kind], transfer, transfer.operations);
    });
    PENSTOCK_TRY(write_scalars("bandwidth_MiB_per_s/read", series, bytes[0], kMebibyte));
    PENSTOCK_TRY(write_scalars("bandwidth_MiB_per_s/write", series, bytes[1], kMebibyte));
    PENSTOCK_TRY(write_scalars("operations_per_s/read", series, operations[0], 1));
    PENSTOCK_TRY(write_scalars("operations_per_s/write", series, operations[1], 1));
    return write_scalars("operations_per_s/metadata", series, operations[2], 1);
  }

  // Writes one value for each interval of `series`. The "step" of each value is the end of its interval, in
  // milliseconds since the start of the session.
  Result<void> write_scalars(std::string_view tag, const TransferSeries& series,
                             const std::vector<double>& amounts, double unit) {
    for (size_t i = 0; i < amounts.size(); ++i) {
      const double at_s = double(i + 1) * series.interval_s();
      const auto step = uint64_t(at_s * 1000 + 0.5);
      PENSTOCK_TRY(events_.add_scalar(tag, begin_s_ + at_s, step, amounts[i] / series.interval_s() / unit));
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

Result<ExportCounts> export_tensorboard(const Session& session, const FileSums& sums,
                                        const SessionFilter& filter, WholeFile& events, WholeFile* trace) {
  EventExporter exporter(session, sums, filter, events);
  ExportCounts counts;
  PENSTOCK_ASSIGN(counts.records, exporter.write());
  if (trace == nullptr) return counts;
  const NamedFiles files(session, sums, filter);
  PENSTOCK_TRY(write_xplane(session, files, exporter.begin_ns(), kMostTracedCalls, *trace, counts));
  return counts;
}

namespace {

namespace fs = std::filesystem;

// Replaces each character that is not a letter, a digit or '-' by '_', because it may have a special meaning
// in file names or shell patterns.
std::string safe_file_name(std::string_view name) {
  std::string safe_name(name);
  std::replace_if(
      safe_name.begin(), safe_name.end(),
      [](char c) {
        const bool is_allowed =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        return !is_allowed;
      },
      '_');
  return safe_name.empty() ? "host" : safe_name;
}

// Creates folders for output. The destructor removes those that are still empty, so that a failed export
// leaves no empty folders.
class NewFolders {
 public:
  NewFolders() = default;
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  ~NewFolders() {
    std::error_code ignored;  // an error means that the folder is not empty; it is kept
    for (auto folder = created_.rbegin(); folder != created_.rend(); ++folder) fs::remove(*folder, ignored);
  }
  Result<void> make(const fs::path& folder) {
    fs::path path;
    for (const fs::path& part : folder) {
      path /= part;
      std::error_code failed;
      if (fs::create_directory(path, failed)) created_.push_back(path);
      if (failed) return errno_error(failed.value(), "cannot make the folder", path.string());
    }
    return success();
  }

 private:
  std::vector<fs::path> created_;
};

Result<ExportOutcome> write_tensorboard(const ExportRequest& request) {
  const std::string output(request.output);
  PENSTOCK_ASSIGN(const Session session, request.open(request.sessions));
  const penstock_session_header& first = session.processes.front().first().header();
  const std::string host = safe_file_name(session.processes.front().first().host());
  const int64_t begin_s = std::max<int64_t>(0, first.begin_realtime_ns) / 1'000'000'000;
  // The names of the output files depend only on the session, so a second export replaces the files of the
  // first.
  const fs::path logs(output);
  const fs::path run_folder = logs / "plugins" / "profile" / fmt::format("penstock_{}", begin_s);
  const bool has_trace =
      has_entries(session, PENSTOCK_BLOCK_SEGMENTS) || has_entries(session, PENSTOCK_BLOCK_SPANS);
  NewFolders folders;
  PENSTOCK_TRY(folders.make(has_trace ? run_folder : logs));
  PENSTOCK_ASSIGN(WholeFile events,
                  WholeFile::create(
                      (logs / fmt::format("events.out.tfevents.{:010}.{}.penstock", begin_s, host)).string(),
                      "the event file"));
  std::optional<WholeFile> trace;
  if (has_trace) {
    PENSTOCK_ASSIGN(WholeFile trace_file,
                    WholeFile::create((run_folder / (host + ".xplane.pb")).string(), "the trace"));
    trace.emplace(std::move(trace_file));
  }
  const FileSums sums(session);
  PENSTOCK_ASSIGN(const ExportCounts counts,
                  export_tensorboard(session, sums, request.filter, events, trace ? &*trace : nullptr));
  if (trace) PENSTOCK_TRY(trace->publish());
  PENSTOCK_TRY(events.publish());
  ExportOutcome outcome{.file = output, .item_name = "values", .count = counts.records};
  if (!has_trace)
    outcome.notes.emplace_back(
        "individual calls were not recorded: there is no trace for the profile plugin, and the time series "
        "use only the first and last call of each thread and file. To record them: penstock profile run "
        "--trace");
  if (counts.calls_left_out > 0)
    outcome.warnings.push_back(
        fmt::format("the trace contains the {} longest calls and omits {} shorter ones; --include limits it "
                    "to the files that matter",
                    format_count(counts.calls), format_count(counts.calls_left_out)));
  warn_of_dropped(session, outcome);
  return outcome;
}

}  // namespace

extern const ExporterInfo exporter_tensorboard;
const ExporterInfo exporter_tensorboard{.name = "tensorboard",
                                        .summary = "a folder for TensorBoard",
                                        .output = "-o LOGDIR",
                                        .write = &write_tensorboard};

}  // namespace penstock
