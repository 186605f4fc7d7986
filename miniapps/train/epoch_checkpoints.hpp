// Writes a checkpoint after every epoch of a training: the training waits until the model's bytes are
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

// Only the training loop's thread uses it, without a lock.
class EpochCheckpoints final : public StepObserver {
 public:
  // Each save writes `model_bytes` to the object `name`. File systems cannot compress them. They are drawn by
  // the seed and differ a little each time, like weights. exhausted if there is no memory for them.
  static Result<std::unique_ptr<EpochCheckpoints>> make(const Tier& tier, std::string name,
                                                        uint64_t model_bytes, uint64_t seed);

  // Tests whether the tier accepts a checkpoint, as far as possible without writing one. Leaves no file.
  Result<void> try_create() const;

  // Replaces the object when an epoch is over, also after the last one. Errors name it. After Ctrl-C it
  // returns `interrupted` between two pieces. If the tier hangs, the call does not return.
  Result<bool> before_step(uint64_t steps, const Batch* next) override;

  // The time of each save, from its begin until the object and its name survive a power failure.
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

// Makes the epoch checkpoints that the request asks for. Null if it asks for none, as in a search, and on all
// ranks but rank 0: the optimiser's state is the same on each rank, so rank 0 writes for all. Borrows the
// request.
Result<std::unique_ptr<EpochCheckpoints>> make_epoch_checkpoints(const TrainRequest& request);

// Tests the request's tier for checkpoints: see try_create().
Result<void> try_epoch_checkpoints(const TrainRequest& request);

// Adds the figures of the checkpoints to the record. `seconds` has the time of each save of rank 0.
void record_epoch_checkpoints(const TrainRequest& request, std::span<const double> seconds, Trial& trial);

}  // namespace penstock
