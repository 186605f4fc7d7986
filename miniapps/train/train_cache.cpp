#include "miniapps/train/train_cache.hpp"

#include <numeric>
#include <utility>

#include "datagen/corpus/corpus_samples.hpp"
#include "miniapps/train/train_metrics.hpp"

namespace penstock {
namespace {

double fraction_of(const EpochBytes& bytes) {
  return double(bytes.fetched) / double(bytes.consumed);
}

// Returns the bytes that devices and servers delivered, divided by the bytes that all epochs consumed. Absent
// if the tier's bytes are not counted. Also absent if nothing was counted although the data were not in the
// page cache: some file systems never count.
std::optional<double> device_bytes_fraction(const std::vector<EpochBytes>& epochs, const CacheState& cache) {
  constexpr double kMostlyCached = 0.5;
  EpochBytes all;
  for (const EpochBytes& epoch : epochs) {
    all.consumed += epoch.consumed;
    all.fetched += epoch.fetched;
  }
  const bool cached = cache.resident_fraction_before.value_or(0) >= kMostlyCached;
  if (all.consumed == 0 || (all.fetched == 0 && !cached)) return std::nullopt;
  return fraction_of(all);
}

}  // namespace

Result<bool> EpochCounter::before_step(uint64_t /*steps*/, const Batch* /*next*/) {
  if (validating_ == nullptr) return false;
  const uint64_t validated_before = std::exchange(validation_bytes_, validating_->bytes());
  if (!epochs_.empty()) epochs_.back().consumed += validation_bytes_ - validated_before;
  return false;
}

Result<bool> EpochCounter::after_step(uint64_t /*step*/, const Batch& batch) {
  if (epochs_.empty() || batch.epoch != epoch_) {
    close_epoch();
    epoch_ = batch.epoch;
    epochs_.emplace_back();
  }
  epochs_.back().consumed += std::accumulate(batch.length.begin(), batch.length.end(), uint64_t{0});
  return true;
}

std::vector<EpochBytes> EpochCounter::finish() {
  close_epoch();
  return fetched_before_ ? std::move(epochs_) : std::vector<EpochBytes>();
}

// Bytes that devices or servers have delivered so far. For a back end with its own network connections, this
// is the back end's count, since the kernel does not count those bytes.
std::optional<uint64_t> EpochCounter::fetched() const {
  if (tier_.backend->caps().on_network) return tier_.backend->moved_bytes().read;
  return device_bytes_read();
}

void EpochCounter::close_epoch() {
  const std::optional<uint64_t> fetched_now = fetched();
  if (!epochs_.empty() && fetched_now && fetched_before_) {
    epochs_.back().fetched = *fetched_now - *fetched_before_;
    fetched_before_ = fetched_now;
  }
}

TrainCache::TrainCache(const TrainPlan& plan, const Tier& tier, SampleList samples)
    : plan_(plan),
      tier_(tier),
      samples_(std::move(samples)),
      control_(tier, plan.corpus.manifest, samples_, plan.cache, ColdMethod::evict, unsigned(plan.threads)) {}

Result<std::unique_ptr<TrainCache>> TrainCache::make(const TrainPlan& plan, const Tier& tier) {
  PENSTOCK_ASSIGN(SampleList samples, corpus_samples(plan.corpus.manifest));
  return std::unique_ptr<TrainCache>(new TrainCache(plan, tier, std::move(samples)));
}

Result<void> TrainCache::prepare() {
  PENSTOCK_ASSIGN(prepare_outcome_, prepare_together(*plan_.ranks, control_));
  return success();
}

void TrainCache::record(Trial& trial) const {
  trial.cache(cache_json(prepare_outcome_.state));
  trial.verdict(prepare_outcome_.verdict, prepare_outcome_.reason);
}

// Adds the fraction of bytes from devices, for the whole run and for each epoch. The record of
// --find-accelerators is about several runs, so values of single epochs are left out there.
void TrainCache::record_epochs(const std::vector<EpochBytes>& epochs, Trial& trial) const {
  const std::optional<double> fraction = device_bytes_fraction(epochs, prepare_outcome_.state);
  const bool in_memory = tier_.facts.memory || tier_.backend->caps().volatile_memory;
  if (!fraction || in_memory || plan_.in_memory()) return;
  if (!tier_.backend->caps().on_network) {
    CacheState state = prepare_outcome_.state;
    state.device_bytes_fraction = fraction;
    trial.cache(cache_json(state));
  }
  if (plan_.searches_accelerators) return;
  for (const EpochBytes& epoch : epochs)
    if (epoch.consumed > 0) trial.sample(train_metrics::kEpochDeviceBytes, fraction_of(epoch));
}

// Returns true in these cases: prepare() sets the requested state again before the training (--cache warm);
// the data are in memory or bypass the cache, so that the run cannot change the state; or the cache already
// holds at least 99% of the data.
// With --cache cold it is true only for a run of one epoch. If there are several, the first epoch makes the
// cache warm. Then half of the steps would not read as much from the devices as half of a whole run.
bool TrainCache::keeps_cache_state() const {
  if (plan_.cache == CacheRequest::cold) return plan_.planned_steps() <= plan_.steps_an_epoch();
  const CacheState& state = prepare_outcome_.state;
  return plan_.cache == CacheRequest::warm || state.client_data == "memory" ||
         state.client_data == "bypassed" || state.resident_fraction_before.value_or(0) >= kLeastCachedIfWarm;
}

}  // namespace penstock
