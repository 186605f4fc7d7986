// Proof of I/O: what devices and servers delivered while the accelerator was in an epoch.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "datagen/cache/cache_control.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/train/train_outcome.hpp"

namespace penstock {

// What is delivered before the first step of an epoch has ended counts to the epoch before (to the first
// one, what is before its own): it was read ahead, all or in part. One thread.
class EpochCounter {
 public:
  explicit EpochCounter(const Tier& tier) : tier_(tier), fetched_before_(fetched()) {}

  void step(const Batch& batch) {
    if (epochs_.empty() || batch.epoch != epoch_) begin(batch.epoch);
    epochs_.back().consumed += std::accumulate(batch.length.begin(), batch.length.end(), std::uint64_t{0});
  }
  // That many bytes more were consumed, by something else than a step.
  void exclude(std::uint64_t bytes) {
    if (!epochs_.empty()) epochs_.back().consumed += bytes;
  }
  // Of all epochs; none where the bytes are not counted.
  std::vector<EpochBytes> finish() {
    settle();
    return fetched_before_ ? std::move(epochs_) : std::vector<EpochBytes>();
  }

 private:
  // The kernel does not see what comes by a network connection of our own.
  std::optional<std::uint64_t> fetched() const {
    if (tier_.backend->caps().network) return tier_.backend->moved_bytes().read;
    return device_bytes_read();
  }
  void begin(std::uint64_t epoch) {
    settle();
    epoch_ = epoch;
    epochs_.emplace_back();
  }
  void settle() {
    const std::optional<std::uint64_t> now = fetched();
    if (!epochs_.empty() && now && fetched_before_) {
      epochs_.back().fetched = *now - *fetched_before_;
      fetched_before_ = now;
    }
  }

  const Tier& tier_;
  std::optional<std::uint64_t> fetched_before_;
  std::uint64_t epoch_ = 0;
  std::vector<EpochBytes> epochs_;
};

}  // namespace penstock
