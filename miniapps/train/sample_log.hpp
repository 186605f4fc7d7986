// Implements --sample-log: writes which samples the accelerator consumed, in order.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/scope.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/training.hpp"

namespace penstock {

// Writes one line "epoch step rank index" for each sample. Epochs and steps count from 0. A resumed run
// continues the count of steps. The index is the sample's index in the manifest. The lines of a batch are
// written after its step, in the order of the samples in the batch. Only the training loop's thread uses it,
// without a lock.
class SampleLog final : public StepObserver {
 public:
  // Opens the log file of the rank and empties it. The file is `path`, or with several ranks `path`.RANK.
  static Result<SampleLog> open(const std::string& path, int rank, int ranks);
  // Opens the log of a run that continues. Its earlier processes made `steps` steps, with `ranks_before`
  // ranks. Truncates the log after these steps by keep_steps(); lines are then appended. If the number of
  // ranks has changed, it also truncates the files of the earlier ranks.
  static Result<SampleLog> continue_log(const std::string& path, int rank, int ranks, uint64_t steps,
                                        int ranks_before = 1);

  // Makes after_step() flush the lines to the kernel if `saves` is about to save a checkpoint. The reason: a
  // checkpoint says that the samples before it were used, so their lines must survive the end of the process,
  // too. They need not survive a power failure. Borrows `saves`.
  void flush_before(const StepObserver& saves) { checkpoints_ = &saves; }
  Result<bool> after_step(uint64_t step, const Batch& batch) override;
  const Result<void>& outcome() const { return last_result_; }  // result of the last after_step()
  Result<void> close();  // writes all lines to the kernel and closes the file

 private:
  static Result<SampleLog> open_as(const char* mode, std::string path, int rank, uint64_t steps_before);
  Result<void> write(uint64_t step, const Batch& batch);
  std::string path_;
  int rank_ = 0;
  uint64_t steps_before_ = 0;  // steps of the run that earlier processes made
  const StepObserver* checkpoints_ = nullptr;
  Result<void> last_result_ = success();
  std::unique_ptr<std::FILE, FreeBy<std::fclose>> file_;
};

// Truncates a log after the lines of the run's first `steps` steps. A training that was killed may have
// written lines of later steps, and a part of a line. Does nothing if the file does not exist.
// The error is invalid_argument, and the file is not changed, if it is no sample log or ends before the last
// of these steps. An empty file is no error.
Result<void> keep_steps(const std::string& path, uint64_t steps);

}  // namespace penstock
