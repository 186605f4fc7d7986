// Writes logs in Darshan's format 3.41, for darshan-util and PyDarshan. A log is a header and then regions,
// each a zlib stream: the job, the names, and the records of each module. The layouts are those of Darshan's
// include/*-log-format.h (version 3.5.0). Numbers have the byte order of this machine; readers detect it from
// the header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "profiling/exporters/zlib_stream.hpp"
#include "profiling/session_abi.h"

namespace penstock::darshan {

enum Module : unsigned { kPosix = 1, kStdio = 9, kDxtPosix = 10, kHeatmap = 15 };
inline constexpr size_t kModuleCount = 64;

inline constexpr int64_t kNotMonitored = -1;  // the value of a counter or time that is not recorded
// Readers find heatmaps by these ids, which are Darshan's hashes of the heatmaps' names.
inline constexpr uint64_t kPosixHeatmapId = 16592106915301738621ULL;
inline constexpr uint64_t kStdioHeatmapId = 3989511027826779520ULL;

// What one rank did to one file with calls that use descriptors: 69 counters and 17 times, in Darshan's
// order. All times are in seconds. Start and end times are counted from the start of the job; 0 means that
// there was no such call.
struct PosixRecord {
  uint64_t id = 0;
  int64_t rank = 0;
  int64_t opens = 0;  // also counts descriptors that dup() made or that were inherited
  int64_t filenos = 0;
  int64_t dups = 0;
  int64_t reads = 0;
  int64_t writes = 0;
  int64_t seeks = 0;
  int64_t stats = 0;
  int64_t mmaps = 0;
  int64_t fsyncs = 0;
  std::array<int64_t, 5> fdsyncs_renames_and_mode{};
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  int64_t max_byte_read = 0;
  int64_t max_byte_written = 0;
  int64_t consecutive_reads = 0;
  int64_t consecutive_writes = 0;
  int64_t sequential_reads = 0;
  int64_t sequential_writes = 0;
  int64_t read_write_switches = 0;
  std::array<int64_t, 6> alignments_and_sizes_of_longest{};
  std::array<int64_t, PENSTOCK_SIZE_BUCKETS> read_sizes{};  // Darshan has the same size buckets as Penstock
  std::array<int64_t, PENSTOCK_SIZE_BUCKETS> write_sizes{};
  std::array<int64_t, 20> strides_and_accesses{};
  double open_start = 0;
  double read_start = 0;
  double write_start = 0;
  double close_start = 0;
  double open_end = 0;
  double read_end = 0;
  double write_end = 0;
  double close_end = 0;
  double read_time = 0;
  double write_time = 0;
  double meta_time = 0;
  std::array<double, 2> longest_read_and_write{};
  std::array<double, 4> shared_file_times{};
};

// What one rank did to one file through streams of stdio: 14 counters and 15 times, in Darshan's order. The
// times are as in PosixRecord: seconds, counted from the start of the job.
struct StdioRecord {
  uint64_t id = 0;
  int64_t rank = 0;
  int64_t opens = 0;
  int64_t fdopens = 0;
  int64_t reads = 0;
  int64_t writes = 0;
  int64_t seeks = 0;
  int64_t flushes = 0;
  int64_t bytes_written = 0;
  int64_t bytes_read = 0;
  int64_t max_byte_read = 0;
  int64_t max_byte_written = 0;
  std::array<int64_t, 4> ranks_of_shared_files{};
  double meta_time = 0;
  double write_time = 0;
  double read_time = 0;
  double open_start = 0;
  double close_start = 0;
  double write_start = 0;
  double read_start = 0;
  double open_end = 0;
  double close_end = 0;
  double write_end = 0;
  double read_end = 0;
  std::array<double, 4> shared_file_times{};
};

// This record precedes the recorded calls of one rank on one file. In the log, `writes` segments of write
// calls follow the record, then `reads` segments of read calls.
struct DxtRecord {
  uint64_t id = 0;
  int64_t rank = 0;
  int64_t shared_record = 0;
  std::array<char, 64> host{};
  int64_t writes = 0;
  int64_t reads = 0;
};
// One recorded call, in version 1 of the module DXT_POSIX, which all readers support.
struct DxtSegment {
  int64_t offset = 0;  // -1: the call has no offset
  int64_t length = 0;
  double begin_s = 0;
  double end_s = 0;
};

// This record precedes a heatmap: the bytes that one rank moved in each bin. A bin is an interval of time,
// and all heatmaps of a log have the same bins. In the log, the bytes written in each bin follow this record,
// then the bytes read in each bin.
struct HeatmapRecord {
  uint64_t id = 0;
  int64_t rank = 0;
  double bin_s = 0;
  int64_t bin_count = 0;
  std::array<uint64_t, 2> unused_pointers{};
};
inline constexpr size_t kMostBins = 200;

static_assert(sizeof(PosixRecord) == 704 && sizeof(StdioRecord) == 248 && sizeof(DxtRecord) == 104 &&
                  sizeof(DxtSegment) == 32 && sizeof(HeatmapRecord) == 48,
              "records are written to files as they are in memory");

struct Job {
  int64_t uid = 0;
  int64_t begin_ns = 0;  // since 1970
  int64_t end_ns = 0;
  int64_t rank_count = 1;
  int64_t id = 0;
  std::vector<std::pair<std::string, std::string>> notes;  // each pair becomes one line: key=value
  std::string command;
  std::vector<std::pair<std::string, std::string>> mounts;  // pairs of file system type and mount point
};

// Writes a log. The caller must write the regions in this order: the job, the names, then the modules by
// increasing number, each at most once. All texts must be valid UTF-8. Only one thread may use an instance.
class LogWriter {
 public:
  explicit LogWriter(WholeFile& to);
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Begins the log with an empty header. Error: invalid_argument if the file does not support seeking (a
  // pipe), because finish() must go back to write the header.
  Result<void> begin();

  // Writes the job's region. The format has 4 KiB for the whole job: a command that is too long is truncated,
  // and notes and mounts that do not fit are left out.
  Result<void> write_job(const Job& job);
  void begin_names();
  Result<void> add_name(uint64_t id, std::string_view text);
  // Begins the region of a module. `incomplete` tells readers that some records of the module are missing.
  void begin_module(Module module, uint32_t version, bool incomplete);
  template <class Record>
  Result<void> add(const Record& record) {
    return add(std::as_bytes(std::span(&record, 1)));
  }
  Result<void> add(std::span<const std::byte> bytes);
  // Ends the region of the names or of a module. A region without records is left out.
  Result<void> end_region();
  // Writes the header. It comes first in the file, but is written last, because it needs the offsets of all
  // regions.
  Result<void> finish();

 private:
  struct Region {
    uint64_t offset = 0;
    uint64_t length = 0;
  };
  struct Header {
    std::array<char, 8> version{'3', '.', '4', '1'};
    int64_t magic = 6567223;
    uint64_t compression = 0;  // 0: zlib; only the first byte counts, the rest is padding
    uint64_t incomplete = 0;   // a module's bit is set if records of it are missing
    Region names;
    std::array<Region, kModuleCount> modules;
    std::array<uint32_t, kModuleCount> versions{};
  };
  static_assert(sizeof(Header) == 1328);

  Result<void> put(std::span<const std::byte> bytes);

  WholeFile* output_;
  Header header_;
  uint64_t position_ = sizeof(Header);
  ZlibStream stream_;
  Region* open_region_ = nullptr;
  bool region_is_empty_ = true;  // true: nothing was added to the current region yet
};

}  // namespace penstock::darshan
