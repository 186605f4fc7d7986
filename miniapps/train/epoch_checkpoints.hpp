// A checkpoint behind every epoch of a training: the model's bytes, written and made durable while it waits.
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

// One thread.
class EpochCheckpoints final : public StepObserver {
 public:
  // The object `name` gets `model_bytes` of what no file system can shrink, drawn by the seed, differing a
  // little each time as weights do. exhausted where there is no memory for them.
  static Result<std::unique_ptr<EpochCheckpoints>> make(const Tier& tier, std::string name,
                                                        std::uint64_t model_bytes, std::uint64_t seed);

  // Whether the place takes one, as far as it can be told without writing it. Leaves nothing behind.
  Result<void> try_place() const;

  // When an epoch is over, the last one included, the object is replaced. Errors name it; `interrupted`
  // between two pieces. A tier that hangs holds the caller.
  Result<bool> before_step(std::uint64_t steps, const Batch* next) override;

  // Of each save, from its begin until it and its name survive a power cut.
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  EpochCheckpoints(const Tier& tier, std::string name, std::vector<std::byte> model)
      : tier_(tier), name_(std::move(name)), model_(std::move(model)) {}
  Result<void> save();

  const Tier& tier_;
  const std::string name_;
  std::vector<std::byte> model_;
  std::optional<std::uint64_t> epoch_;  // of the training
  std::vector<double> seconds_;
};

struct TrainRequest;

// Those of the request; null where none are written, as in a search, and on all ranks but the first: rank 0
// writes for all, as the optimiser's state is the same on each. Borrows the request.
Result<std::unique_ptr<EpochCheckpoints>> make_epoch_checkpoints(const TrainRequest& request);

// Whether the request's place takes one: see try_place().
Result<void> try_epoch_checkpoints(const TrainRequest& request);

// Adds what the request's checkpoints came to; `seconds` has each save of rank 0.
void record_epoch_checkpoints(const TrainRequest& request, std::span<const double> seconds, Trial& trial);

}  // namespace penstock
