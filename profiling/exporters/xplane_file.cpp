#include "profiling/exporters/xplane_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiling/exporters/wire_message.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/layers.hpp"
#include "profiling/session/session_segments.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {
namespace {

constexpr std::string_view kEventPrefixes[PENSTOCK_LAYERS] = {"", "stdio ", "ring ", "MPI-IO ", "HDF5 "};

// Field numbers of XSpace.
constexpr unsigned kPlanesField = 1;
constexpr unsigned kHostNamesField = 4;
// Field numbers of XPlane.
constexpr unsigned kLinesField = 3;
constexpr unsigned kEventNamesField = 4;
constexpr unsigned kStatNamesField = 5;
// Field numbers of XLine. kIdField and kNameField are also field numbers of XPlane, and of the entries of
// maps from numbers to names.
constexpr unsigned kIdField = 1;
constexpr unsigned kNameField = 2;
constexpr unsigned kEventsField = 4;
// Field numbers of XEvent.
constexpr unsigned kEventNameField = 1;
constexpr unsigned kBeginPsField = 2;
constexpr unsigned kLengthPsField = 3;
constexpr unsigned kStatsField = 4;
// Field numbers of XStat.
constexpr unsigned kStatNameField = 1;
constexpr unsigned kStatValueField = 3;

enum Stat : unsigned { kBytes = 1, kOffset = 2, kThread = 3, kErrno = 4, kNumber = 5 };
constexpr std::string_view kStatTexts[] = {"", "bytes", "offset", "thread", "errno", "number"};

constexpr unsigned kNamesPerLayer = PENSTOCK_CALLS;
constexpr unsigned kFirstSpanName = 1 + unsigned(PENSTOCK_LAYERS) * kNamesPerLayer;
constexpr uint32_t kNoLine = UINT32_MAX;

struct Event {
  uint64_t begin_ps = 0;
  uint64_t length_ps = 0;
  uint64_t bytes = 0;
  uint64_t offset = UINT64_MAX;
  uint64_t number = PENSTOCK_NO_NUMBER;
  uint32_t name_number = 0;
  uint32_t line_of_thread = kNoLine;  // index of the line of the event's thread
  uint32_t line_of_file = kNoLine;
  uint32_t thread = 0;
  uint16_t error_number = 0;
};

// Converts a time to picoseconds, the unit of the format, counted from `begin_ns`. Times later than kMostPs
// (about half a year) become kMostPs, because the number has 64 bits.
uint64_t picoseconds(int64_t ns, int64_t begin_ns) {
  constexpr double kMostPs = 1.6e19;
  const double ns_since_begin = double(ns) - double(begin_ns);
  return uint64_t(std::clamp(ns_since_begin * 1000, 0.0, kMostPs));
}

bool is_traced(const penstock_segment& segment, const ProcessFile& process_file, const NamedFiles& files) {
  return segment.call < PENSTOCK_CALLS && segment.layer < PENSTOCK_LAYERS &&
         files.find(segment.file, process_file) != nullptr;
}

uint64_t ticks_of(const penstock_segment& segment) {
  return segment.end_ticks > segment.begin_ticks ? segment.end_ticks - segment.begin_ticks : 0;
}

class Trace {
 public:
  Trace(const NamedFiles& files, int64_t begin_ns) : files_(files), begin_ns_(begin_ns) {}

  void add_call(const penstock_segment& segment, const ProcessFile& process_file) {
    const NamedFile& file = *files_.find(segment.file, process_file);
    const SessionClock& clock = process_file.view().clock();
    Event event;
    event.begin_ps = picoseconds(clock.realtime_at(segment.begin_ticks), begin_ns_);
    event.length_ps = picoseconds(int64_t(std::min(9e18, clock.duration_ns(ticks_of(segment)))), 0);
    event.bytes = segment.length;
    event.offset = segment.offset;
    event.name_number = 1U + segment.layer * kNamesPerLayer + segment.call;
    event.line_of_thread = thread_line(process_file, segment.thread);
    event.line_of_file = file_line(file);
    event.thread = segment.thread;
    event.error_number = segment.failed;
    events_.push_back(event);
  }

  void add_span(const penstock_span& span, const ProcessFile& process_file) {
    const SessionClock& clock = process_file.view().clock();
    Event event;
    event.begin_ps = picoseconds(clock.realtime_ns(span.begin_ns), begin_ns_);
    event.length_ps = picoseconds(span.end_ns, span.begin_ns);
    event.bytes = span.bytes;
    event.number = span.number;
    event.name_number = kFirstSpanName + span.component;
    event.line_of_thread = thread_line(process_file, span.thread);
    event.thread = span.thread;
    events_.push_back(event);
  }

  Result<void> write(std::string_view host, WholeFile& to) {
    WireMessage xspace;
    xspace.message(kPlanesField, make_plane(1, "/host:CPU", thread_names_, &Event::line_of_thread));
    PENSTOCK_TRY(to.write(xspace.text()));
    xspace.clear();
    // Because of the prefix "/device:", TensorBoard's profile plugin shows this plane, which has one line for
    // each file, next to the threads of the host.
    xspace.message(kPlanesField, make_plane(2, "/device:CUSTOM:files", file_names_, &Event::line_of_file));
    xspace.bytes(kHostNamesField, host);
    return to.write(xspace.text());
  }

 private:
  uint32_t thread_line(const ProcessFile& process_file, uint32_t thread) {
    const auto [line, is_new] = thread_lines_.try_emplace({&process_file, thread}, thread_names_.size());
    if (is_new) {
      thread_names_.push_back(fmt::format("{} ({}) thread {}", printable_path(process_file.program()),
                                          process_file.header().pid, thread));
    }
    return line->second;
  }

  uint32_t file_line(const NamedFile& file) {
    const auto [line, is_new] = file_lines_.try_emplace(files_.number(file), file_names_.size());
    if (is_new) file_names_.push_back(printable_path(file.path));
    return line->second;
  }

  WireMessage make_plane(uint64_t id, std::string_view name, const std::vector<std::string>& lines,
                         uint32_t Event::*line) {
    std::stable_sort(events_.begin(), events_.end(), [&](const Event& a, const Event& b) {
      return std::pair(a.*line, a.begin_ps) < std::pair(b.*line, b.begin_ps);
    });
    WireMessage plane;
    plane.number(kIdField, id).bytes(kNameField, name);
    auto next_event = events_.begin();
    for (uint32_t i = 0; i < lines.size(); ++i) {
      WireMessage message;
      message.number(kIdField, i + 1).bytes(kNameField, lines[i]);
      for (; next_event != events_.end() && (*next_event).*line == i; ++next_event)
        message.message(kEventsField, event_message(*next_event));
      plane.message(kLinesField, message);
    }
    for (unsigned layer = 0; layer < PENSTOCK_LAYERS; ++layer)
      for (unsigned call = 0; call < PENSTOCK_CALLS; ++call)
        append_name(plane, kEventNamesField, 1 + layer * kNamesPerLayer + call,
                    fmt::format("{}{}", kEventPrefixes[layer], kCallNames[call]));
    for (unsigned component = 0; component < PENSTOCK_COMPONENTS; ++component)
      append_name(plane, kEventNamesField, kFirstSpanName + component, component_name(component));
    for (unsigned stat = 1; stat < std::size(kStatTexts); ++stat)
      append_name(plane, kStatNamesField, stat, kStatTexts[stat]);
    return plane;
  }

  // Adds an entry to a map from numbers to names: the number as key, and a message with the number and the
  // name.
  static void append_name(WireMessage& plane, unsigned field, unsigned number, std::string_view name) {
    const WireMessage entry = WireMessage().number(kIdField, number).bytes(kNameField, name);
    plane.message(field, WireMessage().number(1, number).message(2, entry));
  }

  static WireMessage event_message(const Event& event) {
    WireMessage message;
    message.number(kEventNameField, event.name_number)
        .number(kBeginPsField, event.begin_ps)
        .number(kLengthPsField, event.length_ps);
    const auto add_stat = [&](Stat name, uint64_t value) {
      message.message(kStatsField, WireMessage().number(kStatNameField, name).number(kStatValueField, value));
    };
    add_stat(kBytes, event.bytes);
    add_stat(kThread, event.thread);
    if (event.offset != UINT64_MAX) add_stat(kOffset, event.offset);
    if (event.error_number != 0) add_stat(kErrno, event.error_number);
    if (event.number != PENSTOCK_NO_NUMBER) add_stat(kNumber, event.number);
    return message;
  }

  const NamedFiles& files_;
  int64_t begin_ns_;
  std::map<std::pair<const ProcessFile*, uint32_t>, uint32_t> thread_lines_;
  std::map<size_t, uint32_t> file_lines_;
  std::vector<std::string> thread_names_;
  std::vector<std::string> file_names_;
  std::vector<Event> events_;
};

// Selects the longest recorded calls, at most `most` of them. Durations are in ticks.
class LongestCalls {
 public:
  LongestCalls(const Session& session, const NamedFiles& files, uint64_t most) : ties_left_(most) {
    std::vector<uint64_t> ticks;
    each_segment(session, [&](const penstock_segment& segment, const ProcessFile& process_file) {
      if (is_traced(segment, process_file, files)) ticks.push_back(ticks_of(segment));
    });
    if (ticks.size() <= most) return;
    const auto border = ticks.begin() + ptrdiff_t(most);
    std::nth_element(ticks.begin(), border, ticks.end(), std::greater<>());
    selection_border_ = *border;
    ties_left_ -=
        uint64_t(std::count_if(ticks.begin(), border, [&](uint64_t one) { return one > selection_border_; }));
  }
  // Returns true if a recorded call of this duration is selected. Must be called exactly once for each
  // recorded call, in any order.
  bool selects(uint64_t ticks) {
    if (ticks != selection_border_) return ticks > selection_border_;
    if (ties_left_ == 0) return false;
    --ties_left_;
    return true;
  }

 private:
  // All calls longer than this are selected, and also ties_left_ calls of exactly this duration.
  uint64_t selection_border_ = 0;
  uint64_t ties_left_;  // how many calls of the duration selection_border_ may still be selected
};

}  // namespace

Result<void> write_xplane(const Session& session, const NamedFiles& files, int64_t begin_ns, uint64_t most,
                          WholeFile& to, ExportCounts& counts) {
  Trace trace(files, begin_ns);
  LongestCalls longest(session, files, most);
  each_segment(session, [&](const penstock_segment& segment, const ProcessFile& process_file) {
    if (!is_traced(segment, process_file, files)) return;
    const bool is_selected = longest.selects(ticks_of(segment));
    ++(is_selected ? counts.calls : counts.calls_left_out);
    if (is_selected) trace.add_call(segment, process_file);
  });
  uint64_t spans = 0;
  for (const auto& process_file : session.process_files)
    process_file->view().each<penstock_span>(PENSTOCK_BLOCK_SPANS, [&](const penstock_span& span, uint64_t) {
      if (span.component < PENSTOCK_COMPONENTS && ++spans <= most) trace.add_span(span, *process_file);
    });
  return trace.write(printable_path(session.processes.front().first().host()), to);
}

}  // namespace penstock
