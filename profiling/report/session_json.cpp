#include "profiling/report/session_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "io_backends/core/json_text.hpp"
#include "profiling/session/layers.hpp"

namespace penstock {
namespace {

constexpr std::size_t kEntriesInPart = 16'384;
constexpr std::size_t kLayerOrder[PENSTOCK_LAYERS] = {PENSTOCK_POSIX, PENSTOCK_STDIO, PENSTOCK_MPIIO,
                                                      PENSTOCK_HDF5, PENSTOCK_RING};

// Each member ends with a comma and a blank. close() removes those of the last member.
void key(std::string& out, std::string_view name) {
  const std::size_t at = out.size();
  out.resize(at + name.size() + 4);
  char* to = out.data() + at;
  *to++ = '"';
  name.copy(to, name.size());
  to += name.size();
  *to++ = '"';
  *to++ = ':';
  *to = ' ';
}

template <class Whole>
void number(std::string& out, std::string_view name, Whole value) {
  key(out, name);
  if (value >= 0 && value < 10) {  // most values are 0 or 1
    const char digit[] = {static_cast<char>('0' + value), ',', ' '};
    out.append(digit, sizeof digit);
    return;
  }
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
  out.append(", ", 2);
}

// Rounded to a nanosecond; the values are not more exact.
void seconds(std::string& out, std::string_view name, double ns) {
  key(out, name);
  const double bounded = std::isfinite(ns) ? std::clamp(ns, 0.0, 9e18) : 0;
  const auto whole = static_cast<std::uint64_t>(std::llround(bounded));
  const fmt::format_int text(whole / 1'000'000'000);
  out.append(text.data(), text.size());
  if (const std::uint64_t rest = whole % 1'000'000'000; rest != 0) {
    char digits[10] = {'.'};
    std::uint64_t left = rest;
    for (int i = 9; i > 0; --i, left /= 10) digits[i] = static_cast<char>('0' + left % 10);
    int used = 10;
    while (digits[used - 1] == '0') --used;
    out.append(digits, static_cast<std::size_t>(used));
  }
  out += ", ";
}

void text_member(std::string& out, std::string_view name, std::string_view text) {
  key(out, name);
  append_json_text(out, text);
  out += ", ";
}

void flag(std::string& out, std::string_view name, bool value) {
  key(out, name);
  out += value ? "true, " : "false, ";
}

void close(std::string& out) {
  if (out.back() == ' ') out.resize(out.size() - 2);
  out += '}';
}
void end_line(std::string& out) {
  close(out);
  out += '\n';
}

// `append` appends the members.
void object(std::string& out, std::string_view name, auto append) {
  key(out, name);
  out += '{';
  append();
  close(out);
  out += ", ";
}

// `append` appends one value.
void list(std::string& out, std::string_view name, const auto& values, auto append) {
  key(out, name);
  out += '[';
  bool first = true;
  for (const auto& value : values) {
    out += first ? "" : ", ";
    first = false;
    append(value);
  }
  out += "], ";
}

void histogram(std::string& out, std::string_view name,
               const std::array<std::uint64_t, PENSTOCK_SIZE_BUCKETS>& counts) {
  static const std::string none = [] {
    std::string text;
    for (std::size_t i = 0; i < PENSTOCK_SIZE_BUCKETS; ++i) number(text, size_bucket_name(i), 0);
    return text;
  }();
  object(out, name, [&] {
    if (std::all_of(counts.begin(), counts.end(), [](std::uint64_t count) { return count == 0; })) {
      out += none;  // most files are never written
    } else {
      for (std::size_t i = 0; i < counts.size(); ++i) number(out, size_bucket_name(i), counts[i]);
    }
  });
}

void counts(std::string& out, const LayerSum& sum) {
  number(out, "opens", sum.opens);
  number(out, "reads", sum.reads);
  number(out, "writes", sum.writes);
  number(out, "stats", sum.stats);
  number(out, "seeks", sum.seeks);
  number(out, "syncs", sum.syncs);
  number(out, "mmaps", sum.maps);
  number(out, "bytes_read", sum.bytes_read);
  number(out, "bytes_written", sum.bytes_written);
}

void times(std::string& out, const LayerSum& sum) {
  seconds(out, "read_time_s", sum.read_ns);
  seconds(out, "write_time_s", sum.write_ns);
  seconds(out, "meta_time_s", sum.meta_ns);
}

void patterns(std::string& out, const LayerSum& sum) {
  number(out, "sequential_reads", sum.sequential_reads);
  number(out, "consecutive_reads", sum.consecutive_reads);
  number(out, "sequential_writes", sum.sequential_writes);
  number(out, "consecutive_writes", sum.consecutive_writes);
}

void layers(std::string& out, const FileSum& file) {
  object(out, "layers", [&] {
    for (const std::size_t layer : kLayerOrder)
      object(out, kLayerNames[layer], [&] {
        if ((file.layers_used & (1U << layer)) == 0) return;
        counts(out, file.layers[layer]);
        times(out, file.layers[layer]);
      });
  });
}

void coverage_of(std::string& out, std::string_view name, const Coverage& coverage, bool known) {
  object(out, name, [&] {
    number(out, "kernel", coverage.kernel);
    number(out, "seen", coverage.recorded);
    key(out, "fraction");
    const double fraction = coverage.fraction();
    out += known && std::isfinite(fraction) ? fmt::format("{:.6f}, ", fraction) : "null, ";
  });
}

std::string_view state_name(const ProcessFile& process_file) {
  switch (process_file.header().state) {
    case PENSTOCK_ENDED:
      return "ended";
    case PENSTOCK_EXECUTED:
      return "executed";
    case PENSTOCK_STOPPED:
      return "stopped";
    default:
      return "running or killed";
  }
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\';
  });
  if (plain) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += one_line(text);
  }
}

void append_session_json(std::string& out, const Session& session, const SessionSummary& summary) {
  const LayerSum& all = summary.included.all;
  const SessionCoverage& coverage = summary.coverage;
  out += R"({"kind": "session", )";
  number(out, "processes", session.processes.size());
  number(out, "images", session.process_files.size());
  number(out, "threads", coverage.threads);
  number(out, "running_processes", coverage.running_processes);
  list(out, "exit_codes", session.exit_codes,
       [&](int code) { out += code < 0 ? "null" : std::to_string(code); });
  list(out, "detached", session.detached, [&](const std::string& time) {
    if (time.empty())
      out += "null";
    else
      append_json_text(out, time);
  });
  number(out, "files", summary.included.files);
  number(out, "directories", summary.included.directories);
  number(out, "bytes_read", all.bytes_read);
  number(out, "bytes_written", all.bytes_written);
  number(out, "read_ops", all.reads);
  number(out, "write_ops", all.writes);
  number(out, "metadata_ops", all.metadata());
  number(out, "failed_ops", all.failures);
  number(out, "missed_ops", coverage.missed_calls);
  seconds(out, "missed_time_s", coverage.missed_ns);
  number(out, "begin_ns", summary.begin_ns);
  seconds(out, "wall_s", summary.wall_s * 1e9);
  seconds(out, "io_s", summary.io_s * 1e9);
  text_member(out, "io_time", summary.io_is_union ? "union over threads" : "sum over threads");
  times(out, all);
  object(out, "calls_kept", [&] {
    const SegmentFacts segments = summary.segments.value_or(SegmentFacts{});
    number(out, "calls", segments.segments);
    number(out, "first_ns", segments.first_ns);
    number(out, "last_ns", segments.last_ns);
  });
  number(out, "dropped", summary.drops.records + summary.drops.operations);
  object(out, "drops", [&] {
    number(out, "records", summary.drops.records);
    number(out, "operations", summary.drops.operations);
    number(out, "segments", summary.drops.segments);
    number(out, "spans", summary.drops.spans);
    if (summary.drops.grow_errno != 0)
      text_member(out, "no_room", ::strerror(static_cast<int>(summary.drops.grow_errno)));
  });
  number(out, "unnamed_ops", summary.drops.unnamed);
  object(out, "left_out", [&] {
    number(out, "files", summary.left_out.files);
    number(out, "directories", summary.left_out.directories);
    number(out, "bytes_read", summary.left_out.all.bytes_read);
    number(out, "bytes_written", summary.left_out.all.bytes_written);
    number(out, "operations", summary.left_out.all.operations());
    number(out, "tried_in_vain", summary.failed_names);
  });
  patterns(out, all);
  histogram(out, "read_sizes", all.read_sizes);
  histogram(out, "write_sizes", all.write_sizes);
  histogram(out, "file_sizes", summary.file_sizes);
  object(out, "coverage", [&] {
    const bool known = coverage.unknown_processes < session.processes.size();
    coverage_of(out, "rchar", coverage.rchar, known);
    coverage_of(out, "wchar", coverage.wchar, known);
    number(out, "ring_bytes", coverage.ring_bytes);
    number(out, "mapped_bytes", coverage.mapped_bytes);
    number(out, "spliced_bytes", coverage.spliced_bytes);
    number(out, "unknown_processes", coverage.unknown_processes);
    number(out, "cut_processes", coverage.cut_processes);
  });
  list(out, "unwatched", session.unwatched, [&](const UnwatchedProgram& program) {
    out += '{';
    number(out, "pid", program.pid);
    text_member(out, "program", program.program);
    flag(out, "by_attached", program.by_attached);
    close(out);
  });
  list(out, "problems", session.problems,
       [&](const std::string& problem) { append_json_text(out, problem); });
  end_line(out);
}

void append_file_json(std::string& out, const FileSum& file) {
  out += R"({"kind": "file", )";
  text_member(out, "path", file.path);
  text_member(out, "type", file_type_name(file.kind));
  if (file.shares_key) flag(out, "shares_key", true);
  counts(out, file.all);
  number(out, "closes", file.all.closes);
  number(out, "other", file.all.other);
  number(out, "failures", file.all.failures);
  number(out, "size", file.size);
  number(out, "mapped_bytes", file.mapped_bytes);
  layers(out, file);
  times(out, file.all);
  patterns(out, file.all);
  number(out, "read_write_switches", file.all.read_write_switches);
  histogram(out, "read_sizes", file.all.read_sizes);
  histogram(out, "write_sizes", file.all.write_sizes);
  number(out, "first_ns", file.first_ns);
  number(out, "last_ns", file.last_ns);
  number(out, "processes", file.processes);
  number(out, "threads", file.threads);
  end_line(out);
}

void append_process_json(std::string& out, const ProcessSum& process) {
  const ProcessFile& first = process.process->first();
  const ProcessFile& last = process.process->last();
  out += R"({"kind": "process", )";
  number(out, "pid", first.header().pid);
  number(out, "parent_pid", first.header().parent_pid);
  text_member(out, "host", first.host());
  text_member(out, "executable", last.executable());
  list(out, "command", last.command(), [&](std::string_view word) { append_json_text(out, word); });
  text_member(out, "state", state_name(last));
  number(out, "images", process.process->process_files.size());
  number(out, "rank", last.header().rank);
  number(out, "ranks", last.header().ranks);
  number(out, "begin_ns", first.header().begin_realtime_ns);
  number(out, "end_ns", last.view().clock().realtime_ns(last.end_monotonic_ns()));
  number(out, "files", process.files);
  number(out, "threads", process.threads);
  counts(out, process.all);
  times(out, process.all);
  end_line(out);
}

void append_roll_up_json(std::string& out, std::string_view kind, const RollUp& row) {
  out += R"({"kind": ")";
  out += kind;
  out += "\", ";
  text_member(out, "path", row.name);
  number(out, "files", row.files);
  number(out, "bytes_read", row.all.bytes_read);
  number(out, "bytes_written", row.all.bytes_written);
  number(out, "reads", row.all.reads);
  number(out, "writes", row.all.writes);
  number(out, "metadata_ops", row.all.metadata());
  times(out, row.all);
  end_line(out);
}

// Several threads make the texts of consecutive parts, each in a string of its own. After they are joined,
// this thread writes the strings in order. So memory is limited, and the output has the order of FileSums.
Result<void> write_files_json(const FileSums& sums, const SessionFilter& filter, std::FILE* out) {
  const std::size_t parts = std::max<std::size_t>(1, sums.entries() / kEntriesInPart);
  std::vector<std::string> texts(std::min(parts, summing_threads()));
  const auto make = [&](std::size_t part, std::string& text) {
    text.clear();
    sums.each_of_part(part, parts, filter.wanted(), [&](const FileSum& file) {
      if (has_operations(file)) append_file_json(text, file);
    });
  };
  for (std::size_t from = 0; from < parts; from += texts.size()) {
    const std::size_t now = std::min(texts.size(), parts - from);
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < now; ++i) others.emplace_back([&, i] { make(from + i, texts[i]); });
      make(from, texts[0]);
    }
    for (std::size_t i = 0; i < now; ++i)
      if (std::fwrite(texts[i].data(), 1, texts[i].size(), out) != texts[i].size())
        return errno_error(errno, "cannot write", "the report");
  }
  return success();
}

}  // namespace penstock
