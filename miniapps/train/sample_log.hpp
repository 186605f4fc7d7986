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

// Writes one line "epoch step rank index" for each sample. Epoch and step count from 0, and steps count
// through the whole run; index is the sample's index in the manifest. The lines of a batch are written after
// its step, in the order of slots. Only the training loop's thread uses it, without a lock.
class SampleLog final : public StepObserver {
 public:
  // Opens the rank's file and empties it. Its name is `path`, or with several ranks `path`.RANK.
  static Result<SampleLog> open(const std::string& path, int rank, int ranks);
  // Continues the log of a run that made `steps` steps with `ranks_before` ranks: cuts it after these steps
  // (keep_steps()), then appends. If there are fewer ranks now, it also cuts the files of the ranks that no
  // longer exist.
  static Result<SampleLog> continue_log(const std::string& path, int rank, int ranks, uint64_t steps,
                                        int ranks_before = 1);

  // Makes after_step() flush the lines to the kernel if `saves` is about to save a checkpoint. A checkpoint
  // says that the samples before it were used, so their lines must survive the end of the process, too. They
  // need not survive a power failure. Borrows `saves`.
  void flush_before(const StepObserver& saves) { checkpoints_ = &saves; }
  Result<bool> after_step(uint64_t step, const Batch& batch) override;
  const Result<void>& outcome() const { return last_result_; }  // result of the last after_step()
  Result<void> close();  // writes all lines to the kernel and closes the file

 private:
  static Result<SampleLog> open_as(const char* mode, std::string path, int rank, uint64_t made);
  Result<void> write(uint64_t step, const Batch& batch);
  std::string path_;
  int rank_ = 0;
  uint64_t steps_before_ = 0;  // steps of the run that earlier processes made
  const StepObserver* checkpoints_ = nullptr;
  Result<void> last_result_ = success();
  std::unique_ptr<std::FILE, FreeBy<std::fclose>> file_;
};

// Cuts a log after the lines of its first `steps` steps. A training that was killed may have written more
// lines, and a part of one. Does nothing if the file does not exist. invalid_argument, with the file
// unchanged, if it is no sample log, or if it ends before that step.
Result<void> keep_steps(const std::string& path, uint64_t steps);

}  // namespace penstock
