// Writes a checkpoint after every epoch of a training. The training waits until the model's bytes are
// durable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/training.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Saves a model of a given size after every epoch. Only the training loop's thread uses it, without a lock.
class EpochCheckpoints final : public StepObserver {
 public:
  // Makes an observer that writes `model_bytes` to the object `name` in each save. These bytes look random,
  // so that file systems cannot compress them. They depend on the seed and differ a little from save to save,
  // as the weights of a model do. `exhausted` if there is no memory for them.
  static Result<std::unique_ptr<EpochCheckpoints>> make(const Tier& tier, std::string name,
                                                        uint64_t model_bytes, uint64_t seed);

  // Tests, as far as possible without writing a checkpoint, whether the tier accepts a checkpoint. Leaves no
  // file behind.
  Result<void> try_create() const;

  // Saves the model whenever an epoch is over, and when the training ends, even within an epoch. Each save
  // replaces the object of the previous one. Returns true if it saved. Errors name the object. After Ctrl-C
  // it stops between two writes and returns `interrupted`. If the tier hangs, the call does not return.
  Result<bool> before_step(uint64_t steps, const Batch* next) override;

  // The time of each save, from its start until the object and its name would survive a power failure.
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  EpochCheckpoints(const Tier& tier, std::string name, std::vector<std::byte> model)
      : tier_(tier), name_(std::move(name)), model_(std::move(model)) {}
  Result<void> save();

  const Tier& tier_;
  const std::string name_;
  std::vector<std::byte> model_;
  std::optional<uint64_t> epoch_;  // the epoch of the last step
  std::vector<double> seconds_;
};

struct TrainRequest;

// Makes the epoch checkpoints that the request asks for. Only rank 0 gets an observer: all ranks have the
// same model, so rank 0 writes it for all. The result is null on the other ranks, if the request asks for no
// such checkpoints, and for --find-accelerators. Borrows the request.
Result<std::unique_ptr<EpochCheckpoints>> make_epoch_checkpoints(const TrainRequest& request);

// Tests whether the tier of the request accepts a checkpoint, as try_create() does. Leaves no file.
Result<void> try_epoch_checkpoints(const TrainRequest& request);

// Adds how long the saves took to the record. `seconds` has the time of each save of rank 0.
void record_epoch_checkpoints(const TrainRequest& request, std::span<const double> seconds, Trial& trial);

}  // namespace penstock
