#include "profiling/session/session_summary.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include "io_backends/core/system/threads.hpp"
#include "profiling/session/intervals.hpp"

namespace penstock {
namespace {

constexpr size_t kMostThreads = 4;
constexpr size_t kLeastEntriesForThreads = 20'000;

struct PartOfSummary {
  FilesSum included;
  FilesSum left_out;
  uint64_t failed_names = 0;
  std::array<uint64_t, PENSTOCK_SIZE_BUCKETS> files_by_size{};
  std::vector<uint64_t> keys_left_out;
};

void inspect_process_files(const Session& session, SessionSummary& summary) {
  int64_t end_ns = INT64_MIN;
  std::map<std::filesystem::path, TimeInterval> sessions;
  summary.begin_ns = INT64_MAX;
  for (const auto& process_file : session.process_files) {
    const penstock_session_header& header = process_file->header();
    summary.begin_ns = std::min(summary.begin_ns, header.begin_realtime_ns);
    const int64_t file_end_ns = process_file->view().clock().realtime_ns(process_file->end_monotonic_ns());
    end_ns = std::max(end_ns, file_end_ns);
    TimeInterval& time =
        sessions.try_emplace(process_file->path().parent_path(), TimeInterval{INT64_MAX, INT64_MIN})
            .first->second;
    time = {std::min(time.begin, header.begin_realtime_ns), std::max(time.end, file_end_ns)};
    summary.has_python = summary.has_python || process_file->is_python();
  }
  summary.span_s = std::max(0.0, (double(end_ns) - double(summary.begin_ns)) / 1e9);
  summary.wall_s = summary.span_s;
  if (sessions.size() < 2) return;
  std::vector<TimeInterval> times;
  for (const auto& [folder, time] : sessions) times.push_back(time);
  summary.wall_s = std::min(summary.span_s, double(length(merged(std::move(times)))) / 1e9);
}

}  // namespace

Drops drops_of(const Session& session) {
  Drops drops;
  for (const auto& process_file : session.process_files) {
    const penstock_session_header& header = process_file->header();
    drops.records += header.dropped_records;
    drops.operations += header.dropped_operations;
    drops.segments += header.dropped_segments;
    drops.spans += header.dropped_spans;
    drops.unnamed_operations += header.unnamed;
    drops.grow_errno = header.no_room != 0 ? header.no_room : drops.grow_errno;
    const auto& blocks = process_file->view().blocks();
    drops.oldest_segments =
        drops.oldest_segments || std::any_of(blocks.begin(), blocks.end(), [](const SessionBlock& block) {
          return block.kind == PENSTOCK_BLOCK_SEGMENTS && block.times_emptied != 0;
        });
  }
  return drops;
}

void FilesSum::add(const FileSum& file) {
  (file.kind == PENSTOCK_DIRECTORY ? directories : files) += 1;
  all.add(file.all);
}

void FilesSum::add(const FilesSum& more) {
  files += more.files;
  directories += more.directories;
  all.add(more.all);
}

bool has_operations(const FileSum& file) {
  return file.layers_used != 0 &&
         std::any_of(file.layers.begin(), file.layers.end(), [&](const LayerSum& layer) {
           const auto layer_index = unsigned(&layer - file.layers.data());
           return (file.layers_used & (1U << layer_index)) != 0 && layer.operations() != 0;
         });
}

size_t summing_thread_count() {
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
}

void each_in_threads(const FileSums& sums, const SessionFilter& filter, const EachInThread& each,
                     const EachInThread& left_out) {
  // Each thread adds up its own part of the files.
  const size_t threads = sums.entries() < kLeastEntriesForThreads ? 1 : summing_thread_count();
  const auto sum_part = [&](size_t thread_index) {
    sums.each_of_part(
        thread_index, threads, filter.wanted(), [&](const FileSum& file) { each(thread_index, file); },
        [&](const FileSum& file) { left_out(thread_index, file); });
  };
  on_threads_or_here(unsigned(threads), sum_part);
}

SessionSummary summarise(const Session& session, const FileSums& sums, const SessionFilter& filter,
                         const EachInThread& each_included) {
  SessionSummary summary;
  inspect_process_files(session, summary);
  summary.drops = drops_of(session);
  std::vector<PartOfSummary> parts(summing_thread_count());
  each_in_threads(
      sums, filter,
      [&](size_t thread_index, const FileSum& file) {
        if (!has_operations(file)) {
          ++parts[thread_index].failed_names;
          return;
        }
        parts[thread_index].included.add(file);
        if (file.kind != PENSTOCK_DIRECTORY && file.all.reads + file.all.writes + file.mapped_bytes > 0)
          ++parts[thread_index].files_by_size[size_bucket(file.size)];
        if (each_included) each_included(thread_index, file);
      },
      [&](size_t thread_index, const FileSum& file) {
        parts[thread_index].keys_left_out.push_back(file.file);
        if (has_operations(file)) parts[thread_index].left_out.add(file);
      });
  std::vector<uint64_t> keys_left_out;
  for (const PartOfSummary& part : parts) {
    summary.included.add(part.included);
    summary.left_out.add(part.left_out);
    summary.failed_names += part.failed_names;
    for (size_t i = 0; i < part.files_by_size.size(); ++i) summary.files_by_size[i] += part.files_by_size[i];
    keys_left_out.insert(keys_left_out.end(), part.keys_left_out.begin(), part.keys_left_out.end());
  }
  summary.coverage = coverage_of(session);
  summary.io_s = summary.included.all.io_ns() / 1e9;
  if (!has_entries(session, PENSTOCK_BLOCK_SEGMENTS)) return summary;
  std::sort(keys_left_out.begin(), keys_left_out.end());
  const auto wanted = [&](uint64_t file) {
    return !std::binary_search(keys_left_out.begin(), keys_left_out.end(), file);
  };
  summary.segments = inspect_segments(session, wanted, summary.begin_ns, summary.span_s);
  // io_s becomes the union of the segments' times, but only if every call has a segment. If segments are
  // missing (dropped, or the trace was switched on later), the union is too short, and io_s remains the sum
  // over threads.
  const uint64_t calls = summary.included.all.reads + summary.included.all.writes;
  if (summary.drops.segments == 0 && summary.segments->reads_and_writes >= calls) {
    summary.io_s = summary.segments->io_s;
    summary.io_is_union = true;
  }
  return summary;
}

}  // namespace penstock
