// What a session's processes did to each file, added up. Counters are kept by thread, file and layer; here
// those of one file meet, without anything being kept for an entry or a file but a few words.
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

// Of one layer, or of several whose bytes are different ones.
struct LayerSum {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t opens = 0;
  std::uint64_t closes = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t stats = 0;
  std::uint64_t seeks = 0;
  std::uint64_t syncs = 0;
  std::uint64_t maps = 0;
  std::uint64_t other = 0;
  std::uint64_t failures = 0;
  std::uint64_t sequential_reads = 0;
  std::uint64_t consecutive_reads = 0;
  std::uint64_t sequential_writes = 0;
  std::uint64_t consecutive_writes = 0;
  // The first ones of a thread in a file, which follow no other: Darshan's rule counts them as neither
  // sequential nor consecutive where they are at the file's begin.
  std::uint64_t first_reads = 0;
  std::uint64_t first_writes = 0;
  std::uint64_t read_write_switches = 0;
  double read_ns = 0;  // added over threads
  double write_ns = 0;
  double meta_ns = 0;
  std::array<std::uint64_t, PENSTOCK_SIZE_BUCKETS> read_sizes{};
  std::array<std::uint64_t, PENSTOCK_SIZE_BUCKETS> write_sizes{};

  void add(const penstock_counters& counters, const SessionClock& clock);
  void add(const LayerSum& more);
  std::uint64_t bytes() const { return bytes_read + bytes_written; }
  std::uint64_t metadata() const { return opens + closes + stats + seeks + syncs + maps + other; }
  std::uint64_t operations() const { return reads + writes + metadata(); }
  double io_ns() const { return read_ns + write_ns + meta_ns; }

 private:
  template <class Counts>
  void add_counts(const Counts& more);  // those that penstock_counters has under the same names
};

struct FileSum {
  std::uint64_t file = 0;   // its key; 0 for all whose name is unknown
  std::string_view path;    // is in a mapping; "" where it has no name
  bool shares_key = false;  // with another name
  unsigned kind = PENSTOCK_REGULAR;
  LayerSum all;  // what the program received and gave: the layers below MPI-IO and HDF5
  std::array<LayerSum, PENSTOCK_LAYERS> layers;
  unsigned layers_used = 0;           // a bit for each
  std::int64_t first_ns = INT64_MAX;  // realtime
  std::int64_t last_ns = INT64_MIN;
  std::int64_t first_read_ns = INT64_MAX;
  std::uint64_t size = 0;  // the largest that was seen
  std::uint64_t mapped_bytes = 0;
  std::uint32_t processes = 0;
  std::uint32_t threads = 0;
};

// One entry of counters, where it lies.
struct CountersAt {
  std::uint64_t file = 0;
  std::uint64_t place = 0;  // image and offset
};

// Whether what this image did to this file counts. `moved`: anybody read or wrote a byte of it.
using FileWanted =
    std::function<bool(std::string_view path, unsigned kind, bool moved, const SessionImage& image)>;

class FileSums {
 public:
  // Borrows the session. Takes 16 bytes an entry and 16 a file.
  explicit FileSums(const Session& session);

  std::size_t entries() const { return entries_.size(); }

  // Calls `each` for every file that has something that is wanted, in the order in which they were first
  // used, image by image (so that memory is read from its begin to its end); and `left_out` for what is not,
  // likewise. Any thread, several at once; the FileSum is gone after the call.
  using Each = std::function<void(const FileSum&)>;
  void each(const FileWanted& wanted, const Each& each, const Each& left_out = {}) const;
  // The same for one of `parts` parts of the files.
  void each_of_part(std::size_t part, std::size_t parts, const FileWanted& wanted, const Each& each,
                    const Each& left_out = {}) const;
  // Calls for each entry of a file: what a process or a thread did.
  using EachEntry = std::function<void(const penstock_counters&, const SessionImage&, std::string_view path,
                                       unsigned kind)>;
  void each_entry(const EachEntry& each) const;

 private:
  // Entries of one key.
  struct Group {
    std::uint64_t place = 0;  // of the first
    std::uint32_t from = 0;
    std::uint32_t count = 0;
  };
  std::span<const Group> part_of(std::size_t part, std::size_t parts) const;
  void add_groups();

  const Session* session_;
  std::vector<CountersAt> entries_;  // by key, then by place
  std::vector<Group> groups_;        // by place
};

// Bucket names of read_sizes and write_sizes: "0_100", "100_1k", ...
std::string_view size_bucket_name(std::size_t bucket);
// The same for people: "up to 100 B", ...
std::string_view size_bucket_text(std::size_t bucket);
// The largest size of a bucket; UINT64_MAX of the last one.
std::uint64_t size_bucket_end(std::size_t bucket);
// The bucket of a size.
std::size_t size_bucket(std::uint64_t bytes);

}  // namespace penstock
