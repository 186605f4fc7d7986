#include "profiling/exporters/darshan_records.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "profiling/session/layers.hpp"

namespace penstock::darshan {
namespace {

std::int64_t count(std::uint64_t value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(value, kMost));
}

struct Entry {
  penstock_counters counters;
  const SessionImage* image;
  std::string_view path;
  unsigned kind;
  std::uint32_t rank;
};

// From the begin of the first operation to the end of the last one.
struct Time {
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;

  void add(const SessionClock& clock, std::uint64_t first, std::uint64_t last) {
    const auto realtime = [&](std::uint64_t ticks) { return clock.realtime_ns(clock.monotonic_ns(ticks)); };
    if (first != PENSTOCK_NEVER) first_ns = std::min(first_ns, realtime(first));
    if (last != PENSTOCK_NEVER) last_ns = std::max(last_ns, realtime(last));
  }
};

// What a rank did to a file through the layers of one module.
struct Part {
  LayerSum sum;
  std::uint64_t duplicates = 0;
  std::uint64_t last_byte_read = 0;
  std::uint64_t last_byte_written = 0;
  Time all;
  Time reading;
  Time writing;

  void add(const Entry& entry) {
    const penstock_counters& counters = entry.counters;
    const SessionClock& clock = entry.image->view().clock();
    sum.add(counters, clock);
    duplicates += counters.descriptors;
    last_byte_read = std::max<std::uint64_t>(last_byte_read, counters.last_read);
    last_byte_written = std::max<std::uint64_t>(last_byte_written, counters.last_written);
    all.add(clock, counters.first_ticks, counters.last_ticks);
    reading.add(clock, counters.first_read_ticks, counters.last_read_ticks);
    writing.add(clock, counters.first_write_ticks, counters.last_write_ticks);
  }
};

// 0 is never in Darshan's times.
double seconds(std::int64_t ns, std::int64_t begin_ns) {
  if (ns == INT64_MAX || ns == INT64_MIN) return 0;
  return std::max(0.0, (static_cast<double>(ns) - static_cast<double>(begin_ns)) / 1e9);
}

PosixRecord posix_record(const Part& part, std::int64_t begin_ns) {
  const LayerSum& sum = part.sum;
  PosixRecord record;
  auto& c = record.counters;
  c[kOpens] = count(sum.opens + part.duplicates);
  c[kDups] = count(part.duplicates);
  c[kReads] = count(sum.reads);
  c[kWrites] = count(sum.writes);
  c[kSeeks] = count(sum.seeks);
  c[kStats] = count(sum.stats);
  c[kMmaps] = count(sum.maps);
  c[kFsyncs] = count(sum.syncs);
  for (std::size_t i = kFdsyncs; i <= kMode; ++i) c[i] = kNotMonitored;
  c[kBytesRead] = count(sum.bytes_read);
  c[kBytesWritten] = count(sum.bytes_written);
  c[kMaxByteRead] = count(part.last_byte_read);
  c[kMaxByteWritten] = count(part.last_byte_written);
  c[kConsecutiveReads] = count(sum.consecutive_reads);
  c[kConsecutiveWrites] = count(sum.consecutive_writes);
  c[kSequentialReads] = count(sum.sequential_reads);
  c[kSequentialWrites] = count(sum.sequential_writes);
  c[kReadWriteSwitches] = count(sum.read_write_switches);
  for (std::size_t i = kMemoryNotAligned; i <= kMaxWriteTimeSize; ++i) c[i] = kNotMonitored;
  for (std::size_t i = 0; i < PENSTOCK_SIZE_BUCKETS; ++i) {
    c[kReadSizes + i] = count(sum.read_sizes[i]);
    c[kWriteSizes + i] = count(sum.write_sizes[i]);
  }
  auto& t = record.times;
  if (c[kOpens] > 0) t[kOpenStart] = t[kOpenEnd] = seconds(part.all.first_ns, begin_ns);
  if (sum.closes > 0) t[kCloseStart] = t[kCloseEnd] = seconds(part.all.last_ns, begin_ns);
  t[kReadStart] = seconds(part.reading.first_ns, begin_ns);
  t[kReadEnd] = seconds(part.reading.last_ns, begin_ns);
  t[kWriteStart] = seconds(part.writing.first_ns, begin_ns);
  t[kWriteEnd] = seconds(part.writing.last_ns, begin_ns);
  t[kReadTime] = sum.read_ns / 1e9;
  t[kWriteTime] = sum.write_ns / 1e9;
  t[kMetaTime] = sum.meta_ns / 1e9;
  t[kMaxReadTime] = t[kMaxWriteTime] = kNotMonitored;
  return record;
}

StdioRecord stdio_record(const Part& part, std::int64_t begin_ns) {
  const LayerSum& sum = part.sum;
  StdioRecord record;
  auto& c = record.counters;
  c[kStreamOpens] = count(sum.opens);
  c[kStreamFdopens] = kNotMonitored;
  c[kStreamReads] = count(sum.reads);
  c[kStreamWrites] = count(sum.writes);
  c[kStreamSeeks] = count(sum.seeks);
  c[kStreamFlushes] = count(sum.other);
  c[kStreamBytesWritten] = count(sum.bytes_written);
  c[kStreamBytesRead] = count(sum.bytes_read);
  c[kStreamMaxByteRead] = count(part.last_byte_read);
  c[kStreamMaxByteWritten] = count(part.last_byte_written);
  auto& t = record.times;
  t[kStreamMetaTime] = sum.meta_ns / 1e9;
  t[kStreamWriteTime] = sum.write_ns / 1e9;
  t[kStreamReadTime] = sum.read_ns / 1e9;
  if (sum.opens > 0) t[kStreamOpenStart] = t[kStreamOpenEnd] = seconds(part.all.first_ns, begin_ns);
  if (sum.closes > 0) t[kStreamCloseStart] = t[kStreamCloseEnd] = seconds(part.all.last_ns, begin_ns);
  t[kStreamWriteStart] = seconds(part.writing.first_ns, begin_ns);
  t[kStreamWriteEnd] = seconds(part.writing.last_ns, begin_ns);
  t[kStreamReadStart] = seconds(part.reading.first_ns, begin_ns);
  t[kStreamReadEnd] = seconds(part.reading.last_ns, begin_ns);
  return record;
}

// Entries of one key come together; these are told apart by name, and those of a name by rank.
class Gather {
 public:
  Gather(const SessionFilter& filter, std::int64_t begin_ns, const EachFileOfRank& each)
      : filter_(filter), begin_ns_(begin_ns), each_(each) {}

  void add(const Entry& entry) {
    if (!entries_.empty() && entries_.front().counters.file != entry.counters.file) flush();
    entries_.push_back(entry);
  }

  void flush() {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.path != b.path ? a.path < b.path : a.rank < b.rank;
    });
    std::uint64_t name = 0;
    for (std::span<const Entry> rest = entries_; !rest.empty();) {
      const auto same = static_cast<std::size_t>(
          std::find_if(rest.begin(), rest.end(), [&](const Entry& e) { return e.path != rest[0].path; }) -
          rest.begin());
      if (give_name(rest.first(same), record_id(rest[0].counters.file, name))) ++name;
      rest = rest.subspan(same);
    }
    entries_.clear();
  }

 private:
  bool give_name(std::span<const Entry> entries, std::uint64_t id) {
    const bool moved = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
      return (entry.counters.bytes_read | entry.counters.bytes_written | entry.counters.mapped_bytes) != 0;
    });
    bool any = false;
    while (!entries.empty()) {
      const auto same = static_cast<std::size_t>(
          std::find_if(entries.begin(), entries.end(),
                       [&](const Entry& entry) { return entry.rank != entries[0].rank; }) -
          entries.begin());
      any = give_rank(entries.first(same), id, moved) || any;
      entries = entries.subspan(same);
    }
    return any;
  }

  bool give_rank(std::span<const Entry> entries, std::uint64_t id, bool moved) {
    Part posix;
    Part stdio;
    for (const Entry& entry : entries) {
      if (!filter_.wants(entry.path, entry.kind, moved, *entry.image)) continue;
      if (entry.counters.layer == PENSTOCK_STDIO) stdio.add(entry);
      if (is_of_descriptors(entry.counters.layer)) posix.add(entry);
    }
    FileOfRank file{id, entries[0].path, entries[0].rank, std::nullopt, std::nullopt};
    if (posix.sum.operations() != 0) file.posix = posix_record(posix, begin_ns_);
    if (stdio.sum.operations() != 0) file.stdio = stdio_record(stdio, begin_ns_);
    if (file.posix) {
      file.posix->id = id;
      file.posix->rank = file.rank;
    }
    if (file.stdio) {
      file.stdio->id = id;
      file.stdio->rank = file.rank;
    }
    if (!file.posix && !file.stdio) return false;
    each_(file);
    return true;
  }

  const SessionFilter& filter_;
  std::int64_t begin_ns_;
  const EachFileOfRank& each_;
  std::vector<Entry> entries_;
};

}  // namespace

std::uint64_t record_id(std::uint64_t key, std::uint64_t name) {
  constexpr std::uint64_t kApart = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t id = key + name * kApart;
  return id == 0 || id == kPosixHeatmapId || id == kStdioHeatmapId ? id ^ kApart : id;
}

void each_file_of_rank(const FileSums& sums, const SessionFilter& filter, const SessionRanks& ranks,
                       std::int64_t begin_ns, const EachFileOfRank& each) {
  Gather gather(filter, begin_ns, each);
  sums.each_entry([&](const penstock_counters& counters, const SessionImage& image, std::string_view path,
                      unsigned kind) {
    gather.add({counters, &image, path, kind, ranks.of(image)});
  });
  gather.flush();
}

}  // namespace penstock::darshan
