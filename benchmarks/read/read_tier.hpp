// A tier in a read sweep: its read engine, its baseline and ceiling, and its CacheControl.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/yardsticks.hpp"
#include "datagen/cache/cache_control.hpp"
#include "datagen/reading/physical_places.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// The state of one tier during a sweep. It cannot be moved, because its parts refer to each other. Only one
// thread may use it.
struct ReadTier {
  explicit ReadTier(Tier& measured_tier) : tier(measured_tier) {}
  ReadTier(const ReadTier&) = delete;
  ReadTier& operator=(const ReadTier&) = delete;

  // Prepares the tier for the sweep; must be called before anything is read. Borrows all arguments. For
  // SampleOrder::physical it finds the offset of each sample on the device.
  Result<void> open(const Manifest& manifest, const SampleList& samples, const ReadOptions& options,
                    const RankShare& share);

  // cache_not_dropped_warning() returns a warning if the cache could not be dropped, else "".
  // no_baseline_warning() returns a warning that the baseline could not be measured. Each gives its warning
  // only once; later calls return "".
  std::string cache_not_dropped_warning();
  std::string no_baseline_warning(const RunTally& failed);

  // All bytes that this rank has read from the tier: for the warm-up, baselines, ceilings and repeats, and to
  // warm the cache.
  uint64_t bytes_read() const;

  Tier& tier;
  DeviceOrder physical_order;  // device offsets of the samples, for SampleOrder::physical
  std::unique_ptr<ReadEngine> engine;
  std::unique_ptr<Yardsticks> yardsticks;
  std::unique_ptr<CacheControl> cache;
  uint64_t passes_started = 0;  // passes that all ranks have started
  bool given_up = false;
  bool missing_baseline_reported = false;
  bool drop_failure_reported = false;
};

}  // namespace penstock
