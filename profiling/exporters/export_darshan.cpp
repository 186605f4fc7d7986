#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "io_backends/core/build_info.hpp"
#include "io_backends/tiers/tier.hpp"
#include "profiling/exporters/darshan_log.hpp"
#include "profiling/exporters/darshan_records.hpp"
#include "profiling/exporters/exporter.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/layers.hpp"
#include "profiling/session/named_files.hpp"
#include "profiling/session/session_segments.hpp"
#include "profiling/session/session_summary.hpp"
#include "profiling/session/transfers.hpp"

namespace penstock {
namespace {

using darshan::LogWriter;

constexpr std::string_view kNoName = "<no name>";
constexpr double kMostHeatmapBins = darshan::kMostBins;

constexpr unsigned kOffsetBits = 44;

// Where one recorded read or write is in the session.
struct SegmentPosition {
  uint64_t file = 0;
  uint32_t rank = 0;
  bool is_read = false;
  uint64_t packed_position = 0;  // upper bits: index of the process file; lower bits: offset in that file
};

class DarshanExporter {
 public:
  DarshanExporter(const Session& session, const FileSums& sums, const SessionFilter& filter, WholeFile& to)
      : session_(session),
        sums_(sums),
        filter_(filter),
        summary_(summarise(session, sums, filter)),
        ranks_(session),
        begin_ns_(std::max<int64_t>(0, summary_.begin_ns)),
        log_(to) {}

  Result<ExportCounts> write() {
    PENSTOCK_TRY(log_.begin());
    PENSTOCK_TRY(log_.write_job(make_job()));
    PENSTOCK_TRY(write_names());
    PENSTOCK_TRY(write_records());
    PENSTOCK_TRY(write_segments());
    PENSTOCK_TRY(write_heatmaps());
    PENSTOCK_TRY(log_.finish());
    return counts_;
  }

 private:
  darshan::Job make_job() const {
    const ProcessFile& process_file = session_.processes.front().last();
    struct stat status {};
    const bool has_status = ::stat(process_file.path().c_str(), &status) == 0;
    darshan::Job job;
    job.uid = has_status ? status.st_uid : ::getuid();
    job.begin_ns = begin_ns_;
    // Limits the length of the job: the times in a damaged or forged file may have any value.
    constexpr double kMostSeconds = 4e9;
    const auto span_ns = int64_t(std::min(summary_.span_s, kMostSeconds) * 1e9);
    if (__builtin_add_overflow(begin_ns_, span_ns, &job.end_ns)) job.end_ns = begin_ns_;
    job.rank_count = std::max<int64_t>(1, ranks_.count());
    job.id = process_file.header().pid;
    job.notes = {
        {"lib_ver", fmt::format("penstock-{}", build_info().version)},
        {"moments", summary_.io_is_union ? "of every call" : "first and last call of each thread and file"}};
    for (const std::string_view word : process_file.command())
      job.command += (job.command.empty() ? "" : " ") + printable_path(word);
    if (job.command.empty()) job.command = printable_path(process_file.executable());
    const MountTable mounts = MountTable::of_this_machine();
    // "/" is always listed, because readers expect at least one mount
    std::map<std::string_view, uint64_t> used_mounts{{"/", 0}};
    darshan::each_file_of_rank(sums_, filter_, ranks_, begin_ns_, [&](const darshan::FileOfRank& file) {
      if (const std::string_view mount = mounts.mount_of(file.path); !mount.empty()) ++used_mounts[mount];
    });
    for (const auto& [mount, files] : used_mounts) {
      const std::string fs_type = inspect_path(mount).fs_type;
      job.mounts.emplace_back(fs_type.empty() ? "unknown" : fs_type, mount);
    }
    return job;
  }

  Result<void> write_names() {
    log_.begin_names();
    Result<void> outcome = success();
    const auto add = [&](uint64_t id, std::string_view name) {
      if (outcome.ok()) outcome = log_.add_name(id, name);
    };
    uint64_t last_id = 0;
    each_record([&](const darshan::FileOfRank& file) {
      if (file.id == last_id) return;
      last_id = file.id;
      name_ids_.push_back(file.id);
      add(file.id, file.path.empty() ? std::string(kNoName) : printable_path(file.path));
    });
    std::sort(name_ids_.begin(), name_ids_.end());
    add(darshan::kPosixHeatmapId, "heatmap:POSIX");
    add(darshan::kStdioHeatmapId, "heatmap:STDIO");
    PENSTOCK_TRY(std::move(outcome));
    return log_.end_region();
  }

  Result<void> write_records() {
    const bool incomplete = summary_.drops.records + summary_.drops.operations > 0;
    PENSTOCK_TRY(write_module(darshan::kPosix, 4, incomplete, &darshan::FileOfRank::posix));
    return write_module(darshan::kStdio, 2, incomplete, &darshan::FileOfRank::stdio);
  }

  // True if the log has a name for this id. Records without a name are left out. Such records exist if the
  // session is still being recorded and a new file appears after the names were written to the log.
  bool is_named(uint64_t id) const { return std::binary_search(name_ids_.begin(), name_ids_.end(), id); }

  template <class Record>
  Result<void> write_module(darshan::Module module, uint32_t version, bool incomplete,
                            std::optional<Record> darshan::FileOfRank::*record) {
    log_.begin_module(module, version, incomplete);
    Result<void> outcome = success();
    each_record([&](const darshan::FileOfRank& file) {
      if (!(file.*record) || !outcome.ok() || !is_named(file.id)) return;
      ++counts_.records;
      outcome = log_.add(*(file.*record));
    });
    PENSTOCK_TRY(std::move(outcome));
    return log_.end_region();
  }

  void each_record(const darshan::EachFileOfRank& each) const {
    darshan::each_file_of_rank(sums_, filter_, ranks_, begin_ns_, each);
  }

  // Returns the positions of the recorded reads and writes on descriptors, sorted by file and rank. Calls on
  // streams (stdio) are left out: Darshan's format has no record for them.
  std::vector<SegmentPosition> segment_positions() const {
    std::vector<SegmentPosition> positions;
    const NamedFiles wanted(session_, sums_, filter_);
    for (size_t i = 0; i < session_.process_files.size(); ++i) {
      const ProcessFile& process_file = *session_.process_files[i];
      process_file.view().each<penstock_segment>(PENSTOCK_BLOCK_SEGMENTS, [&](const penstock_segment& segment,
                                                                              uint64_t offset) {
        const bool is_read = segment.call == PENSTOCK_CALL_READ;
        const bool moves = is_read || segment.call == PENSTOCK_CALL_WRITE;
        if (moves && is_of_descriptors(segment.layer) && segment.failed == 0 &&
            wanted.find(segment.file, process_file) != nullptr && is_named(darshan::record_id(segment.file)))
          positions.push_back(
              {segment.file, ranks_.rank_of(process_file), is_read, uint64_t{i} << kOffsetBits | offset});
      });
    }
    std::sort(positions.begin(), positions.end(), [](const SegmentPosition& a, const SegmentPosition& b) {
      return std::tie(a.file, a.rank, a.is_read, a.packed_position) <
             std::tie(b.file, b.rank, b.is_read, b.packed_position);
    });
    return positions;
  }

  Result<void> write_segments() {
    const std::vector<SegmentPosition> positions = segment_positions();
    log_.begin_module(darshan::kDxtPosix, 1, summary_.drops.segments > 0);
    for (std::span<const SegmentPosition> rest = positions; !rest.empty();) {
      const auto group = darshan::equal_head(rest, [](const SegmentPosition& a, const SegmentPosition& b) {
        return a.file == b.file && a.rank == b.rank;
      });
      PENSTOCK_TRY(write_segments_of(group));
      rest = rest.subspan(group.size());
    }
    return log_.end_region();
  }

  // Writes the recorded calls of one rank on one file: first the writes, then the reads, each sorted by start
  // time.
  Result<void> write_segments_of(std::span<const SegmentPosition> positions) {
    std::vector<darshan::DxtSegment> segments;
    segments.reserve(positions.size());
    size_t write_count = 0;
    for (const SegmentPosition& position : positions) {
      const std::optional<darshan::DxtSegment> segment = segment_at(position);
      if (!segment) continue;  // the process has replaced the call by a newer one since segment_positions()
      segments.push_back(*segment);
      if (!position.is_read) ++write_count;
    }
    if (segments.empty()) return success();
    counts_.calls += segments.size();
    darshan::DxtRecord record;
    record.id = darshan::record_id(positions[0].file);
    record.rank = positions[0].rank;
    const std::string_view host = ranks_.host(positions[0].rank);
    host.copy(record.host.data(), record.host.size() - 1);
    record.writes = int64_t(write_count);
    record.reads = int64_t(segments.size() - write_count);
    const auto first_read = segments.begin() + ptrdiff_t(write_count);
    const auto begins_earlier = [](const auto& a, const auto& b) { return a.begin_s < b.begin_s; };
    std::stable_sort(segments.begin(), first_read, begins_earlier);
    std::stable_sort(first_read, segments.end(), begins_earlier);
    PENSTOCK_TRY(log_.add(record));
    return log_.add(std::as_bytes(std::span(segments)));
  }

  std::optional<darshan::DxtSegment> segment_at(const SegmentPosition& position) const {
    constexpr uint64_t kOffsetMask = (uint64_t{1} << kOffsetBits) - 1;
    const ProcessFile& process_file = *session_.process_files[position.packed_position >> kOffsetBits];
    const std::optional<penstock_segment> found =
        process_file.view().segment_at(position.packed_position & kOffsetMask);
    if (!found) return std::nullopt;
    const penstock_segment& segment = *found;
    const SessionClock& clock = process_file.view().clock();
    const auto seconds = [&](uint64_t ticks) {
      const auto ns = double(clock.realtime_at(ticks));
      return std::max(0.0, (ns - double(begin_ns_)) / 1e9);
    };
    const auto signed_of = [](uint64_t value) { return int64_t(std::min<uint64_t>(value, INT64_MAX)); };
    const double begin_s = seconds(segment.begin_ticks);
    return darshan::DxtSegment{segment.offset == UINT64_MAX ? -1 : signed_of(segment.offset),
                               signed_of(segment.length), begin_s,
                               std::max(begin_s, seconds(segment.end_ticks))};
  }

  Result<void> write_heatmaps() {
    const TransferSeries series(begin_ns_, summary_.span_s, kMostHeatmapBins);
    // The bins of each heatmap. Key: (true for STDIO, false for POSIX; rank). Value: [0] the bytes read in
    // each bin, [1] the bytes written.
    std::map<std::pair<bool, uint32_t>, std::array<std::vector<double>, 2>> bins;
    each_transfer(session_, sums_, filter_, summary_.io_is_union, [&](const Transfer& transfer) {
      if (transfer.kind == TransferKind::metadata || transfer.bytes == 0) return;
      auto& rank_bins = bins[{transfer.layer == PENSTOCK_STDIO, ranks_.rank_of(*transfer.process_file)}];
      series.add(rank_bins[size_t(transfer.kind)], transfer, transfer.bytes);
    });
    log_.begin_module(darshan::kHeatmap, 1, false);
    for (auto& [key, rank_bins] : bins) {
      darshan::HeatmapRecord record;
      record.id = key.first ? darshan::kStdioHeatmapId : darshan::kPosixHeatmapId;
      record.rank = key.second;
      record.bin_s = series.interval_s();
      record.bin_count = int64_t(series.points());
      PENSTOCK_TRY(log_.add(record));
      PENSTOCK_TRY(write_rounded(rank_bins[1], series.points()));
      PENSTOCK_TRY(write_rounded(rank_bins[0], series.points()));
    }
    return log_.end_region();
  }

  // Writes the bins as whole numbers. What rounding takes from one bin is added to a later one, so that the
  // sum of all bins remains right.
  Result<void> write_rounded(std::vector<double>& bins, size_t points) {
    bins.resize(points);
    std::vector<int64_t> rounded;
    double sum = 0;
    double previous_sum = 0;
    for (const double bytes : bins) {
      sum += bytes;
      const double rounded_sum = std::min(std::round(sum), 9e18);
      rounded.push_back(int64_t(rounded_sum - previous_sum));
      previous_sum = rounded_sum;
    }
    return log_.add(std::as_bytes(std::span(rounded)));
  }

  const Session& session_;
  const FileSums& sums_;
  const SessionFilter& filter_;
  const SessionSummary summary_;
  const SessionRanks ranks_;
  const int64_t begin_ns_;
  LogWriter log_;
  std::vector<uint64_t> name_ids_;  // ids in increasing order
  ExportCounts counts_;
};

}  // namespace

Result<ExportCounts> export_darshan(const Session& session, const FileSums& sums, const SessionFilter& filter,
                                    WholeFile& to) {
  return DarshanExporter(session, sums, filter, to).write();
}

namespace {

Result<ExportOutcome> write_darshan(const ExportRequest& request) {
  return export_to_file(request, "the Darshan log", "records",
                        [&](const Session& session, const FileSums& sums, WholeFile& file,
                            ExportOutcome& outcome) -> Result<uint64_t> {
                          PENSTOCK_ASSIGN(const ExportCounts counts,
                                          export_darshan(session, sums, request.filter, file));
                          if (counts.calls == 0)
                            outcome.notes.emplace_back(
                                "individual calls were not recorded: the log has no DXT_POSIX module, and "
                                "its heatmap uses only the first and last call of each thread and file. To "
                                "record them: penstock profile run --trace");
                          warn_of_dropped(session, outcome);
                          return counts.records;
                        });
}

}  // namespace

extern const ExporterInfo exporter_darshan;
const ExporterInfo exporter_darshan{
    .name = "darshan", .summary = "a Darshan log (darshan-parser, PyDarshan)", .write = &write_darshan};

}  // namespace penstock
