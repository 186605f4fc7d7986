// `penstock profile trace on|off PID|SESSION... [--for TIME]`: begins or ends the recording of every single
// call.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "profiling/live/recording_process.hpp"
#include "profiling/live/trace_window.hpp"
#include "profiling/subcommands/profile_arguments.hpp"

namespace penstock {
namespace {

using std::chrono::steady_clock;

double seconds_of(const TracedProcess& traced) {
  return traced.from_ns == 0 ? 0 : double(traced.to_ns - traced.from_ns) / 1e9;
}

// Returns the limit of the trace's size, for the end of a sentence about the calls that are recorded: "at
// most 256 MiB of them", or "without a limit".
std::string limit_text(const RecordingProcess& process, const Output& output) {
  if (process.trace_limit_bytes == 0) return "without a size limit";
  return fmt::format("at most {} per process", format_bytes(double(process.trace_limit_bytes), output));
}

// Prints a line for each process: the text that text_of() returns, or nothing if it is "". If the trace of a
// process could not be switched on or off, prints a warning, and the exit code that is returned is 1.
int report_traced(const CommandContext& context, std::span<const TracedProcess> processes, bool by_window,
                  const std::function<std::string(const TracedProcess&)>& text_of) {
  int code = 0;
  for (const TracedProcess& traced : processes) {
    const std::string name = process_text(traced.process);
    if (!traced.error_text.empty()) {
      code = 1;
      warn(fmt::format("{}: {}", name, traced.error_text));
    }
    if (context.output.json) {
      Json row = process_json(traced.process);
      row["changed"] = traced.from_ns != 0;
      row["ended"] = traced.ended;
      row["failed"] = traced.error_text;
      if (by_window) {
        row["from_ns"] = traced.from_ns;
        row["to_ns"] = traced.from_ns == 0 ? 0 : traced.to_ns;
        row["kept_s"] = seconds_of(traced);
      }
      print_json(row);
    } else if (const std::string text = text_of(traced); !text.empty()) {
      print_line(fmt::format("{}: {}", name, text));
    }
  }
  return code;
}

Result<int> switch_now(const CommandContext& context, const TraceTargets& targets, bool switch_on) {
  PENSTOCK_ASSIGN(const std::vector<TracedProcess> processes, switch_trace(targets, switch_on));
  return report_traced(context, processes, false, [&](const TracedProcess& traced) -> std::string {
    if (traced.ended) return "it has ended";
    if (!traced.error_text.empty()) return "";
    const bool was_switched = traced.from_ns != 0;
    if (!switch_on) return fmt::format("calls are {} counted", was_switched ? "now only" : "still only");
    return fmt::format("every call is{} recorded, {}", was_switched ? " now" : " still",
                       limit_text(traced.process, context.output));
  });
}

std::string window_text(const TracedProcess& traced) {
  if (traced.was_on) return "every call is still recorded";
  if (traced.from_ns != 0)
    return fmt::format("every call was recorded for {:.2f} s{}", seconds_of(traced),
                       traced.ended ? "; then it ended" : "");
  return traced.ended ? "it has ended" : "";
}

Result<int> trace_for(const CommandContext& context, TraceTargets targets, std::chrono::nanoseconds time) {
  constexpr auto kLeastPause = std::chrono::milliseconds(50);
  // the pause after an update is at least this many times as long as the update took
  constexpr int kPausePerUpdateTime = 10;
  const auto begin = steady_clock::now();
  TraceWindow window(std::move(targets));
  bool stopped = false;
  {
    Progress progress(context.output.progress, "tracing",
                      uint64_t(std::chrono::ceil<std::chrono::seconds>(time).count()), "s");
    uint64_t shown_s = 0;
    do {
      const auto update_begin = steady_clock::now();
      PENSTOCK_TRY(window.update());
      const auto now = steady_clock::now();
      const auto passed_s = uint64_t(std::chrono::floor<std::chrono::seconds>(now - begin).count());
      progress.set_note(count_of(window.running_count(), "process", "processes"));
      progress.advance(passed_s - shown_s);
      shown_s = passed_s;
      const auto pause =
          std::max<steady_clock::duration>(kLeastPause, kPausePerUpdateTime * (now - update_begin));
      stopped = !sleep_until(std::min(begin + time, now + pause)).ok();
    } while (!stopped && !window.finished() && steady_clock::now() < begin + time);
    window.end();
  }
  const int code = report_traced(context, window.processes(), true, window_text);
  return stopped ? 1 : code;
}

Result<int> run_trace(const CommandContext& context) {
  if (context.positionals[0] != "on" && context.positionals[0] != "off")
    return make_error(Errc::invalid_argument,
                      "'trace' needs on or off, then processes or sessions: penstock profile trace on 4711, "
                      "penstock profile trace on SESSION --for 10s");
  const bool switch_on = context.positionals[0] == "on";
  const bool has_duration = context.options.given("for");
  if (has_duration && (!switch_on || context.options.duration("for") <= std::chrono::nanoseconds(0)))
    return make_error(Errc::invalid_argument, "--for goes with 'trace on' and must be above 0: --for 10s");
  PENSTOCK_ASSIGN(TraceTargets targets, trace_targets(context.positionals.subspan(1)));
  if (context.options.given("rank")) {
    if (targets.folders.empty())
      return make_error(Errc::invalid_argument, "--rank selects processes of a SESSION: name its folder");
    targets.ranks = context.options.list("rank");
  }
  if (has_duration) return trace_for(context, std::move(targets), context.options.duration("for"));
  return switch_now(context, targets, switch_on);
}

constexpr OptionSpec kTraceOptions[] = {
    {.name = "for",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .help = "trace on: record every call for TIME or until Ctrl-C, then only count calls",
     .group = "Trace"},
    {.name = "rank",
     .role = OptionRole::target,
     .type = OptionType::list,
     .value = "LIST",
     .help = "only processes of a SESSION that have these ranks: 0,2 or 0..3",
     .group = "Trace",
     .at_least = 0},
};

}  // namespace

extern const CommandInfo profile_trace;
const CommandInfo profile_trace{
    .name = "profile trace",
    .summary = "start or stop recording every call of profiled processes",
    .options = kTraceOptions,
    .run = &run_trace,
    .synopsis = "penstock profile trace on|off PID|SESSION... [--for TIME] [--rank LIST]",
    .examples = {"penstock profile trace on session --for 10s   # every call of the next ten seconds"},
    .arguments = "on|off PID|SESSION...",
};

}  // namespace penstock
