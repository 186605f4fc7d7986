#include "miniapps/sample_log.hpp"

#include <cerrno>
#include <cinttypes>

namespace penstock {

Result<SampleLog> SampleLog::open(const std::string& path, int rank) {
  SampleLog log;
  log.path_ = path;
  log.rank_ = rank;
  log.file_.reset(std::fopen(path.c_str(), "we"));
  if (!log.file_) return errno_error(errno, "cannot write the sample log", path);
  return log;
}

Result<void> SampleLog::step(std::uint64_t step, const Batch& batch) {
  for (const std::uint64_t index : batch.index) {
    if (std::fprintf(file_.get(), "%" PRIu64 " %" PRIu64 " %d %" PRIu64 "\n", batch.epoch, step, rank_,
                     index) < 0)
      return errno_error(errno, "cannot write the sample log", path_);
  }
  return {};
}

Result<void> SampleLog::flush() {
  if (std::fflush(file_.get()) != 0) return errno_error(errno, "cannot write the sample log", path_);
  return {};
}

Result<void> SampleLog::close() {
  if (std::fclose(file_.release()) != 0) return errno_error(errno, "cannot write the sample log", path_);
  return {};
}

}  // namespace penstock
