// Writes spans to a file for other tools. CSV is a table with the columns of TimeLogger, which Chowdhury et
// al. (NERSC) published with their study of TensorFlow programs. JSON is a trace for Chrome and Perfetto.
//
// CSV: the header is `Epoch,Rank,Action Name,Action Description,Start Time,End Time,Time Taken,Process
// ID,Current Thread`. One row for each span follows, in no order of time. Times are wall-clock seconds since
// 1970 (UTC) with nine decimals, and Time Taken is their exact difference. An epoch of -1 means none. A field
// that contains a comma, a quote or a line end is quoted as in RFC 4180.
//
// JSON: an object with `traceEvents`, one complete event (`"ph":"X"`) for each span. `ts` counts from the
// run's time 0; `ts` and `dur` are in microseconds. `pid` is the rank, `tid` the thread. Epoch, sample or
// step, and bytes are in `args`. Metadata events name the ranks and threads.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/scope.hpp"
#include "profiling/session_abi.h"

namespace penstock {

enum class TimelineFormat : std::uint8_t { csv, chrome };
// Selected by the end of the path, ".csv" or ".json". Error: invalid_argument for any other.
Result<TimelineFormat> timeline_format(std::string_view path);

// Names and times that spans do not contain.
struct TimelineNames {
  std::vector<std::string> stages;         // of the transform: "decode", "resize"
  std::string read = "File Read";          // name of the action; "HDF5 File Read" for HDF5, as in TimeLogger
  std::string shuffle = "Global Shuffle";  // name of the action of a shuffle
  // The object that contains a sample; the function may build the text in `scratch`.
  std::function<std::string_view(std::uint64_t sample, std::string& scratch)> object;
  std::int64_t start_ns = 0;         // the run's time 0, on the clock of the spans
  std::int64_t wall_minus_span = 0;  // the wall clock (ns since 1970) minus the clock of the spans
};

struct TimelineRank {
  int rank = 0;
  std::int64_t process = 0;
  std::string host;
  std::vector<std::pair<std::uint32_t, std::string>> threads;  // threads that have names
};

// Each span is written when it is added; only one line is in memory. For one thread.
class TimelineFile {
 public:
  // Replaces an existing file.
  static Result<TimelineFile> create(const std::string& path, TimelineFormat format);

  // Must be called before the first rank.
  Result<void> begin(TimelineNames names);
  Result<void> begin_rank(TimelineRank rank);  // the next spans are of this rank
  Result<void> add(std::span<const penstock_span> spans);
  Result<void> close();  // success if the system has taken all bytes

 private:
  void write_row(const penstock_span& span);
  void write_event(const penstock_span& span);
  void write_metadata(std::string_view what, std::uint32_t thread, std::string_view name);
  Result<void> write();
  std::string_view object(const penstock_span& span);
  std::string_view stage(const penstock_span& span) const;
  std::string action(const penstock_span& span) const;
  std::string description(const penstock_span& span);

  std::string path_;
  TimelineFormat format_ = TimelineFormat::csv;
  std::unique_ptr<std::FILE, FreeBy<std::fclose>> file_;
  TimelineNames names_;
  TimelineRank rank_;
  std::string line_;
  std::string scratch_;
  bool first_event_ = true;
};

}  // namespace penstock
