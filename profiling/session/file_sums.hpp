// Adds up what the processes of a session did to each file. A session has an entry of counters for each
// combination of thread, file and layer; FileSums groups these entries by file. It needs only 16 bytes of
// memory for each entry and 16 for each file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/session/session.hpp"

namespace penstock {

// The sums of one layer, or of several layers that do not count the same bytes twice.
struct LayerSum {
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t opens = 0;
  uint64_t closes = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t stats = 0;
  uint64_t seeks = 0;
  uint64_t syncs = 0;
  uint64_t maps = 0;
  uint64_t other = 0;  // calls of all other kinds
  uint64_t failures = 0;
  uint64_t sequential_reads = 0;
  uint64_t consecutive_reads = 0;
  uint64_t sequential_writes = 0;
  uint64_t consecutive_writes = 0;
  // How many of the reads and writes were the first of their thread in this file. Those that began after byte
  // 0 count as sequential.
  uint64_t first_reads = 0;
  uint64_t first_writes = 0;
  uint64_t read_write_switches = 0;
  double read_ns = 0;  // of all threads together, so it may exceed the elapsed time
  double write_ns = 0;
  double meta_ns = 0;
  std::array<uint64_t, PENSTOCK_SIZE_BUCKETS> read_sizes{};
  std::array<uint64_t, PENSTOCK_SIZE_BUCKETS> write_sizes{};

  void add(const penstock_counters& counters, const SessionClock& clock);
  void add(const LayerSum& more);
  uint64_t bytes() const { return bytes_read + bytes_written; }
  uint64_t metadata() const { return opens + closes + stats + seeks + syncs + maps + other; }
  uint64_t operations() const { return reads + writes + metadata(); }
  double io_ns() const { return read_ns + write_ns + meta_ns; }

 private:
  // Adds the members that `more` shares with this type. `Counts` is LayerSum or penstock_counters.
  template <class Counts>
  void add_counts(const Counts& more);
};

struct FileSum {
  uint64_t file = 0;        // the file's key (penstock_name::file); 0 for all files whose name is not known
  std::string_view path;    // points into a mapped file; "" if the name is unknown
  bool shares_key = false;  // true: a file of another name has the same key
  unsigned kind = PENSTOCK_REGULAR;
  // the sum of all layers except MPI-IO and HDF5, whose bytes the layers below them count as well
  LayerSum all;
  std::array<LayerSum, PENSTOCK_LAYERS> layers;
  unsigned layers_used = 0;      // bit i is set if the program used layer i
  int64_t first_ns = INT64_MAX;  // since 1970
  int64_t last_ns = INT64_MIN;
  int64_t first_read_ns = INT64_MAX;
  uint64_t size = 0;  // the largest size that was seen, in bytes
  uint64_t mapped_bytes = 0;
  uint32_t processes = 0;
  uint32_t threads = 0;
};

// Where one entry of counters is in the session, and the key of its file.
struct CountersPosition {
  uint64_t file = 0;
  uint64_t packed_position = 0;  // upper bits: index of the process file; lower bits: offset in that file
};

// Chooses the entries that FileSums::each() counts. It is called with a file (its name and its kind, such as
// PENSTOCK_REGULAR) and the process file of one process. True: the entries of this process for this file are
// counted. False: they are added up as left out. `moved_bytes`: whether any process read, wrote or mapped
// bytes of the file.
using FileFilter = std::function<bool(std::string_view path, unsigned kind, bool moved_bytes,
                                      const ProcessFile& process_file)>;

class FileSums {
 public:
  // Groups the entries of the session, which must live longer than this object. Uses 16 bytes of memory for
  // each entry and 16 for each file.
  explicit FileSums(const Session& session);

  size_t entries() const { return entries_.size(); }

  // For every file, calls `each` with the sum of those of its entries that `wanted` accepts, and `left_out`
  // with the sum of all others. If there are no such entries, the function is not called. The FileSum is
  // valid only during the call. An entry is what one thread of one process did to a file through one layer.
  // Files come in the order of their first entry, so that the mapped session files are read from begin to
  // end. Several threads may call each() at the same time.
  using Each = std::function<void(const FileSum&)>;
  void each(const FileFilter& wanted, const Each& each, const Each& left_out = {}) const;
  // Does what each() does, but only for one part of the files. The files are divided into `parts` parts of
  // nearly equal size; `part` is the number of the part to use, from 0.
  void each_of_part(size_t part, size_t parts, const FileFilter& wanted, const Each& each,
                    const Each& left_out = {}) const;
  // Calls `each` for every single entry.
  using EachEntry =
      std::function<void(const penstock_counters&, const ProcessFile&, std::string_view path, unsigned kind)>;
  void each_entry(const EachEntry& each) const;

 private:
  // The entries of one key in `entries_`: `count` entries from index `from`.
  struct Group {
    uint64_t packed_position = 0;  // position of the first entry
    uint32_t from = 0;
    uint32_t count = 0;
  };
  std::span<const Group> groups_of_part(size_t part, size_t parts) const;
  void add_groups();

  const Session* session_;
  std::vector<CountersPosition> entries_;  // sorted by key, then by position
  std::vector<Group> groups_;              // sorted by position
};

// The name of a bucket of read_sizes and write_sizes in JSON and CSV: "0_100", "100_1k", ...
std::string_view size_bucket_name(size_t bucket);
// The name of a size bucket in texts for people: "to 100 B", "to 1 KiB", ...
std::string_view size_bucket_text(size_t bucket);
// The largest size in a bucket, in bytes; UINT64_MAX for the last bucket.
uint64_t size_bucket_end(size_t bucket);
// The bucket of a size.
size_t size_bucket(uint64_t bytes);

}  // namespace penstock
