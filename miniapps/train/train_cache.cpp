#include "miniapps/train/train_cache.hpp"

#include <numeric>
#include <utility>

#include "datagen/corpus/corpus_samples.hpp"
#include "miniapps/train/train_metrics.hpp"

namespace penstock {
namespace {

double fraction_of(const EpochBytes& bytes) {
  return static_cast<double>(bytes.fetched) / static_cast<double>(bytes.consumed);
}

// What devices and servers delivered over what all epochs consumed. Absent where it is not counted, or where
// the count did not change although the page cache did not hold the data (some file systems never count).
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

Result<bool> EpochCounter::before_step(std::uint64_t /*steps*/, const Batch* /*next*/) {
  if (validating_ == nullptr) return false;
  const std::uint64_t before = std::exchange(validated_, validating_->bytes());
  if (!epochs_.empty()) epochs_.back().consumed += validated_ - before;
  return false;
}

Result<bool> EpochCounter::after_step(std::uint64_t /*step*/, const Batch& batch) {
  if (epochs_.empty() || batch.epoch != epoch_) {
    settle();
    epoch_ = batch.epoch;
    epochs_.emplace_back();
  }
  epochs_.back().consumed += std::accumulate(batch.length.begin(), batch.length.end(), std::uint64_t{0});
  return true;
}

std::vector<EpochBytes> EpochCounter::finish() {
  settle();
  return fetched_before_ ? std::move(epochs_) : std::vector<EpochBytes>();
}

// The kernel does not see what comes by a network connection of our own.
std::optional<std::uint64_t> EpochCounter::fetched() const {
  if (tier_.backend->caps().network) return tier_.backend->moved_bytes().read;
  return device_bytes_read();
}

void EpochCounter::settle() {
  const std::optional<std::uint64_t> now = fetched();
  if (!epochs_.empty() && now && fetched_before_) {
    epochs_.back().fetched = *now - *fetched_before_;
    fetched_before_ = now;
  }
}

TrainCache::TrainCache(const TrainPlan& plan, const Tier& tier, SampleList samples)
    : plan_(plan),
      tier_(tier),
      samples_(std::move(samples)),
      control_(tier, plan.corpus.manifest, samples_, plan.cache, ColdMethod::evict,
               static_cast<unsigned>(plan.threads)) {}

Result<std::unique_ptr<TrainCache>> TrainCache::make(const TrainPlan& plan, const Tier& tier) {
  PENSTOCK_ASSIGN(SampleList samples, corpus_samples(plan.corpus.manifest));
  return std::unique_ptr<TrainCache>(new TrainCache(plan, tier, std::move(samples)));
}

Result<void> TrainCache::prepare() {
  PENSTOCK_ASSIGN(found_, prepare_together(*plan_.ranks, control_));
  return success();
}

void TrainCache::record(Trial& trial) const {
  trial.cache(cache_json(found_.state));
  trial.verdict(found_.verdict, found_.reason);
}

// A search's record has several runs: what is of one alone is left out.
void TrainCache::record_epochs(const std::vector<EpochBytes>& epochs, Trial& trial) const {
  const std::optional<double> fraction = device_bytes_fraction(epochs, found_.state);
  const bool in_memory = tier_.facts.memory || tier_.backend->caps().volatile_memory;
  if (!fraction || in_memory || plan_.in_memory()) return;
  if (!tier_.backend->caps().network) {
    CacheState state = found_.state;
    state.device_bytes_fraction = fraction;
    trial.cache(cache_json(state));
  }
  if (plan_.find_accelerators) return;
  for (const EpochBytes& epoch : epochs)
    if (epoch.consumed > 0) trial.sample(train_metrics::kEpochDeviceBytes, fraction_of(epoch));
}

// Because it is prepared anew, has nothing to change, or holds everything already. A cold cache gets warm
// over the epochs, so that more than one of them cannot be divided.
bool TrainCache::same_again() const {
  if (plan_.cache == CacheRequest::cold) return plan_.planned_steps() <= plan_.steps_an_epoch();
  const CacheState& state = found_.state;
  return plan_.cache == CacheRequest::warm || state.client_data == "memory" ||
         state.client_data == "bypassed" || state.resident_fraction_before.value_or(0) >= kWarmAtLeast;
}

}  // namespace penstock
