#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>

#include "profiling/exporters/exporter.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/report/session_json.hpp"
#include "profiling/session/layers.hpp"
#include "profiling/session/named_files.hpp"
#include "profiling/session/session_segments.hpp"
#include "profiling/session/session_summary.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {
namespace {

constexpr size_t kChromeChunkBytes = 1U << 20U;
// The trace has a process "files of ..." for each recorded process. Its id is the process id plus this
// number, which is larger than any process id.
constexpr uint64_t kFilePidOffset = 1U << 23U;

class ChromeWriter {
 public:
  ChromeWriter(const Session& session, const NamedFiles& files, WholeFile& to)
      : session_(session), files_(files), output_(to) {
    begin_ns_ = INT64_MAX;
    for (const auto& process_file : session.process_files)
      begin_ns_ = std::min(begin_ns_, process_file->header().begin_realtime_ns);
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  }

  void name_tracks() {
    for (const SessionProcess& process : session_.processes) {
      const ProcessFile& last_file = process.last();
      const uint64_t pid = last_file.header().pid;
      write_metadata("process_name", pid, 0, fmt::format("{} ({})", last_file.program(), pid));
      write_metadata("process_name", kFilePidOffset + pid, 0,
                     fmt::format("files of {} ({})", last_file.program(), pid));
      for (const ProcessFile* const process_file : process.process_files)
        process_file->view().each<penstock_thread>(
            PENSTOCK_BLOCK_THREADS, [&](const penstock_thread& thread, uint64_t) {
              if (const std::string_view name = field_text(thread.name); !name.empty())
                write_metadata("thread_name", pid, thread.thread, name);
            });
    }
  }

  void write_call(const penstock_segment& segment, const ProcessFile& process_file) {
    const NamedFile* const file = files_.find(segment.file, process_file);
    if (file == nullptr || segment.call >= PENSTOCK_CALLS || segment.layer >= PENSTOCK_LAYERS) return;
    const uint64_t pid = process_file.header().pid;
    const uint64_t track = files_.number(*file);
    const SessionClock& clock = process_file.view().clock();
    if (named_tracks_.insert(pid << 40U | track).second)
      write_metadata("thread_name", kFilePidOffset + pid, track, file->path);
    event_count_ += 2;
    for (const bool on_file_track : {false, true}) {
      write_event_head(
          kCallNames[segment.call], kLayerNames[segment.layer], clock.realtime_at(segment.begin_ticks),
          segment.end_ticks > segment.begin_ticks ? clock.duration_ns(segment.end_ticks - segment.begin_ticks)
                                                  : 0);
      fmt::format_to(std::back_inserter(text_), "\"pid\":{},\"tid\":{},\"args\":{{",
                     on_file_track ? kFilePidOffset + pid : pid, on_file_track ? track : segment.thread);
      if (on_file_track) {
        fmt::format_to(std::back_inserter(text_), "\"thread\":{}", segment.thread);
      } else {
        text_ += "\"file\":";
        append_json_text(text_, file->path);
      }
      if (segment.offset != UINT64_MAX)
        fmt::format_to(std::back_inserter(text_), ",\"offset\":{}", int64_t(segment.offset));
      fmt::format_to(std::back_inserter(text_), ",\"bytes\":{}", segment.length);
      if (segment.failed != 0) fmt::format_to(std::back_inserter(text_), ",\"errno\":{}", segment.failed);
      text_ += "}}";
      flush_if_long();
    }
  }

  void write_span(const penstock_span& span, const ProcessFile& process_file) {
    if (span.component >= PENSTOCK_COMPONENTS) return;
    ++event_count_;
    // A span has nanoseconds of CLOCK_MONOTONIC, whereas a recorded call has ticks.
    const int64_t begin_ns = process_file.view().clock().realtime_ns(span.begin_ns);
    write_event_head(component_name(span.component), "span", begin_ns,
                     double(span.end_ns) - double(span.begin_ns));
    fmt::format_to(std::back_inserter(text_), "\"pid\":{},\"tid\":{},\"args\":{{\"bytes\":{}",
                   process_file.header().pid, span.thread, span.bytes);
    if (span.number != PENSTOCK_NO_NUMBER)
      fmt::format_to(std::back_inserter(text_), ",\"number\":{}", span.number);
    if (span.epoch != PENSTOCK_NO_EPOCH)
      fmt::format_to(std::back_inserter(text_), ",\"epoch\":{}", span.epoch);
    text_ += "}}";
    flush_if_long();
  }

  void write_mark(const penstock_event& event, std::string_view text, const ProcessFile& process_file) {
    if (event.kind != PENSTOCK_EVENT_MARK) return;
    ++event_count_;
    const SessionClock& clock = process_file.view().clock();
    add_comma();
    text_ += "{\"ph\":\"i\",\"s\":\"p\",\"name\":";
    append_json_text(text_, text);
    fmt::format_to(std::back_inserter(text_), ",\"ts\":{:.3f},\"pid\":{},\"tid\":{}}}",
                   microseconds(clock.realtime_at(event.ticks)), process_file.header().pid,
                   process_file.header().pid);
    flush_if_long();
  }

  Result<uint64_t> finish() {
    text_ += "\n]";
    if (const uint64_t dropped = drops_of(session_).segments; dropped > 0)
      fmt::format_to(std::back_inserter(text_), ",\"otherData\":{{\"calls_dropped\":{}}}", dropped);
    text_ += "}\n";
    if (write_result_.ok()) write_result_ = output_.write(text_);
    PENSTOCK_TRY(std::move(write_result_));
    return event_count_;
  }

 private:
  double microseconds(int64_t ns) const { return (double(ns) - double(begin_ns_)) / 1000; }
  void add_comma() {
    if (!is_first_event_) text_ += ",\n";
    is_first_event_ = false;
  }
  void write_event_head(std::string_view name, std::string_view category, int64_t begin_ns, double ns) {
    add_comma();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"X","name":"{}","cat":"{}","ts":{:.3f},"dur":{:.3f},)", name, category,
                   microseconds(begin_ns), std::max(0.0, ns) / 1000);
  }
  void write_metadata(std::string_view kind, uint64_t pid, uint64_t tid, std::string_view name) {
    add_comma();
    fmt::format_to(std::back_inserter(text_), R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":)",
                   kind, pid, tid);
    append_json_text(text_, name);
    text_ += "}}";
    flush_if_long();
  }
  void flush_if_long() {
    if (text_.size() < kChromeChunkBytes) return;
    if (write_result_.ok()) write_result_ = output_.write(text_);
    text_.clear();
  }

  const Session& session_;
  const NamedFiles& files_;
  std::unordered_set<uint64_t> named_tracks_;
  WholeFile& output_;
  std::string text_;
  int64_t begin_ns_ = 0;
  bool is_first_event_ = true;
  Result<void> write_result_;
  uint64_t event_count_ = 0;  // two for each call, one for each span and for each mark
};

}  // namespace

Result<uint64_t> export_chrome(const Session& session, const FileSums& sums, const SessionFilter& filter,
                               WholeFile& to) {
  const NamedFiles files(session, sums, filter);
  ChromeWriter writer(session, files, to);
  writer.name_tracks();
  for (const auto& process_file : session.process_files) {
    process_file->view().each<penstock_span>(PENSTOCK_BLOCK_SPANS, [&](const penstock_span& span, uint64_t) {
      writer.write_span(span, *process_file);
    });
    process_file->view().each_event([&](const penstock_event& event, std::string_view text) {
      writer.write_mark(event, text, *process_file);
    });
  }
  each_segment(session, [&](const penstock_segment& segment, const ProcessFile& process_file) {
    writer.write_call(segment, process_file);
  });
  return writer.finish();
}

namespace {

Result<ExportOutcome> write_chrome(const ExportRequest& request) {
  return export_to_file(request, "the export", "events",
                        [&](const Session& session, const FileSums& sums, WholeFile& file,
                            ExportOutcome& outcome) -> Result<uint64_t> {
                          Result<uint64_t> events = export_chrome(session, sums, request.filter, file);
                          if (events.ok() && *events == 0)
                            return make_error(
                                Errc::not_found,
                                "the session '{}' has no spans and no recorded calls on the chosen files: "
                                "there is nothing to export. Record calls with 'penstock profile run "
                                "--trace', or use --to csv, which needs no recorded calls",
                                request.sessions.front());
                          warn_of_dropped(session, outcome);
                          return events;
                        });
}

}  // namespace

extern const ExporterInfo exporter_chrome;
const ExporterInfo exporter_chrome{
    .name = "chrome", .summary = "a trace for Chrome and Perfetto", .write = &write_chrome};

}  // namespace penstock
