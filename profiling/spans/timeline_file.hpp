// Spans as a file for others: a table with the columns of TimeLogger, which Chowdhury et al. (NERSC)
// published with their characterization of TensorFlow programs, or a trace that Chrome and Perfetto show.
//
// CSV. The header is `Epoch,Rank,Action Name,Action Description,Start Time,End Time,Time Taken,Process
// ID,Current Thread`; then one row a span, in no order of time. Times are wall-clock seconds since 1970 (UTC)
// with nine decimals, of which Time Taken is the exact difference; an epoch that is none is -1; what holds a
// comma, a quote or a line's end is quoted as in RFC 4180.
//
// JSON. An object with `traceEvents`: one complete event (`"ph":"X"`) a span with `ts`, from the run's time
// 0, and `dur` in microseconds, `pid` the rank, `tid` the thread, and epoch, sample or step, and bytes as
// `args`; and metadata events that name ranks and threads.
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
// By the end of the name, ".csv" or ".json"; invalid_argument otherwise.
Result<TimelineFormat> timeline_format(std::string_view path);

// What spans leave to be told.
struct TimelineNames {
  std::vector<std::string> stages;         // of the transform: "decode", "resize"
  std::string read = "File Read";          // the action; TimeLogger's "HDF5 File Read" where it is one
  std::string shuffle = "Global Shuffle";  // likewise
  // The object that a sample is in; may use the scratch for it.
  std::function<std::string_view(std::uint64_t sample, std::string& scratch)> object;
  std::int64_t start_ns = 0;         // the run's time 0, on the clock of the spans that are added
  std::int64_t wall_minus_span = 0;  // the wall clock, in ns since 1970, less the spans' clock
};

struct TimelineRank {
  int rank = 0;
  std::int64_t process = 0;
  std::string host;
  std::vector<std::pair<std::uint32_t, std::string>> threads;  // those that have a name
};

// Written as it is added; nothing but one line is kept. One thread.
class TimelineFile {
 public:
  // Replaces the file.
  static Result<TimelineFile> create(const std::string& path, TimelineFormat format);

  // Before the first rank.
  Result<void> begin(TimelineNames words);
  Result<void> begin_rank(TimelineRank rank);  // whose the next spans are
  Result<void> add(std::span<const penstock_span> spans);
  Result<void> close();  // all is with the system, or why not

 private:
  void row(const penstock_span& span);
  void event(const penstock_span& span);
  void metadata(std::string_view what, std::uint32_t thread, std::string_view name);
  Result<void> write();
  std::string_view object(const penstock_span& span);
  std::string_view stage(const penstock_span& span) const;
  std::string action(const penstock_span& span) const;
  std::string description(const penstock_span& span);

  std::string path_;
  TimelineFormat format_ = TimelineFormat::csv;
  std::unique_ptr<std::FILE, FreeBy<std::fclose>> file_;
  TimelineNames words_;
  TimelineRank rank_;
  std::string line_;
  std::string scratch_;
  bool first_event_ = true;
};

}  // namespace penstock
