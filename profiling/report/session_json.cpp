#include "profiling/report/session_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/system/threads.hpp"
#include "profiling/session/layers.hpp"

namespace penstock {
namespace {

constexpr size_t kEntriesPerPart = 16'384;
constexpr size_t kLayerOrder[PENSTOCK_LAYERS] = {PENSTOCK_POSIX, PENSTOCK_STDIO, PENSTOCK_MPIIO,
                                                 PENSTOCK_HDF5, PENSTOCK_RING};

// Appends the key of a member of an object. Each value is followed by ", "; close_object() removes the ", "
// after the last value.
void append_key(std::string& out, std::string_view name) {
  const size_t at = out.size();
  out.resize(at + name.size() + 4);
  char* to = out.data() + at;
  *to++ = '"';
  name.copy(to, name.size());
  to += name.size();
  *to++ = '"';
  *to++ = ':';
  *to = ' ';
}

template <class Integer>
void append_number(std::string& out, std::string_view name, Integer value) {
  append_key(out, name);
  if (value >= 0 && value < 10) {  // faster than fmt for one digit; most values are 0 or 1
    const char digit[] = {char('0' + value), ',', ' '};
    out.append(digit, sizeof digit);
    return;
  }
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
  out.append(", ", 2);
}

// Appends a time in seconds, rounded to a nanosecond: the recorded times are not more exact.
void append_seconds(std::string& out, std::string_view name, double ns) {
  append_key(out, name);
  const double bounded_ns = std::isfinite(ns) ? std::clamp(ns, 0.0, 9e18) : 0;
  const auto whole_ns = uint64_t(std::llround(bounded_ns));
  const fmt::format_int text(whole_ns / 1'000'000'000);
  out.append(text.data(), text.size());
  if (const uint64_t rest = whole_ns % 1'000'000'000; rest != 0) {
    char digits[10] = {'.'};
    uint64_t left = rest;
    for (int i = 9; i > 0; --i, left /= 10) digits[i] = char('0' + left % 10);
    int digit_count = 10;
    while (digits[digit_count - 1] == '0') --digit_count;
    out.append(digits, size_t(digit_count));
  }
  out += ", ";
}

void append_text(std::string& out, std::string_view name, std::string_view text) {
  append_key(out, name);
  append_json_text(out, text);
  out += ", ";
}

void append_flag(std::string& out, std::string_view name, bool value) {
  append_key(out, name);
  out += value ? "true, " : "false, ";
}

void close_object(std::string& out) {
  if (out.back() == ' ') out.resize(out.size() - 2);
  out += '}';
}
void end_line(std::string& out) {
  close_object(out);
  out += '\n';
}

// Appends a JSON object with the key `name`. `append` is called to append its members.
void append_object(std::string& out, std::string_view name, auto append) {
  append_key(out, name);
  out += '{';
  append();
  close_object(out);
  out += ", ";
}

// Appends a JSON list with the key `name`. `append` is called for each value, to append it.
void append_list(std::string& out, std::string_view name, const auto& values, auto append) {
  append_key(out, name);
  out += '[';
  bool is_first = true;
  for (const auto& value : values) {
    out += is_first ? "" : ", ";
    is_first = false;
    append(value);
  }
  out += "], ";
}

void append_histogram(std::string& out, std::string_view name,
                      const std::array<uint64_t, PENSTOCK_SIZE_BUCKETS>& counts) {
  static const std::string all_zeros = [] {
    std::string text;
    for (size_t i = 0; i < PENSTOCK_SIZE_BUCKETS; ++i) append_number(text, size_bucket_name(i), 0);
    return text;
  }();
  append_object(out, name, [&] {
    if (std::all_of(counts.begin(), counts.end(), [](uint64_t count) { return count == 0; })) {
      out += all_zeros;  // this text is the most frequent one: most files are never written
    } else {
      for (size_t i = 0; i < counts.size(); ++i) append_number(out, size_bucket_name(i), counts[i]);
    }
  });
}

void append_counts(std::string& out, const LayerSum& sum) {
  append_number(out, "opens", sum.opens);
  append_number(out, "reads", sum.reads);
  append_number(out, "writes", sum.writes);
  append_number(out, "stats", sum.stats);
  append_number(out, "seeks", sum.seeks);
  append_number(out, "syncs", sum.syncs);
  append_number(out, "mmaps", sum.maps);
  append_number(out, "bytes_read", sum.bytes_read);
  append_number(out, "bytes_written", sum.bytes_written);
}

void append_times(std::string& out, const LayerSum& sum) {
  append_seconds(out, "read_time_s", sum.read_ns);
  append_seconds(out, "write_time_s", sum.write_ns);
  append_seconds(out, "meta_time_s", sum.meta_ns);
}

void append_patterns(std::string& out, const LayerSum& sum) {
  append_number(out, "sequential_reads", sum.sequential_reads);
  append_number(out, "consecutive_reads", sum.consecutive_reads);
  append_number(out, "sequential_writes", sum.sequential_writes);
  append_number(out, "consecutive_writes", sum.consecutive_writes);
}

void append_layers(std::string& out, const FileSum& file) {
  append_object(out, "layers", [&] {
    for (const size_t layer : kLayerOrder)
      append_object(out, kLayerNames[layer], [&] {
        if ((file.layers_used & (1U << layer)) == 0) return;
        append_counts(out, file.layers[layer]);
        append_times(out, file.layers[layer]);
      });
  });
}

void append_coverage(std::string& out, std::string_view name, const Coverage& coverage, bool is_known) {
  append_object(out, name, [&] {
    append_number(out, "kernel", coverage.kernel_bytes);
    append_number(out, "seen", coverage.recorded_bytes);
    append_key(out, "fraction");
    const double fraction = coverage.fraction();
    out += is_known && std::isfinite(fraction) ? fmt::format("{:.6f}, ", fraction) : "null, ";
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
  const bool is_plain = std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\';
  });
  if (is_plain) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += one_line(utf8_name(text));
  }
}

void append_session_json(std::string& out, const Session& session, const SessionSummary& summary) {
  const LayerSum& all = summary.included.all;
  const SessionCoverage& coverage = summary.coverage;
  out += R"({"kind": "session", )";
  append_number(out, "processes", session.processes.size());
  append_number(out, "images", session.process_files.size());
  append_number(out, "threads", coverage.threads);
  append_number(out, "running_processes", coverage.running_processes);
  append_number(out, "waiting_children", coverage.waiting_children);
  append_list(out, "exit_codes", session.exit_codes,
              [&](int code) { out += code < 0 ? "null" : std::to_string(code); });
  append_list(out, "detached", session.detach_times, [&](const std::string& time) {
    if (time.empty())
      out += "null";
    else
      append_json_text(out, time);
  });
  append_number(out, "files", summary.included.files);
  append_number(out, "directories", summary.included.directories);
  append_number(out, "bytes_read", all.bytes_read);
  append_number(out, "bytes_written", all.bytes_written);
  append_number(out, "read_ops", all.reads);
  append_number(out, "write_ops", all.writes);
  append_number(out, "metadata_ops", all.metadata());
  append_number(out, "failed_ops", all.failures);
  append_number(out, "missed_ops", coverage.missed_calls);
  append_seconds(out, "missed_time_s", coverage.missed_ns);
  append_number(out, "begin_ns", summary.begin_ns);
  append_seconds(out, "wall_s", summary.wall_s * 1e9);
  append_seconds(out, "io_s", summary.io_s * 1e9);
  append_text(out, "io_time", summary.io_is_union ? "union over threads" : "sum over threads");
  append_times(out, all);
  append_object(out, "calls_kept", [&] {
    const SegmentFacts segments = summary.segments.value_or(SegmentFacts{});
    append_number(out, "calls", segments.segments);
    append_number(out, "first_ns", segments.first_ns);
    append_number(out, "last_ns", segments.last_ns);
  });
  append_number(out, "dropped", summary.drops.records + summary.drops.operations);
  append_object(out, "drops", [&] {
    append_number(out, "records", summary.drops.records);
    append_number(out, "operations", summary.drops.operations);
    append_number(out, "segments", summary.drops.segments);
    append_number(out, "spans", summary.drops.spans);
    if (summary.drops.grow_errno != 0) append_text(out, "no_room", ::strerror(int(summary.drops.grow_errno)));
  });
  append_number(out, "unnamed_ops", summary.drops.unnamed_operations);
  append_object(out, "left_out", [&] {
    append_number(out, "files", summary.left_out.files);
    append_number(out, "directories", summary.left_out.directories);
    append_number(out, "bytes_read", summary.left_out.all.bytes_read);
    append_number(out, "bytes_written", summary.left_out.all.bytes_written);
    append_number(out, "operations", summary.left_out.all.operations());
    append_number(out, "tried_in_vain", summary.failed_names);
  });
  append_patterns(out, all);
  append_histogram(out, "read_sizes", all.read_sizes);
  append_histogram(out, "write_sizes", all.write_sizes);
  append_histogram(out, "file_sizes", summary.files_by_size);
  append_object(out, "coverage", [&] {
    const bool is_known = coverage.unknown_processes < session.processes.size();
    append_coverage(out, "rchar", coverage.rchar, is_known);
    append_coverage(out, "wchar", coverage.wchar, is_known);
    append_number(out, "ring_bytes", coverage.ring_bytes);
    append_number(out, "mapped_bytes", coverage.mapped_bytes);
    append_number(out, "spliced_bytes", coverage.spliced_bytes);
    append_number(out, "unknown_processes", coverage.unknown_processes);
    append_number(out, "cut_processes", coverage.cut_processes);
    append_number(out, "unread_files", session.unread_files);
  });
  append_list(out, "unwatched", session.unwatched, [&](const UnwatchedProgram& program) {
    out += '{';
    append_number(out, "pid", program.pid);
    append_text(out, "program", program.program);
    append_flag(out, "by_attached", program.started_by_attached);
    append_flag(out, "forked", program.is_fork);
    append_text(out, "reason", reason_text(program));
    close_object(out);
  });
  append_list(out, "problems", session.problems,
              [&](const std::string& problem) { append_json_text(out, problem); });
  end_line(out);
}

void append_file_json(std::string& out, const FileSum& file) {
  out += R"({"kind": "file", )";
  append_text(out, "path", file.path);
  append_text(out, "type", file_type_name(file.kind));
  if (file.shares_key) append_flag(out, "shares_key", true);
  append_counts(out, file.all);
  append_number(out, "closes", file.all.closes);
  append_number(out, "other", file.all.other);
  append_number(out, "failures", file.all.failures);
  append_number(out, "size", file.size);
  append_number(out, "mapped_bytes", file.mapped_bytes);
  append_layers(out, file);
  append_times(out, file.all);
  append_patterns(out, file.all);
  append_number(out, "read_write_switches", file.all.read_write_switches);
  append_histogram(out, "read_sizes", file.all.read_sizes);
  append_histogram(out, "write_sizes", file.all.write_sizes);
  append_number(out, "first_ns", file.first_ns);
  append_number(out, "last_ns", file.last_ns);
  append_number(out, "processes", file.processes);
  append_number(out, "threads", file.threads);
  end_line(out);
}

void append_process_json(std::string& out, const ProcessSum& process) {
  const ProcessFile& first_file = process.process->first();
  const ProcessFile& last_file = process.process->last();
  out += R"({"kind": "process", )";
  append_number(out, "pid", first_file.header().pid);
  append_number(out, "parent_pid", first_file.header().parent_pid);
  append_text(out, "host", first_file.host());
  append_text(out, "executable", last_file.executable());
  append_list(out, "command", last_file.command(),
              [&](std::string_view word) { append_json_text(out, word); });
  append_text(out, "state", state_name(last_file));
  append_number(out, "images", process.process->process_files.size());
  append_number(out, "rank", last_file.header().rank);
  append_number(out, "ranks", last_file.header().ranks);
  append_number(out, "begin_ns", first_file.header().begin_realtime_ns);
  append_number(out, "end_ns", last_file.view().clock().realtime_ns(last_file.end_monotonic_ns()));
  append_number(out, "files", process.files);
  append_number(out, "threads", process.threads);
  append_counts(out, process.all);
  append_times(out, process.all);
  end_line(out);
}

void append_roll_up_json(std::string& out, std::string_view kind, const RollUp& row) {
  out += R"({"kind": ")";
  out += kind;
  out += "\", ";
  append_text(out, "path", row.name);
  append_number(out, "files", row.files);
  append_number(out, "bytes_read", row.all.bytes_read);
  append_number(out, "bytes_written", row.all.bytes_written);
  append_number(out, "reads", row.all.reads);
  append_number(out, "writes", row.all.writes);
  append_number(out, "metadata_ops", row.all.metadata());
  append_times(out, row.all);
  end_line(out);
}

// The files are divided into many parts. In each round, each thread makes the text of one part, and then the
// calling thread writes these texts in order. So only a few parts are in memory at a time, and the output has
// the order of FileSums.
Result<void> write_files_json(const FileSums& sums, const SessionFilter& filter, std::FILE* out) {
  const size_t part_count = std::max<size_t>(1, sums.entries() / kEntriesPerPart);
  std::vector<std::string> texts(std::min(part_count, summing_thread_count()));
  const auto make_text = [&](size_t part, std::string& text) {
    text.clear();
    sums.each_of_part(part, part_count, filter.wanted(), [&](const FileSum& file) {
      if (has_operations(file)) append_file_json(text, file);
    });
  };
  for (size_t from = 0; from < part_count; from += texts.size()) {
    const size_t batch_parts = std::min(texts.size(), part_count - from);
    on_threads_or_here(unsigned(batch_parts), [&](unsigned i) { make_text(from + i, texts[i]); });
    for (size_t i = 0; i < batch_parts; ++i)
      if (std::fwrite(texts[i].data(), 1, texts[i].size(), out) != texts[i].size())
        return errno_error(errno, "cannot write", "the report");
  }
  return success();
}

}  // namespace penstock
