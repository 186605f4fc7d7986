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
constexpr unsigned kPlanes = 1;
constexpr unsigned kHostNames = 4;
// Field numbers of XPlane.
constexpr unsigned kLines = 3;
constexpr unsigned kEventNames = 4;
constexpr unsigned kStatNames = 5;
// Field numbers of XLine, XPlane and of names.
constexpr unsigned kId = 1;
constexpr unsigned kName = 2;
constexpr unsigned kEvents = 4;
// Field numbers of XEvent.
constexpr unsigned kEventName = 1;
constexpr unsigned kBeginPs = 2;
constexpr unsigned kLengthPs = 3;
constexpr unsigned kStats = 4;
// Field numbers of XStat.
constexpr unsigned kStatName = 1;
constexpr unsigned kStatValue = 3;

enum Stat : unsigned { kBytes = 1, kOffset = 2, kThread = 3, kErrno = 4, kNumber = 5 };
constexpr std::string_view kStatTexts[] = {"", "bytes", "offset", "thread", "errno", "number"};

constexpr unsigned kNamesOfLayer = PENSTOCK_CALLS;
constexpr unsigned kFirstSpan = 1 + static_cast<unsigned>(PENSTOCK_LAYERS) * kNamesOfLayer;
constexpr std::uint32_t kNoLine = UINT32_MAX;

struct Event {
  std::uint64_t begin_ps = 0;
  std::uint64_t length_ps = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = UINT64_MAX;
  std::uint64_t number = PENSTOCK_NO_NUMBER;
  std::uint32_t name = 0;
  std::uint32_t line_of_thread = kNoLine;  // numbers of its lines in the two planes
  std::uint32_t line_of_file = kNoLine;
  std::uint32_t thread = 0;
  std::uint16_t failed = 0;
};

// The format has times in picoseconds. A 64-bit number of them covers about half a year; later times are cut
// to that.
std::uint64_t picoseconds(std::int64_t ns, std::int64_t begin_ns) {
  constexpr double kMost = 1.6e19;
  const double since = static_cast<double>(ns) - static_cast<double>(begin_ns);
  return static_cast<std::uint64_t>(std::clamp(since * 1000, 0.0, kMost));
}

bool is_traced(const penstock_segment& segment, const ProcessFile& process_file, const NamedFiles& files) {
  return segment.call < PENSTOCK_CALLS && segment.layer < PENSTOCK_LAYERS &&
         files.find(segment.file, process_file) != nullptr;
}

std::uint64_t ticks_of(const penstock_segment& segment) {
  return segment.end_ticks > segment.begin_ticks ? segment.end_ticks - segment.begin_ticks : 0;
}

class Trace {
 public:
  Trace(const NamedFiles& files, std::int64_t begin_ns) : files_(files), begin_ns_(begin_ns) {}

  void call(const penstock_segment& segment, const ProcessFile& process_file) {
    const NamedFile& file = *files_.find(segment.file, process_file);
    const SessionClock& clock = process_file.view().clock();
    Event event;
    event.begin_ps = picoseconds(clock.realtime_at(segment.begin_ticks), begin_ns_);
    event.length_ps =
        picoseconds(static_cast<std::int64_t>(std::min(9e18, clock.duration_ns(ticks_of(segment)))), 0);
    event.bytes = segment.length;
    event.offset = segment.offset;
    event.name = 1U + segment.layer * kNamesOfLayer + segment.call;
    event.line_of_thread = thread_line(process_file, segment.thread);
    event.line_of_file = file_line(file);
    event.thread = segment.thread;
    event.failed = segment.failed;
    events_.push_back(event);
  }

  void span(const penstock_span& span, const ProcessFile& process_file) {
    const SessionClock& clock = process_file.view().clock();
    Event event;
    event.begin_ps = picoseconds(clock.realtime_ns(span.begin_ns), begin_ns_);
    event.length_ps = picoseconds(span.end_ns, span.begin_ns);
    event.bytes = span.bytes;
    event.number = span.number;
    event.name = kFirstSpan + span.component;
    event.line_of_thread = thread_line(process_file, span.thread);
    event.thread = span.thread;
    events_.push_back(event);
  }

  Result<void> write(std::string_view host, WholeFile& to) {
    WireMessage space;
    space.message(kPlanes, plane(1, "/host:CPU", thread_names_, &Event::line_of_thread));
    PENSTOCK_TRY(to.write(space.text()));
    space.clear();
    // The plugin takes this name for a device and shows it next to the host's threads.
    space.message(kPlanes, plane(2, "/device:CUSTOM:files", file_names_, &Event::line_of_file));
    space.bytes(kHostNames, host);
    return to.write(space.text());
  }

 private:
  std::uint32_t thread_line(const ProcessFile& process_file, std::uint32_t thread) {
    const auto [at, fresh] = thread_lines_.try_emplace({&process_file, thread}, thread_names_.size());
    if (fresh) {
      thread_names_.push_back(fmt::format("{} ({}) thread {}", printable_path(process_file.program()),
                                          process_file.header().pid, thread));
    }
    return at->second;
  }

  std::uint32_t file_line(const NamedFile& file) {
    const auto [at, fresh] = file_lines_.try_emplace(files_.number(file), file_names_.size());
    if (fresh) file_names_.push_back(printable_path(file.path));
    return at->second;
  }

  WireMessage plane(std::uint64_t id, std::string_view name, const std::vector<std::string>& lines,
                    std::uint32_t Event::*line) {
    std::stable_sort(events_.begin(), events_.end(), [&](const Event& a, const Event& b) {
      return std::pair(a.*line, a.begin_ps) < std::pair(b.*line, b.begin_ps);
    });
    WireMessage plane;
    plane.number(kId, id).bytes(kName, name);
    auto next = events_.begin();
    for (std::uint32_t i = 0; i < lines.size(); ++i) {
      WireMessage message;
      message.number(kId, i + 1).bytes(kName, lines[i]);
      for (; next != events_.end() && (*next).*line == i; ++next)
        message.message(kEvents, event_message(*next));
      plane.message(kLines, message);
    }
    for (unsigned layer = 0; layer < PENSTOCK_LAYERS; ++layer)
      for (unsigned call = 0; call < PENSTOCK_CALLS; ++call)
        name_entry(plane, kEventNames, 1 + layer * kNamesOfLayer + call,
                   fmt::format("{}{}", kEventPrefixes[layer], kCallNames[call]));
    for (unsigned component = 0; component < PENSTOCK_COMPONENTS; ++component)
      name_entry(plane, kEventNames, kFirstSpan + component, component_name(component));
    for (unsigned stat = 1; stat < std::size(kStatTexts); ++stat)
      name_entry(plane, kStatNames, stat, kStatTexts[stat]);
    return plane;
  }

  // Adds an entry to a map: the key, and a message with the number and the name.
  static void name_entry(WireMessage& plane, unsigned field, unsigned number, std::string_view name) {
    const WireMessage named = WireMessage().number(kId, number).bytes(kName, name);
    plane.message(field, WireMessage().number(1, number).message(2, named));
  }

  static WireMessage event_message(const Event& event) {
    WireMessage message;
    message.number(kEventName, event.name)
        .number(kBeginPs, event.begin_ps)
        .number(kLengthPs, event.length_ps);
    const auto stat = [&](Stat name, std::uint64_t value) {
      message.message(kStats, WireMessage().number(kStatName, name).number(kStatValue, value));
    };
    stat(kBytes, event.bytes);
    stat(kThread, event.thread);
    if (event.offset != UINT64_MAX) stat(kOffset, event.offset);
    if (event.failed != 0) stat(kErrno, event.failed);
    if (event.number != PENSTOCK_NO_NUMBER) stat(kNumber, event.number);
    return message;
  }

  const NamedFiles& files_;
  std::int64_t begin_ns_;
  std::map<std::pair<const ProcessFile*, std::uint32_t>, std::uint32_t> thread_lines_;
  std::map<std::size_t, std::uint32_t> file_lines_;
  std::vector<std::string> thread_names_;
  std::vector<std::string> file_names_;
  std::vector<Event> events_;
};

// Selects the `most` longest calls, by ticks.
class Longest {
 public:
  Longest(const Session& session, const NamedFiles& files, std::uint64_t most) : ties_left_(most) {
    std::vector<std::uint64_t> ticks;
    each_segment(session, [&](const penstock_segment& segment, const ProcessFile& process_file) {
      if (is_traced(segment, process_file, files)) ticks.push_back(ticks_of(segment));
    });
    if (ticks.size() <= most) return;
    const auto border = ticks.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(ticks.begin(), border, ticks.end(), std::greater<>());
    shortest_ = *border;
    ties_left_ -= static_cast<std::uint64_t>(
        std::count_if(ticks.begin(), border, [&](std::uint64_t one) { return one > shortest_; }));
  }
  // To be called once for each call, in any order.
  bool selects(std::uint64_t ticks) {
    if (ticks != shortest_) return ticks > shortest_;
    if (ties_left_ == 0) return false;
    --ties_left_;
    return true;
  }

 private:
  std::uint64_t shortest_ = 0;  // the shortest selected duration
  std::uint64_t ties_left_;     // how many calls of exactly that duration can still be selected
};

}  // namespace

Result<void> write_xplane(const Session& session, const NamedFiles& files, std::int64_t begin_ns,
                          std::uint64_t most, WholeFile& to, ExportCounts& counts) {
  Trace trace(files, begin_ns);
  Longest longest(session, files, most);
  each_segment(session, [&](const penstock_segment& segment, const ProcessFile& process_file) {
    if (!is_traced(segment, process_file, files)) return;
    const bool is_selected = longest.selects(ticks_of(segment));
    ++(is_selected ? counts.calls : counts.calls_left_out);
    if (is_selected) trace.call(segment, process_file);
  });
  std::uint64_t spans = 0;
  for (const auto& process_file : session.process_files)
    process_file->view().each<penstock_span>(PENSTOCK_BLOCK_SPANS,
                                             [&](const penstock_span& span, std::uint64_t) {
                                               if (span.component < PENSTOCK_COMPONENTS && ++spans <= most)
                                                 trace.span(span, *process_file);
                                             });
  return trace.write(printable_path(session.processes.front().first().host()), to);
}

}  // namespace penstock
