#include "profiling/session/file_sums.hpp"

#include <algorithm>
#include <cstring>

#include "profiling/session/layers.hpp"

namespace penstock {
namespace {

constexpr unsigned kOffsetBits = 44;
constexpr uint64_t kOffsetMask = (uint64_t{1} << kOffsetBits) - 1;

constexpr std::array<uint64_t, PENSTOCK_SIZE_BUCKETS - 1> kBucketEnds{
    100,         1ULL << 10U,  10ULL << 10U,  100ULL << 10U, 1ULL << 20U,
    4ULL << 20U, 10ULL << 20U, 100ULL << 20U, 1ULL << 30U};

// One entry of counters, with its process file and the name of its file.
struct EntryOfFile {
  penstock_counters counters;
  const ProcessFile* process_file;
  SessionView::Name name;
};

EntryOfFile entry_at(const Session& session, const CountersPosition& at) {
  const ProcessFile& process_file = *session.process_files[at.packed_position >> kOffsetBits];
  EntryOfFile entry{process_file.view().counters_at(at.packed_position & kOffsetMask), &process_file, {}};
  if (entry.counters.name != 0) entry.name = process_file.view().name_at(entry.counters.name);
  // If the name's key differs from the entry's key, the file is damaged or forged, so the name is ignored.
  if (entry.name.file != at.file) entry.name = {};
  return entry;
}

// Returns the kind of a file (regular, directory or other), found from all entries with this name. Entries of
// open() always say "regular", because open() does not know the kind. Any other kind comes from stat() and is
// trusted, with one exception: if some entries say "directory" and others "regular", and bytes were read or
// written, the file is regular. The name then was a directory only at another time.
unsigned kind_of(std::string_view name, std::span<const EntryOfFile> entries) {
  bool is_directory = false;
  bool is_regular = false;
  bool moved_bytes = false;
  for (const EntryOfFile& entry : entries) {
    if (entry.name.text.empty() || entry.name.text != name) continue;
    if (entry.name.kind == PENSTOCK_OTHER_FILE) return PENSTOCK_OTHER_FILE;
    (entry.name.kind == PENSTOCK_DIRECTORY ? is_directory : is_regular) = true;
    moved_bytes = moved_bytes || (entry.counters.bytes_read | entry.counters.bytes_written) != 0;
  }
  return is_directory && !(is_regular && moved_bytes) ? PENSTOCK_DIRECTORY : PENSTOCK_REGULAR;
}

// Makes the FileSum of one file from its entries.
class FileSumBuilder {
 public:
  void add(const EntryOfFile& entry) {
    const penstock_counters& counters = entry.counters;
    const SessionClock& clock = entry.process_file->view().clock();
    const unsigned layer = counters.layer;
    if (layer >= PENSTOCK_LAYERS) return;
    LayerSum& sum = sum_.layers[layer];
    if ((sum_.layers_used & (1U << layer)) == 0) sum = {};
    sum_.layers_used |= 1U << layer;
    sum.add(counters, clock);
    clock.extend(sum_.first_ns, sum_.last_ns, first_ticks_of(counters), last_ticks_of(counters));
    if (counters.first_read_ticks != PENSTOCK_NEVER)
      sum_.first_read_ns = std::min(sum_.first_read_ns, clock.realtime_at(counters.first_read_ticks));
    // What HDF5 moves may be longer than what it stores, and offsets of MPI-IO may be those of a view.
    if (moves_bytes_of_its_own(layer)) sum_.size = std::max(sum_.size, counters.size);
    sum_.mapped_bytes += counters.mapped_bytes;
    // The same process or thread may be added several times; count_distinct() counts it once.
    processes_.push_back(entry.process_file->header().pid);
    threads_.push_back(uint64_t{entry.process_file->header().pid} << 32U | counters.thread);
  }

  bool empty() const { return sum_.layers_used == 0; }

  const FileSum& finish(uint64_t file, std::string_view path, unsigned kind, bool shares_key) {
    sum_.file = file;
    sum_.path = path;
    sum_.kind = kind;
    sum_.shares_key = shares_key;
    sum_.processes = count_distinct(processes_);
    sum_.threads = count_distinct(threads_);
    sum_.all = {};
    for (unsigned layer = 0; layer < PENSTOCK_LAYERS; ++layer)
      if (moves_bytes_of_its_own(layer) && (sum_.layers_used & (1U << layer)) != 0)
        sum_.all.add(sum_.layers[layer]);
    if (sum_.first_ns > sum_.last_ns) sum_.first_ns = sum_.last_ns = 0;
    return sum_;
  }

  void clear() {
    // the old sums need not be cleared: add() clears a layer's sum before its first use
    sum_.layers_used = 0;
    sum_.first_ns = sum_.first_read_ns = INT64_MAX;
    sum_.last_ns = INT64_MIN;
    sum_.size = sum_.mapped_bytes = 0;
    processes_.clear();
    threads_.clear();
  }

 private:
  template <class T>
  static uint32_t count_distinct(std::vector<T>& list) {
    if (list.size() <= 1) return uint32_t(list.size());
    std::sort(list.begin(), list.end());
    return uint32_t(std::unique(list.begin(), list.end()) - list.begin());
  }

  FileSum sum_;
  std::vector<uint32_t> processes_;
  std::vector<uint64_t> threads_;
};

}  // namespace

template <class Counts>
void LayerSum::add_counts(const Counts& more) {
  bytes_read += more.bytes_read;
  bytes_written += more.bytes_written;
  opens += more.opens;
  closes += more.closes;
  reads += more.reads;
  writes += more.writes;
  stats += more.stats;
  seeks += more.seeks;
  syncs += more.syncs;
  maps += more.maps;
  other += more.other;
  failures += more.failures;
  sequential_reads += more.sequential_reads;
  consecutive_reads += more.consecutive_reads;
  sequential_writes += more.sequential_writes;
  consecutive_writes += more.consecutive_writes;
  read_write_switches += more.read_write_switches;
  for (size_t i = 0; i < PENSTOCK_SIZE_BUCKETS; ++i) {
    read_sizes[i] += more.read_sizes[i];
    write_sizes[i] += more.write_sizes[i];
  }
}

void LayerSum::add(const penstock_counters& counters, const SessionClock& clock) {
  add_counts(counters);
  first_reads += counters.reads > 0 && counters.form != PENSTOCK_WHOLE_CONTINUATION ? 1U : 0U;
  first_writes += counters.writes > 0 ? 1U : 0U;
  read_ns += clock.duration_ns(counters.read_ticks);
  write_ns += clock.duration_ns(counters.write_ticks);
  meta_ns += clock.duration_ns(counters.meta_ticks);
}

void LayerSum::add(const LayerSum& more) {
  add_counts(more);
  first_reads += more.first_reads;
  first_writes += more.first_writes;
  read_ns += more.read_ns;
  write_ns += more.write_ns;
  meta_ns += more.meta_ns;
}

FileSums::FileSums(const Session& session) : session_(&session) {
  size_t entries = 0;
  for (const auto& process_file : session.process_files)
    for (const SessionBlock& block : process_file->view().blocks())
      if (block.kind == PENSTOCK_BLOCK_COUNTERS)
        entries += block.entries.size() / std::max<size_t>(block.entry_bytes, sizeof(penstock_brief));
  entries_.reserve(entries);
  for (size_t i = 0; i < session.process_files.size(); ++i) {
    const uint64_t file_index_bits = uint64_t{i} << kOffsetBits;
    session.process_files[i]->view().each<penstock_counters>(
        PENSTOCK_BLOCK_COUNTERS, [&](const penstock_counters& counters, uint64_t offset) {
          // An empty entry is left out: the process was killed after it made the entry and before its first
          // operation.
          if (counters.file == 0 && counters.first_ticks == PENSTOCK_NEVER &&
              counters.last_ticks == PENSTOCK_NEVER)
            return;
          if (offset <= kOffsetMask) entries_.push_back({counters.file, file_index_bits | offset});
        });
  }
  std::sort(entries_.begin(), entries_.end(), [](const CountersPosition& a, const CountersPosition& b) {
    return a.file != b.file ? a.file < b.file : a.packed_position < b.packed_position;
  });
  add_groups();
}

void FileSums::add_groups() {
  // Group has 32-bit indexes; entries over this limit are left out
  constexpr size_t kMostEntries = UINT32_MAX;
  if (entries_.size() > kMostEntries) entries_.resize(kMostEntries);
  for (size_t from = 0, to = 0; from < entries_.size(); from = to) {
    while (to < entries_.size() && entries_[to].file == entries_[from].file) ++to;
    groups_.push_back({entries_[from].packed_position, uint32_t(from), uint32_t(to - from)});
  }
  std::sort(groups_.begin(), groups_.end(),
            [](const Group& a, const Group& b) { return a.packed_position < b.packed_position; });
}

std::span<const FileSums::Group> FileSums::groups_of_part(size_t part, size_t parts) const {
  const auto begin = [&](size_t i) { return i == parts ? groups_.size() : groups_.size() / parts * i; };
  return std::span(groups_).subspan(begin(part), begin(part + 1) - begin(part));
}

void FileSums::each(const FileFilter& wanted, const Each& each, const Each& left_out) const {
  each_of_part(0, 1, wanted, each, left_out);
}

void FileSums::each_of_part(size_t part, size_t parts, const FileFilter& wanted, const Each& each,
                            const Each& left_out) const {
  std::vector<EntryOfFile> group;
  FileSumBuilder wanted_sum;
  FileSumBuilder left_out_sum;
  const auto add_up = [&](std::span<const EntryOfFile> same, bool shares_key) {
    std::string_view path;
    for (const EntryOfFile& entry : same)
      if (!entry.name.text.empty()) {
        path = entry.name.text;
        break;
      }
    const unsigned kind = kind_of(path, same);
    const bool moved_bytes = std::any_of(same.begin(), same.end(), [](const EntryOfFile& entry) {
      return (entry.counters.bytes_read | entry.counters.bytes_written | entry.counters.mapped_bytes) != 0;
    });
    wanted_sum.clear();
    left_out_sum.clear();
    for (const EntryOfFile& entry : same) {
      if (!wanted || wanted(path, kind, moved_bytes, *entry.process_file)) {
        wanted_sum.add(entry);
      } else if (left_out) {
        left_out_sum.add(entry);
      }
    }
    if (!wanted_sum.empty()) each(wanted_sum.finish(same[0].counters.file, path, kind, shares_key));
    if (!left_out_sum.empty()) left_out(left_out_sum.finish(same[0].counters.file, path, kind, shares_key));
  };
  for (const Group& entries : groups_of_part(part, parts)) {
    group.clear();
    for (const CountersPosition& position : std::span(entries_).subspan(entries.from, entries.count))
      group.push_back(entry_at(*session_, position));
    // If the entries of a key have different names, each name is a file of its own. Entries without a name
    // are then added to the file whose name comes first in the alphabet.
    const auto text = [](const EntryOfFile& entry) { return entry.name.text; };
    const auto has_other_name = [&](const EntryOfFile& entry) {
      return !text(entry).empty() && !text(group.front()).empty() &&
             (text(entry).data() != text(group.front()).data() ||
              text(entry).size() != text(group.front()).size()) &&
             text(entry) != text(group.front());
    };
    if (group.size() == 1 || std::none_of(group.begin() + 1, group.end(), has_other_name)) {
      add_up(group, false);
      continue;
    }
    std::stable_sort(group.begin(), group.end(),
                     [&](const EntryOfFile& a, const EntryOfFile& b) { return text(a) < text(b); });
    size_t first_named = 0;
    while (first_named < group.size() && text(group[first_named]).empty()) ++first_named;
    for (size_t from = 0, to = first_named; from < group.size(); from = to) {
      const std::string_view name = text(group[std::max(from, first_named)]);
      to = std::max(to, from);
      while (to < group.size() && text(group[to]) == name) ++to;
      add_up(std::span(group).subspan(from, to - from), true);
    }
  }
}

void FileSums::each_entry(const EachEntry& each) const {
  std::vector<EntryOfFile> group;
  for (const Group& entries : groups_) {
    // The first name of this key. Entries without a name of their own get it.
    std::string_view name;
    group.clear();
    for (const CountersPosition& position : std::span(entries_).subspan(entries.from, entries.count)) {
      group.push_back(entry_at(*session_, position));
      if (name.empty()) name = group.back().name.text;
    }
    std::string_view last_name;
    unsigned kind = PENSTOCK_REGULAR;
    for (const EntryOfFile& entry : group) {
      const std::string_view entry_name = entry.name.text.empty() ? name : entry.name.text;
      if (entry_name != last_name) {  // seldom true after the first entry: most keys have only one name
        kind = kind_of(entry_name, group);
        last_name = entry_name;
      }
      each(entry.counters, *entry.process_file, entry_name, kind);
    }
  }
}

std::string_view size_bucket_name(size_t bucket) {
  static constexpr std::array<std::string_view, PENSTOCK_SIZE_BUCKETS> kBucketNames{
      "0_100", "100_1k", "1k_10k",   "10k_100k", "100k_1m",
      "1m_4m", "4m_10m", "10m_100m", "100m_1g",  "1g_plus"};
  return bucket < kBucketNames.size() ? kBucketNames[bucket] : "";
}

std::string_view size_bucket_text(size_t bucket) {
  static constexpr std::array<std::string_view, PENSTOCK_SIZE_BUCKETS> kBucketTexts{
      "to 100 B", "to 1 KiB",  "to 10 KiB",  "to 100 KiB", "to 1 MiB",
      "to 4 MiB", "to 10 MiB", "to 100 MiB", "to 1 GiB",   "above 1 GiB"};
  return bucket < kBucketTexts.size() ? kBucketTexts[bucket] : "";
}

uint64_t size_bucket_end(size_t bucket) {
  return bucket < kBucketEnds.size() ? kBucketEnds[bucket] : UINT64_MAX;
}

size_t size_bucket(uint64_t bytes) {
  const auto end = std::lower_bound(kBucketEnds.begin(), kBucketEnds.end(), bytes);
  return size_t(end - kBucketEnds.begin());
}

}  // namespace penstock
