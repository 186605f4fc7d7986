// A tier while a sweep reads it: its engine, its yardsticks and the cache before its repeats.
#pragma once

#include <cstdint>
#include <memory>

#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/yardsticks.hpp"
#include "datagen/cache/cache_control.hpp"
#include "datagen/reading/physical_places.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// One thread. Stays where it is: its parts refer to each other.
struct ReadTier {
  explicit ReadTier(Tier& of) : tier(of) {}
  ReadTier(const ReadTier&) = delete;
  ReadTier& operator=(const ReadTier&) = delete;

  // Before anything is read. Borrows all of it. Of SampleOrder::physical, looks where each sample is.
  Result<void> open(const Manifest& manifest, const SampleList& samples, const ReadOptions& options,
                    const RankShare& share);

  // Once, that the cache could not be dropped, or that there is no baseline.
  void report_fallback();
  void report_no_baseline(const RunTally& failed);

  // All payload bytes that this rank read so far: warm-up, baseline, ceilings, warming and repeats.
  std::uint64_t bytes_read() const;

  Tier& tier;
  PhysicalPlaces physical;  // of SampleOrder::physical
  std::unique_ptr<ReadEngine> engine;
  std::unique_ptr<Yardsticks> yardsticks;
  std::unique_ptr<CacheControl> cache;
  std::uint64_t passes = 0;  // that all ranks have started
  bool given_up = false;
  bool baseline_reported = false;
  bool fallback_reported = false;
};

}  // namespace penstock
