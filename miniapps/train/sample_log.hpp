// --sample-log: writes which samples the accelerator consumed, in order.
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

// Each sample is one line "epoch step rank index". Epoch and step count from 0, steps through the whole run;
// index is the sample's index in the manifest. The lines of a batch are written after its step, in the order
// of slots. One thread: the training loop's. No lock.
class SampleLog final : public StepObserver {
 public:
  // Replaces the rank's file: `path`, or with several ranks `path`.RANK.
  static Result<SampleLog> open(const std::string& path, int rank, int ranks);
  // Continues the log of a run that made `steps` steps with `ranks_before` ranks: cuts it by keep_steps(),
  // then appends. Cuts the files of ranks that do not exist any more as well.
  static Result<SampleLog> continue_log(const std::string& path, int rank, int ranks, uint64_t steps,
                                        int ranks_before = 1);

  // Makes after_step() flush the lines to the kernel if `saves` is about to save a checkpoint. A checkpoint
  // means that the samples before it were used, so their lines must survive the process as well. They need
  // not survive a power failure. Borrows `saves`.
  void flush_before(const StepObserver& saves) { checkpoints_ = &saves; }
  Result<bool> after_step(uint64_t step, const Batch& batch) override;
  const Result<void>& outcome() const { return last_result_; }  // result of the last after_step()
  Result<void> close();  // flushes all lines to the kernel; returns the first error

 private:
  static Result<SampleLog> open_as(const char* mode, std::string path, int rank, uint64_t made);
  Result<void> write(uint64_t step, const Batch& batch);
  std::string path_;
  int rank_ = 0;
  uint64_t steps_before_ = 0;  // steps of the run before this process began
  const StepObserver* checkpoints_ = nullptr;
  Result<void> last_result_ = success();
  std::unique_ptr<std::FILE, FreeBy<std::fclose>> file_;
};

// Cuts a log after the lines of its first `steps` steps. A killed training may have written more lines, and
// half of one. Does nothing if the file does not exist. invalid_argument, with the file unchanged, if it is
// no sample log, or if it ends before that step.
Result<void> keep_steps(const std::string& path, uint64_t steps);

}  // namespace penstock
