// --sample-log: which samples the accelerator consumed, in order.
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

// One line a sample, "epoch step rank index": epoch and step count from 0, steps through the whole run; index
// is the sample's in the manifest. Lines come in the order of the batch's slots, when its step has ended. One
// thread.
class SampleLog final : public StepObserver {
 public:
  // Replaces the rank's file, which is `path`, or of several ranks that with .RANK after it.
  static Result<SampleLog> open(const std::string& path, int rank, int ranks);
  // Goes on with it, as keep_steps() leaves it, of a run that had made `steps` steps over `before` ranks. The
  // files of ranks that are no more are cut the same.
  static Result<SampleLog> go_on(const std::string& path, int rank, int ranks, std::uint64_t steps,
                                 int before = 1);

  // Where `saves` is due after a step, its lines are given to the system: a checkpoint means that the samples
  // before it were used, so their lines outlive this process, too. Borrows it.
  void flush_before(const StepObserver& saves) { saves_ = &saves; }
  Result<bool> after_step(std::uint64_t step, const Batch& batch) override;
  const Result<void>& outcome() const { return outcome_; }  // of the last after_step()
  Result<void> close();                                     // all lines are with the system, or why not

 private:
  static Result<SampleLog> open_as(const char* mode, std::string path, int rank, std::uint64_t made);
  Result<void> write(std::uint64_t step, const Batch& batch);
  std::string path_;
  int rank_ = 0;
  std::uint64_t made_ = 0;  // steps of the run before this process
  const StepObserver* saves_ = nullptr;
  Result<void> outcome_ = success();
  std::unique_ptr<std::FILE, FreeBy<std::fclose>> file_;
};

// Leaves the lines of the first `steps` steps in a log, which a training that is killed may have written
// further, to the middle of a line. Nothing where there is no such file. invalid_argument, and the file as it
// was, where it is no sample log, or has lines and ends before that step.
Result<void> keep_steps(const std::string& path, std::uint64_t steps);

}  // namespace penstock
