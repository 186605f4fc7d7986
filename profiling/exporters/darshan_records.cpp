#include "profiling/exporters/darshan_records.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "profiling/session/intervals.hpp"
#include "profiling/session/layers.hpp"

namespace penstock::darshan {
namespace {

int64_t as_signed(uint64_t value) {
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  return int64_t(std::min(value, kLargest));
}

struct Entry {
  penstock_counters counters;
  const ProcessFile* process_file;
  std::string_view path;
  unsigned file_kind;
  uint32_t rank;
};

// What one rank did to one file through the layers of one Darshan module (POSIX or STDIO).
struct FileActivity {
  LayerSum sum;
  uint64_t duplicates = 0;
  uint64_t highest_byte_read = 0;
  uint64_t highest_byte_written = 0;
  TimeInterval all_span{INT64_MAX, INT64_MIN};  // from the first operation's begin to the last one's end
  TimeInterval read_span{INT64_MAX, INT64_MIN};
  TimeInterval write_span{INT64_MAX, INT64_MIN};

  void add(const Entry& entry) {
    const penstock_counters& counters = entry.counters;
    const SessionClock& clock = entry.process_file->view().clock();
    sum.add(counters, clock);
    duplicates += counters.descriptors;
    highest_byte_read =
        std::max({highest_byte_read, uint64_t{counters.last_read}, uint64_t{counters.highest_read}});
    highest_byte_written =
        std::max({highest_byte_written, uint64_t{counters.last_written}, uint64_t{counters.highest_written}});
    clock.extend(all_span.begin, all_span.end, counters.first_ticks, counters.last_ticks);
    clock.extend(read_span.begin, read_span.end, counters.first_read_ticks, counters.last_read_ticks);
    clock.extend(write_span.begin, write_span.end, counters.first_write_ticks, counters.last_write_ticks);
  }
};

// Converts a time to seconds since begin_ns. If the time is not set (INT64_MAX or INT64_MIN), returns 0,
// which means "never" in Darshan.
double seconds(int64_t ns, int64_t begin_ns) {
  if (ns == INT64_MAX || ns == INT64_MIN) return 0;
  return std::max(0.0, (double(ns) - double(begin_ns)) / 1e9);
}

// Makes a record with the fields that PosixRecord and StdioRecord have in common.
template <class Record>
Record common_record(const FileActivity& part, uint64_t opens, int64_t begin_ns) {
  const LayerSum& sum = part.sum;
  Record record;
  record.opens = as_signed(opens);
  record.reads = as_signed(sum.reads);
  record.writes = as_signed(sum.writes);
  record.seeks = as_signed(sum.seeks);
  record.bytes_read = as_signed(sum.bytes_read);
  record.bytes_written = as_signed(sum.bytes_written);
  record.max_byte_read = as_signed(part.highest_byte_read);
  record.max_byte_written = as_signed(part.highest_byte_written);
  if (record.opens > 0) record.open_start = record.open_end = seconds(part.all_span.begin, begin_ns);
  if (sum.closes > 0) record.close_start = record.close_end = seconds(part.all_span.end, begin_ns);
  record.read_start = seconds(part.read_span.begin, begin_ns);
  record.read_end = seconds(part.read_span.end, begin_ns);
  record.write_start = seconds(part.write_span.begin, begin_ns);
  record.write_end = seconds(part.write_span.end, begin_ns);
  record.read_time = sum.read_ns / 1e9;
  record.write_time = sum.write_ns / 1e9;
  record.meta_time = sum.meta_ns / 1e9;
  return record;
}

PosixRecord posix_record(const FileActivity& part, int64_t begin_ns) {
  const LayerSum& sum = part.sum;
  auto record = common_record<PosixRecord>(part, sum.opens + part.duplicates, begin_ns);
  record.dups = as_signed(part.duplicates);
  record.stats = as_signed(sum.stats);
  record.mmaps = as_signed(sum.maps);
  record.fsyncs = as_signed(sum.syncs);
  record.fdsyncs_renames_and_mode.fill(kNotMonitored);
  record.consecutive_reads = as_signed(sum.consecutive_reads);
  record.consecutive_writes = as_signed(sum.consecutive_writes);
  record.sequential_reads = as_signed(sum.sequential_reads);
  record.sequential_writes = as_signed(sum.sequential_writes);
  record.read_write_switches = as_signed(sum.read_write_switches);
  record.alignments_and_sizes_of_longest.fill(kNotMonitored);
  std::ranges::transform(sum.read_sizes, record.read_sizes.begin(), as_signed);
  std::ranges::transform(sum.write_sizes, record.write_sizes.begin(), as_signed);
  record.longest_read_and_write.fill(kNotMonitored);
  return record;
}

StdioRecord stdio_record(const FileActivity& part, int64_t begin_ns) {
  auto record = common_record<StdioRecord>(part, part.sum.opens, begin_ns);
  record.fdopens = kNotMonitored;
  record.flushes = as_signed(part.sum.other);
  return record;
}

// Makes a FileOfRank for each name and rank. The key of an entry is counters.file, the hash of the name,
// which several names may share. The caller passes all entries to add(), those of one key directly after one
// another. add() collects the entries of a key. When the next key begins, flush() divides the collected
// entries by name and then by rank.
class RecordGrouper {
 public:
  RecordGrouper(const SessionFilter& filter, int64_t begin_ns, const EachFileOfRank& each)
      : filter_(filter), begin_ns_(begin_ns), each_(each) {}

  void add(const Entry& entry) {
    if (!entries_.empty() && entries_.front().counters.file != entry.counters.file) flush();
    entries_.push_back(entry);
  }

  void flush() {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.path != b.path ? a.path < b.path : a.rank < b.rank;
    });
    uint64_t name = 0;
    for (std::span<const Entry> rest = entries_; !rest.empty();) {
      const auto group = equal_head(rest, [](const Entry& a, const Entry& b) { return a.path == b.path; });
      if (report_entries_of_name(group, record_id(group[0].counters.file, name))) ++name;
      rest = rest.subspan(group.size());
    }
    entries_.clear();
  }

 private:
  bool report_entries_of_name(std::span<const Entry> entries, uint64_t id) {
    const bool moved = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
      return (entry.counters.bytes_read | entry.counters.bytes_written | entry.counters.mapped_bytes) != 0;
    });
    bool reported_any = false;
    while (!entries.empty()) {
      const auto group = equal_head(entries, [](const Entry& a, const Entry& b) { return a.rank == b.rank; });
      reported_any = report_entries_of_rank(group, id, moved) || reported_any;
      entries = entries.subspan(group.size());
    }
    return reported_any;
  }

  bool report_entries_of_rank(std::span<const Entry> entries, uint64_t id, bool moved) {
    FileActivity posix;
    FileActivity stdio;
    for (const Entry& entry : entries) {
      if (!filter_.wants(entry.path, entry.file_kind, moved, *entry.process_file)) continue;
      if (entry.counters.layer == PENSTOCK_STDIO) stdio.add(entry);
      if (is_of_descriptors(entry.counters.layer)) posix.add(entry);
    }
    FileOfRank file{id, entries[0].path, entries[0].rank, std::nullopt, std::nullopt};
    const auto set = [&](auto& target, auto record) {
      record.id = id;
      record.rank = file.rank;
      target = record;
    };
    if (posix.sum.operations() != 0) set(file.posix, posix_record(posix, begin_ns_));
    if (stdio.sum.operations() != 0) set(file.stdio, stdio_record(stdio, begin_ns_));
    if (!file.posix && !file.stdio) return false;
    each_(file);
    return true;
  }

  const SessionFilter& filter_;
  int64_t begin_ns_;
  const EachFileOfRank& each_;
  std::vector<Entry> entries_;
};

}  // namespace

uint64_t record_id(uint64_t key, uint64_t name) {
  constexpr uint64_t kIdStep = 0x9e3779b97f4a7c15ULL;
  const uint64_t id = key + name * kIdStep;
  return id == 0 || id == kPosixHeatmapId || id == kStdioHeatmapId ? id ^ kIdStep : id;
}

void each_file_of_rank(const FileSums& sums, const SessionFilter& filter, const SessionRanks& ranks,
                       int64_t begin_ns, const EachFileOfRank& each) {
  RecordGrouper grouper(filter, begin_ns, each);
  sums.each_entry([&](const penstock_counters& counters, const ProcessFile& process_file,
                      std::string_view path, unsigned kind) {
    grouper.add({counters, &process_file, path, kind, ranks.rank_of(process_file)});
  });
  grouper.flush();
}

}  // namespace penstock::darshan
