// Writes spans to a file for other tools, as CSV or as JSON. CSV is a table with the columns of TimeLogger, a
// tool that Chowdhury et al. (NERSC) published with their study of TensorFlow programs. JSON is a trace for
// Chrome and Perfetto.
//
// CSV: the header is `Epoch,Rank,Action Name,Action Description,Start Time,End Time,Time Taken,Process
// ID,Current Thread`. Each span is one row; rows are not sorted by time. Times are wall-clock seconds since
// 1970 (UTC) with nine decimals, and Time Taken is their exact difference. The epoch is -1 if a span has
// none. A field that contains a comma, a quote or a line end is quoted as in RFC 4180.
//
// JSON: an object with `traceEvents`, which has one complete event (`"ph":"X"`) for each span. `ts` is the
// time since the run's time 0; `ts` and `dur` are in microseconds. `pid` is the rank, and `tid` the thread.
// `args` has the epoch, the bytes, and the number of the sample or step. Metadata events name the ranks and
// threads.
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

enum class TimelineFormat : uint8_t { csv, chrome };
// The format that the end of the path selects: ".csv" or ".json". Error: invalid_argument if the path ends
// differently.
Result<TimelineFormat> timeline_format(std::string_view path);

// Names and times that spans do not contain.
struct TimelineNames {
  std::vector<std::string> stage_names;   // names of the transform's stages: "decode", "resize"
  std::string read_action = "File Read";  // action name of a PENSTOCK_READ span; for HDF5 "HDF5 File Read"
  std::string shuffle_action = "Global Shuffle";  // action name of a PENSTOCK_SHUFFLE span
  // Returns the name of the object that contains a sample. The function may store the name in `scratch`.
  std::function<std::string_view(uint64_t sample, std::string& scratch)> object;
  int64_t start_ns = 0;            // the run's time 0, on the clock of the spans
  int64_t wall_minus_span_ns = 0;  // wall clock (since 1970) minus the clock of the spans
};

struct TimelineRank {
  int rank = 0;
  int64_t process_id = 0;
  std::string host;
  std::vector<std::pair<uint32_t, std::string>> threads;  // thread id and name of each thread that has a name
};

// A file that spans are written to. Each span is written when it is added, so only one line is in memory.
// Only one thread may use it.
class TimelineFile {
 public:
  // Creates the file, or replaces an existing one.
  static Result<TimelineFile> create(const std::string& path, TimelineFormat format);

  // Writes what comes before all spans, such as the header of CSV. Must be called before begin_rank().
  Result<void> begin(TimelineNames names);
  Result<void> begin_rank(TimelineRank rank);  // the spans that are added next are of this rank
  Result<void> add(std::span<const penstock_span> spans);
  Result<void> close();  // an error if the system did not accept all bytes

 private:
  void write_row(const penstock_span& span);
  void write_event(const penstock_span& span);
  void write_metadata(std::string_view what, uint32_t thread, std::string_view name);
  Result<void> write();
  std::string_view object_name(const penstock_span& span);
  std::string_view stage_name(const penstock_span& span) const;
  std::string action_name(const penstock_span& span) const;
  std::string description(const penstock_span& span);

  std::string path_;
  TimelineFormat format_ = TimelineFormat::csv;
  std::unique_ptr<std::FILE, FreeBy<std::fclose>> file_;
  TimelineNames names_;
  TimelineRank rank_;
  std::string line_;
  std::string scratch_;
  bool is_first_event_ = true;
};

}  // namespace penstock
