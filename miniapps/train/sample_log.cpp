#include "miniapps/train/sample_log.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

std::string file_of(const std::string& path, int rank, int ranks) {
  return ranks == 1 ? path : path + "." + std::to_string(rank);
}

// Returns the step in a line "epoch step rank index", or nothing if the line has another form.
std::optional<uint64_t> step_of(std::string_view line) {
  constexpr size_t kStepField = 1;
  std::array<uint64_t, 4> numbers{};
  const char* at = line.data();
  const char* const end = at + line.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto [rest, failure] = std::from_chars(at, end, numbers[i]);
    if (failure != std::errc{} || (i + 1 < numbers.size() ? rest == end || *rest != ' ' : rest != end))
      return std::nullopt;
    at = rest + 1;
  }
  return numbers[kStepField];
}

// How many bytes at the start of the log are the lines of the run's first `steps` steps. An incomplete last
// line does not count.
Result<uint64_t> bytes_of_steps(std::istream& log, const std::string& path, uint64_t steps) {
  uint64_t kept_bytes = 0;
  std::optional<uint64_t> last_step;
  std::string line;
  for (uint64_t number = 1; std::getline(log, line) && !log.eof(); ++number) {
    const std::optional<uint64_t> step = step_of(line);
    if (!step || (last_step && *step < *last_step))
      return make_error(Errc::invalid_argument,
                        "'" + path + "' cannot be continued: line " + std::to_string(number) +
                            " is not of a sample log. Name another --sample-log, or remove it");
    if (*step >= steps) break;
    kept_bytes += line.size() + 1;
    last_step = step;
  }
  if (last_step && *last_step + 1 < steps)
    return make_error(Errc::invalid_argument,
                      "'" + path + "' cannot be continued: it ends with step " + std::to_string(*last_step) +
                          ", counted from 0, and the training continues with step " + std::to_string(steps) +
                          ". Name another --sample-log for the rest, or remove it");
  return kept_bytes;
}

}  // namespace

Result<void> keep_steps(const std::string& path, uint64_t steps) {
  std::ifstream log(path, std::ios::binary);
  if (!log && errno == ENOENT) return success();
  if (!log) return errno_error(errno, "cannot read the sample log", path);
  PENSTOCK_ASSIGN(const uint64_t bytes, bytes_of_steps(log, path, steps));
  if (retry_eintr([&] { return ::truncate(path.c_str(), off_t(bytes)); }) != 0)
    return errno_error(errno, "cannot write the sample log", path);
  return success();
}

Result<SampleLog> SampleLog::open_as(const char* mode, std::string path, int rank, uint64_t steps_before) {
  SampleLog log;
  log.path_ = std::move(path);
  log.rank_ = rank;
  log.steps_before_ = steps_before;
  log.file_.reset(std::fopen(log.path_.c_str(), mode));
  if (!log.file_) return errno_error(errno, "cannot write the sample log", log.path_);
  return log;
}

Result<SampleLog> SampleLog::open(const std::string& path, int rank, int ranks) {
  return open_as("we", file_of(path, rank, ranks), rank, 0);
}

Result<SampleLog> SampleLog::continue_log(const std::string& path, int rank, int ranks, uint64_t steps,
                                          int ranks_before) {
  const std::string own_path = file_of(path, rank, ranks);
  PENSTOCK_TRY(keep_steps(own_path, steps));
  for (int other = rank; other < ranks_before; other += ranks)
    PENSTOCK_TRY(keep_steps(file_of(path, other, ranks_before), steps));
  return open_as("ae", own_path, rank, steps);
}

Result<bool> SampleLog::after_step(uint64_t step, const Batch& batch) {
  last_result_ = write(step, batch);
  if (!last_result_.ok()) return last_result_.error();
  return true;
}

Result<void> SampleLog::write(uint64_t step, const Batch& batch) {
  for (const uint64_t index : batch.index) {
    if (std::fprintf(file_.get(), "%" PRIu64 " %" PRIu64 " %d %" PRIu64 "\n", batch.epoch,
                     steps_before_ + step, rank_, index) < 0)
      return errno_error(errno, "cannot write the sample log", path_);
  }
  if (checkpoints_ != nullptr && checkpoints_->collective_work_due(step + 1) && std::fflush(file_.get()) != 0)
    return errno_error(errno, "cannot write the sample log", path_);
  return success();
}

Result<void> SampleLog::close() {
  if (std::fclose(file_.release()) != 0) return errno_error(errno, "cannot write the sample log", path_);
  return {};
}

}  // namespace penstock
