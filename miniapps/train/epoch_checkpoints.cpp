#include "miniapps/train/epoch_checkpoints.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "io_backends/core/random.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

Result<std::unique_ptr<EpochCheckpoints>> EpochCheckpoints::make(const Tier& tier, std::string name,
                                                                 uint64_t model_bytes, uint64_t seed) {
  try {
    std::vector<std::byte> model(static_cast<size_t>(model_bytes));
    const RandomStream random(seed, "train.checkpoint");
    for (size_t at = 0; at < model.size(); at += sizeof(uint64_t)) {
      const uint64_t bits = random.bits(at);
      std::memcpy(model.data() + at, &bits, std::min(sizeof bits, model.size() - at));
    }
    return std::unique_ptr<EpochCheckpoints>(new EpochCheckpoints(tier, std::move(name), std::move(model)));
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for a model of " + format_size(model_bytes));
  }
}

Result<void> EpochCheckpoints::try_create() const {
  const Result<std::unique_ptr<Writer>> writer = tier_.backend->create(name_, model_.size());
  if (writer.ok()) return success();
  Error error = writer.error();
  error.what = "cannot write a checkpoint: " + error.what;
  return error;
}

Result<bool> EpochCheckpoints::before_step(uint64_t steps, const Batch* next) {
  const bool epoch_ended = next == nullptr ? steps > 0 : epoch_ && *epoch_ != next->epoch;
  if (next != nullptr) epoch_ = next->epoch;
  if (!epoch_ended) return false;
  const Result<void> saved = save();
  if (saved.ok()) return true;
  Error error = saved.error();
  error.what = "a checkpoint failed: " + error.what;
  return error;
}

Result<void> EpochCheckpoints::save() {
  const auto since = std::chrono::steady_clock::now();
  for (size_t at = 0; at < model_.size(); at += 4096) model_[at] ^= std::byte{1};
  PENSTOCK_ASSIGN(const std::unique_ptr<Writer> writer, tier_.backend->create(name_, model_.size()));
  for (std::span<const std::byte> rest(model_); !rest.empty();) {
    PENSTOCK_TRY(check_interrupt());
    const size_t piece = std::min(kPieceBytes, rest.size());
    PENSTOCK_TRY(writer->append(rest.first(piece)));
    rest = rest.subspan(piece);
  }
  PENSTOCK_TRY(writer->publish(Durability::file_and_name));
  seconds_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count());
  return success();
}

Result<std::unique_ptr<EpochCheckpoints>> make_epoch_checkpoints(const TrainRequest& request) {
  if (!request.checkpoint_tier || !request.ranks->root() || request.searches_accelerators) return nullptr;
  return EpochCheckpoints::make(*request.checkpoint_tier,
                                "penstock-" + std::string(request.app->name) + ".ckpt",
                                request.app_options.size(kModelOption.name), request.seed);
}

Result<void> try_epoch_checkpoints(const TrainRequest& request) {
  PENSTOCK_ASSIGN(const std::unique_ptr<EpochCheckpoints> checkpoints, make_epoch_checkpoints(request));
  return checkpoints ? checkpoints->try_create() : success();
}

void record_epoch_checkpoints(const TrainRequest& request, std::span<const double> seconds, Trial& trial) {
  trial.sample(saving_metrics::kSaves, double(seconds.size()));
  trial.sample(train_metrics::kModelBytes,
               double(seconds.size() * request.app_options.size(kModelOption.name)));
  for (const double time : seconds) trial.sample(train_metrics::kModelSave, time);
}

}  // namespace penstock
