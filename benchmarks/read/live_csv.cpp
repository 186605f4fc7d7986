#include "benchmarks/read/live_csv.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>

#include "io_backends/core/csv_field.hpp"

namespace penstock {

Result<LiveCsv> LiveCsv::open(const std::string& path) {
  LiveCsv csv;
  if (path.empty()) return csv;
  csv.file_.reset(std::fopen(path.c_str(), "we"));
  if (!csv.file_) return errno_error(errno, "cannot write", path);
  csv.path_ = path;
  fmt::print(csv.file_.get(), "time,tier,threads,files_per_s,mib_per_s\n");
  csv.flush();
  return csv;
}

void LiveCsv::flush() {
  if (std::fflush(file_.get()) != 0 && failed_errno_ == 0) failed_errno_ = errno;
}

Result<void> LiveCsv::check() const {
  if (failed_errno_ != 0) return errno_error(failed_errno_, "cannot write", path_);
  return success();
}

void LiveCsv::begin(std::string_view tier, unsigned threads) {
  tier_ = tier;
  threads_ = threads;
  last_tally_ = RunTally{};
}

void LiveCsv::tick(const RunTally& so_far) {
  if (file_ && so_far.elapsed_s - last_tally_.elapsed_s >= 1.0) write_line(so_far);
}

void LiveCsv::end(const RunTally& total) {
  if (file_ && total.samples > last_tally_.samples) write_line(total);
}

void LiveCsv::write_line(const RunTally& now) {
  const double seconds = now.elapsed_s - last_tally_.elapsed_s;
  if (seconds <= 0) return;
  const double unix_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  fmt::print(file_.get(), "{:.3f},{},{},{:.1f},{:.2f}\n", unix_s, csv_field(tier_), threads_,
             double(now.samples - last_tally_.samples) / seconds,
             double(now.bytes - last_tally_.bytes) / seconds / 1048576.0);
  flush();
  last_tally_ = now;
}

}  // namespace penstock
