#include "benchmarks/read/read_tier.hpp"

#include <fmt/format.h>

#include <utility>

namespace penstock {

Result<void> ReadTier::open(const Manifest& manifest, const SampleList& samples, const ReadOptions& options,
                            const RankShare& share) {
  if (options.order == SampleOrder::physical) {
    PENSTOCK_ASSIGN(physical_order, device_order(samples, *tier.backend));
  }
  const ReadWork work{.manifest = &manifest,
                      .samples = &samples,
                      .backend = tier.backend.get(),
                      .offsets = &physical_order.sample_keys,
                      .share = share};
  PENSTOCK_ASSIGN(engine, ReadEngine::make(work, options));
  yardsticks = std::make_unique<Yardsticks>(work, options);
  cache = std::make_unique<CacheControl>(tier, manifest, samples, options.cache, options.cold_method,
                                         options.most_threads());
  return success();
}

std::string ReadTier::cache_not_dropped_warning() {
  if (cache->drop_error().empty() || std::exchange(drop_failure_reported, true)) return "";
  const bool bypasses_cache = tier.backend->caps().bypasses_cache;
  return fmt::format("{}: {}; {}", tier.name, cache->drop_error(),
                     bypasses_cache
                         ? "data reads still bypass the page cache, and the metadata stays cached"
                         : "the files of the corpus are evicted one by one instead, and the metadata stays "
                           "warm");
}

std::string ReadTier::no_baseline_warning(const RunTally& failed) {
  if (std::exchange(missing_baseline_reported, true)) return "";
  return fmt::format("no baseline for '{}': {}", tier.name,
                     failed.failure ? failed.failure->message() : "it read nothing");
}

uint64_t ReadTier::bytes_read() const {
  return tier.backend->moved_bytes().read + (yardsticks ? yardsticks->uncounted_bytes() : 0) +
         (cache ? cache->warmed_bytes() : 0);
}

}  // namespace penstock
