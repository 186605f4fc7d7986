#include "profiling/report/session_text.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

std::string bytes_text(uint64_t bytes, const Output& output) {
  return format_bytes(double(bytes), output);
}

std::string rate_text(uint64_t bytes, double seconds, const Output& output) {
  if (seconds <= 0) return "-";
  return bytes_per_s_text(double(bytes) / seconds, output);
}

std::string seconds_text(double ns) {
  return format_seconds(ns / 1e9);
}

std::string program_text(const SessionProcess& first) {
  constexpr size_t kMostCommandBytes = 100;
  std::string command;
  for (const std::string_view word : first.last().command()) {
    if (command.size() > kMostCommandBytes) break;
    command.append(command.empty() ? "" : " ").append(word);
  }
  command = command.size() > kMostCommandBytes ? printable_path(command.substr(0, kMostCommandBytes)) + "..."
                                               : printable_path(command);
  return command.empty() ? printable_path(first.last().executable()) : command;
}

// Returns the recorded command lines: for each folder of the session, that of the process that began first.
std::string programs_text(const Session& session) {
  std::set<std::filesystem::path> folders;
  std::string programs;
  for (const SessionProcess& process : session.processes)
    if (folders.insert(process.first().path().parent_path()).second)
      programs += (programs.empty() ? "" : " | ") + program_text(process);
  if (folders.size() > 1) programs = fmt::format("{} sessions: {}", folders.size(), programs);
  return fmt::format("{}; {}", programs, count_of(session.processes.size(), "process", "processes"));
}

std::string transfer_text(uint64_t bytes, uint64_t calls, std::string_view call, double ns, double wall_s,
                          const Output& output) {
  const std::string calls_text = count_of(calls, call, output);
  if (calls == 0) return "nothing";
  return fmt::format(
      "{} in {} ({} per call); {} over the wall time; {} per thread during calls; calls took {} summed over "
      "threads",
      bytes_text(bytes, output), calls_text, format_bytes(double(bytes) / double(calls), output),
      rate_text(bytes, wall_s, output), rate_text(bytes, ns / 1e9, output), seconds_text(ns));
}

std::string percentage_text(uint64_t part, uint64_t whole) {
  return whole == 0 ? "-" : format_percent(double(part) / double(whole));
}

// The counters of sequential operations follow Darshan's rules: they include first accesses after byte 0. How
// many these are is not recorded.
std::string access_pattern_text(const LayerSum& all) {
  const auto pattern_of = [](std::string_view what, uint64_t ops, uint64_t sequential, uint64_t consecutive,
                             uint64_t first) {
    const auto percent = [&](uint64_t part) { return percentage_text(part, ops); };
    return fmt::format(
        "{}: {} at a higher offset than the call before (Darshan's 'sequential'; {} consecutive), {} not; {} "
        "are a thread's first in a file ('sequential' unless at byte 0)",
        what, percent(sequential), percent(consecutive), percent(ops - std::min(ops, sequential)),
        percent(first));
  };
  std::string text;
  if (all.reads > 0)
    text = pattern_of("reads", all.reads, all.sequential_reads, all.consecutive_reads, all.first_reads);
  if (all.writes > 0)
    text += (text.empty() ? "" : "; ") +
            pattern_of("writes", all.writes, all.sequential_writes, all.consecutive_writes, all.first_writes);
  return text;
}

// True if the bytes that were not recorded may all be those that the loader and libc read: their number fits,
// and no program or file is known to be missing.
bool may_be_the_loaders(const Session& session, const SessionSummary& summary) {
  constexpr uint64_t kMostLoaderBytes = 64U << 10U;  // of one program
  const Coverage& reads = summary.coverage.rchar;
  const Drops& drops = summary.drops;
  return reads.kernel_bytes > reads.recorded_bytes &&
         reads.kernel_bytes - reads.recorded_bytes < kMostLoaderBytes * session.process_files.size() &&
         session.unwatched.empty() && session.unread_files == 0 && drops.records + drops.operations == 0;
}

std::string coverage_text(const Session& session, const SessionSummary& summary, const Output& output) {
  const SessionCoverage& coverage = summary.coverage;
  const size_t all = session.processes.size();
  std::string text;
  if (coverage.unknown_processes < all) {
    text = coverage_summary_text(session, coverage, output);
    if (may_be_the_loaders(session, summary))
      text += "; the missing bytes may be reads of the loader and of libc itself";
  }
  const auto add_unknown = [&](size_t processes, std::string_view why) {
    if (processes == 0) return;
    text +=
        fmt::format("{}unknown for {}, {}", text.empty() ? "" : "; ",
                    processes == all ? "all processes" : count_of(processes, "process", "processes"), why);
  };
  add_unknown(coverage.unknown_processes - coverage.cut_processes,
              "because the kernel reported no final counts (usually the process was killed)");
  add_unknown(coverage.cut_processes, "because their session files are truncated");
  if (session.unread_files > coverage.cut_processes)
    text += fmt::format("; unknown for {} of the session that cannot be read",
                        count_of(session.unread_files - coverage.cut_processes, "file"));
  if (!session.unwatched.empty())
    text += fmt::format("; unknown for {} that wrote no session file",
                        count_of(session.unwatched.size(), "program"));
  if (coverage.ring_bytes > 0)
    text += fmt::format("; plus {} through io_uring and libaio", bytes_text(coverage.ring_bytes, output));
  if (coverage.spliced_bytes > 0)
    text += fmt::format("; {} spliced", bytes_text(coverage.spliced_bytes, output));
  if (coverage.mapped_bytes > 0)
    text += fmt::format("; {} memory-mapped (the pages actually accessed are unknown)",
                        bytes_text(coverage.mapped_bytes, output));
  return text;
}

std::string left_out_text(const SessionSummary& summary, const SessionFilter& filter, const Output& output) {
  const FilesSum& sum = summary.left_out;
  std::string kinds = "pipes, sockets and devices";
  if (summary.has_python)
    kinds =
        "files that Python reads at start-up (.py, .pyc, .so of its library folders, /proc, /sys), " + kinds;
  if (!filter.include.empty() || !filter.exclude.empty())
    kinds = "files that --include and --exclude leave out" + (filter.all_files ? "" : ", " + kinds);
  return fmt::format("{} with {} read and {} written: {}{}", count_of(sum.files, "file"),
                     bytes_text(sum.all.bytes_read, output), bytes_text(sum.all.bytes_written, output), kinds,
                     filter.all_files ? "" : "; to show them: --all");
}

// Returns the reason why records were dropped: " (the session could not grow: No space left on device)".
// Returns "" if all files could grow.
std::string grow_error_text(const Drops& drops) {
  if (drops.grow_errno == 0) return "";
  return fmt::format(" (the session could not grow: {})", ::strerror(int(drops.grow_errno)));
}

std::string missing_text(const Session& session, const SessionSummary& summary) {
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : "; ") + words; };
  const Drops& drops = summary.drops;
  if (session.unread_files > 0)
    add(fmt::format("the content of {} of the session that {} truncated or cannot be read",
                    count_of(session.unread_files, "file"), session.unread_files == 1 ? "was" : "were"));
  if (drops.records > 0)
    add(fmt::format("{} on {}, for lack of space{}", count_of(drops.operations, "operation"),
                    count_of(drops.records, "file"), grow_error_text(drops)));
  else if (drops.operations > 0)
    add(fmt::format("details of {}", count_of(drops.operations, "operation")));
  if (drops.segments > 0) add(dropped_calls_text(drops));
  if (drops.spans > 0) add(count_of(drops.spans, "span"));
  if (drops.unnamed_operations > 0)
    add(fmt::format("the file names of {}", count_of(drops.unnamed_operations, "operation")));
  // Programs with the same reason are named together.
  std::map<std::string, std::pair<size_t, std::string>> unwatched;
  for (const UnwatchedProgram& program : session.unwatched) {
    constexpr size_t kMostPrograms = 3;
    auto& [count, names] = unwatched[reason_text(program)];
    if (++count <= kMostPrograms)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", printable_path(program.program));
    else if (count == kMostPrograms + 1)
      names += ", ...";
  }
  for (const auto& [reason, programs] : unwatched)
    add(fmt::format("everything from {} that wrote no session file: {} ({})",
                    count_of(programs.first, "program"), programs.second, reason));
  return text;
}

}  // namespace

std::string still_running_text(const SessionCoverage& coverage) {
  std::string text;
  if (coverage.running_processes > 0)
    text = count_of(coverage.running_processes, "process is still running", "processes are still running");
  if (coverage.waiting_children > 0)
    text += fmt::format("{}{} made no I/O call yet", text.empty() ? "" : "; ",
                        count_of(coverage.waiting_children, "forked child is running and has",
                                 "forked children are running and have"));
  return text;
}

namespace {

// Returns how each run or attach in session.json ended: the exit code of its program, or the time at which
// the user detached.
std::string end_text(const Session& session, const SessionSummary& summary) {
  std::string text;
  for (size_t i = 0; i < session.exit_codes.size(); ++i) {
    const int code = session.exit_codes[i];
    std::string ending = code < 0 ? std::string("exit status unknown") : fmt::format("exit code {}", code);
    if (code < 0 && summary.coverage.running_processes > 0) ending = "still running";
    if (i < session.detach_times.size() && !session.detach_times[i].empty())
      ending = fmt::format("detached at {}; later calls are not included", session.detach_times[i]);
    if (code > 128 && code <= 128 + 64)
      ending += fmt::format(" (killed by signal {}, {})", code - 128, ::strsignal(code - 128));
    text += (text.empty() ? "" : "; ") + ending;
  }
  const std::string running = still_running_text(summary.coverage);
  return text + (text.empty() || running.empty() ? "" : "; ") + running;
}

// Says how many single calls were recorded, and from when to when. The times matter if the trace was on for
// only a part of the run, or if the oldest calls were dropped.
std::string trace_extent_text(const SessionSummary& summary) {
  const SegmentFacts& segments = *summary.segments;
  const auto seconds = [](int64_t ns) { return format_seconds(double(ns) / 1e9); };
  return fmt::format("{}; the first started {} after the start of the session; all started within {}",
                     count_of(segments.segments, "call"),
                     seconds(std::max<int64_t>(0, segments.first_ns - summary.begin_ns)),
                     seconds(std::max<int64_t>(0, segments.last_ns - segments.first_ns)));
}

bool path_exists(std::string_view path) {
  struct stat status {};
  return ::lstat(std::string(path).c_str(), &status) == 0;
}

}  // namespace

std::string printable_path(std::string_view path) {
  const bool is_plain = std::all_of(path.begin(), path.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (is_plain) return std::string(path);
  return printable(utf8_name(path));
}

std::string dropped_calls_text(const Drops& drops) {
  return fmt::format("{} of the trace{}", count_of(drops.segments, "call"),
                     drops.grow_errno != 0   ? grow_error_text(drops)
                     : drops.oldest_segments ? ", the oldest ones (--trace-limit)"
                                             : "");
}

std::string bytes_per_s_text(double bytes_per_s, const Output& output) {
  constexpr double kMebibytePerS = 1 << 20;
  if (bytes_per_s < kMebibytePerS) return format_bytes(bytes_per_s, output) + "/s";
  return fmt::format("{} {}", format_rate(bytes_per_s, output), rate_unit(output));
}

std::string coverage_share_text(const Coverage& coverage, std::string_view word, const Output& output) {
  const double fraction = coverage.fraction();
  if (!std::isfinite(fraction))
    return fmt::format("{} {}; the kernel's count is unknown", bytes_text(coverage.recorded_bytes, output),
                       word);
  if (coverage.kernel_bytes == coverage.recorded_bytes)
    return fmt::format("100% of the bytes that the kernel counted as {} ({})", word,
                       bytes_text(coverage.recorded_bytes, output));
  // Rounded towards 0: a part is never 100.00%.
  const double percent = fraction < 1 ? std::floor(fraction * 1e4) / 100 : 100 * fraction;
  return fmt::format("{:.2f}% of the bytes that the kernel counted as {} ({} of {})", percent, word,
                     bytes_text(coverage.recorded_bytes, output), bytes_text(coverage.kernel_bytes, output));
}

std::string coverage_summary_text(const Session& session, const SessionCoverage& coverage,
                                  const Output& output) {
  if (coverage.unknown_processes >= session.processes.size()) return "unknown";
  return coverage_share_text(coverage.rchar, "read", output) + "; " +
         coverage_share_text(coverage.wchar, "written", output);
}

std::vector<Fact> session_facts(const Session& session, const SessionSummary& summary,
                                const SessionFilter& filter, const Output& output) {
  const LayerSum& all = summary.included.all;
  std::vector<Fact> facts{{"program", programs_text(session)}};
  if (std::string text = end_text(session, summary); !text.empty())
    facts.push_back({"ended", std::move(text)});
  facts.push_back(
      {"files",
       fmt::format("{} and {}, in {}", count_of(summary.included.files, "file"),
                   count_of(summary.included.directories, "folder"),
                   format_seconds(summary.wall_s) +
                       (summary.wall_s < summary.span_s ? ", excluding the time between sessions" : ""))});
  facts.push_back(
      {"read", transfer_text(all.bytes_read, all.reads, "read", all.read_ns, summary.wall_s, output)});
  facts.push_back({"written", transfer_text(all.bytes_written, all.writes, "write", all.write_ns,
                                            summary.wall_s, output)});
  facts.push_back(
      {"metadata",
       fmt::format("{} in {}: {}, {}, {}, {}, {}; {} failed", count_of(all.metadata(), "operation"),
                   seconds_text(all.meta_ns), count_of(all.opens, "open"), count_of(all.stats, "stat"),
                   count_of(all.seeks, "seek"), count_of(all.syncs, "sync"), count_of(all.maps, "map"),
                   format_count(all.failures)) +
           (summary.coverage.missed_calls == 0
                ? ""
                : fmt::format("; plus {} of paths that do not exist (ENOENT), in {}",
                              count_of(summary.coverage.missed_calls, "lookup", "lookups"),
                              seconds_text(summary.coverage.missed_ns)))});
  facts.push_back(
      {"time in I/O",
       fmt::format("{} ({})", format_seconds(summary.io_s),
                   summary.io_is_union ? "at least one thread was in a call"
                                       : "summed over threads; record with --trace to account for overlap")});
  if (summary.segments && summary.segments->segments > 0)
    facts.push_back({"traced calls", trace_extent_text(summary)});
  if (std::string text = access_pattern_text(all); !text.empty())
    facts.push_back({"pattern", std::move(text)});
  facts.push_back({"coverage", coverage_text(session, summary, output)});
  if (summary.left_out.files + summary.left_out.directories > 0)
    facts.push_back({"left out", left_out_text(summary, filter, output)});
  if (std::string text = missing_text(session, summary); !text.empty())
    facts.push_back({"missing", std::move(text)});
  return facts;
}

Rows file_rows(const TopFiles& files, const Output& output) {
  Rows rows{{"file", "size seen", "opens", "reads", "read", "writes", "written", "read time", "write time",
             "metadata"},
            {},
            files.skipped()};
  for (const FileSum& file : files.ranked()) {
    std::string name =
        file.path.empty() ? fmt::format("(no name) {:016x}", file.file) : printable_path(file.path);
    if (file.shares_key) name += " (shares its key)";
    if (file.kind == PENSTOCK_DIRECTORY) name += "/";
    if (!file.path.empty() && file.kind != PENSTOCK_OTHER_FILE && !path_exists(file.path))
      name += " (deleted or renamed)";
    rows.rows.push_back({std::move(name), bytes_text(file.size, output), format_count(file.all.opens, output),
                         format_count(file.all.reads, output), bytes_text(file.all.bytes_read, output),
                         format_count(file.all.writes, output), bytes_text(file.all.bytes_written, output),
                         seconds_text(file.all.read_ns), seconds_text(file.all.write_ns),
                         seconds_text(file.all.meta_ns)});
  }
  return rows;
}

Rows roll_up_rows(std::string_view title, std::span<const RollUp> rolled, const Output& output,
                  uint64_t not_shown) {
  Rows rows{{std::string(title), "files", "reads", "read", "writes", "written", "operations", "time"},
            {},
            not_shown};
  for (const RollUp& row : rolled) {
    std::string name = row.name.empty() ? "(no path)" : printable_path(row.name);
    if (!row.name.empty() && !path_exists(row.name)) {
      name += " (deleted or renamed)";
    } else if (!row.largest_file.empty() && !path_exists(row.largest_file)) {
      name += " (its busiest file was deleted or renamed)";
    }
    rows.rows.push_back({std::move(name), format_count(row.files, output),
                         format_count(row.all.reads, output), bytes_text(row.all.bytes_read, output),
                         format_count(row.all.writes, output), bytes_text(row.all.bytes_written, output),
                         format_count(row.all.operations(), output), seconds_text(row.all.io_ns())});
  }
  return rows;
}

Rows process_rows(std::span<const ProcessSum> processes, size_t most, const Output& output) {
  Rows rows{{"process", "pid", "parent", "threads", "files", "reads", "read", "writes", "written", "time"},
            {},
            processes.size() - std::min(most, processes.size())};
  for (const ProcessSum& row : processes) {
    if (rows.rows.size() == most) break;
    const ProcessFile& last_file = row.process->last();
    std::string name = printable_path(last_file.executable());
    if (const auto command = last_file.command(); !command.empty()) name = printable_path(command[0]);
    rows.rows.push_back({std::move(name), fmt::format("{}", last_file.header().pid),
                         fmt::format("{}", row.process->first().header().parent_pid),
                         format_count(row.threads, output), format_count(row.files, output),
                         format_count(row.all.reads, output), bytes_text(row.all.bytes_read, output),
                         format_count(row.all.writes, output), bytes_text(row.all.bytes_written, output),
                         seconds_text(row.all.io_ns())});
  }
  return rows;
}

Rows size_rows(const SessionSummary& summary, const Output& output) {
  Rows rows{{"bytes", "reads", "writes", "files (size seen)"}, {}, 0};
  for (size_t i = 0; i < PENSTOCK_SIZE_BUCKETS; ++i) {
    const uint64_t reads = summary.included.all.read_sizes[i];
    const uint64_t writes = summary.included.all.write_sizes[i];
    if (reads + writes + summary.files_by_size[i] == 0) continue;
    rows.rows.push_back({std::string(size_bucket_text(i)), format_count(reads, output),
                         format_count(writes, output), format_count(summary.files_by_size[i], output)});
  }
  return rows;
}

std::string facts_text(std::span<const Fact> facts) {
  size_t width = 0;
  for (const Fact& fact : facts) width = std::max(width, fact.title.size());
  std::string text;
  for (const Fact& fact : facts) text += fmt::format("{:<{}}  {}\n", fact.title, width, fact.text);
  return text;
}

std::string rows_text(const Rows& rows) {
  std::vector<Table::Column> columns;
  for (const std::string& title : rows.titles)
    columns.push_back({title, columns.empty() ? Align::left : Align::right});
  Table table(std::move(columns));
  for (const auto& row : rows.rows) table.row(row);
  return table.text() + not_shown_text(rows) + (rows.not_shown > 0 ? "\n" : "");
}

std::string not_shown_text(const Rows& rows) {
  return rows.not_shown > 0 ? fmt::format("{} more not shown", format_count(rows.not_shown)) : "";
}

}  // namespace penstock
