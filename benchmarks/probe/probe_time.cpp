#include "benchmarks/probe/probe_time.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "benchmarks/probe/write_probe.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/files/page_cache.hpp"

namespace penstock {
namespace {

constexpr uint64_t kLookBytes = 16U << 20U;
constexpr std::chrono::milliseconds kLongestWriteLook{500};
// A look is short: the tier may be slower when more is written, and faster with more clients.
constexpr double kFasterThanLook = 0.5;
constexpr double kSlowerThanLook = 2;
constexpr double kLeastLoops = 4;  // loops that are tried to find the best one
constexpr double kMostLoops = 5;
// All calls of a metadata probe take this often the time of a repeat.
constexpr TimeRange kMetadataFactor{4.1, 5.5};

TimeRange scaled_look(double seconds, double factor) {
  return {kFasterThanLook * factor * seconds, kSlowerThanLook * factor * seconds};
}

}  // namespace

ProbeSpeed estimate_speed(Tier& tier, const ProbeSettings& settings, const std::string& object) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  ProbeSpeed speed;
  const uint64_t bytes = std::min(kLookBytes, settings.bytes);
  const WriteShape shape{.object_bytes = bytes, .block_bytes = std::min<uint64_t>(bytes, 1U << 20U)};
  WriteProbe probe(
      *tier.backend, shape, [&](uint64_t) { return object; }, [&](unsigned) { return settings.seed; });
  ReadSpec spec{.threads = 1, .max_passes = 1};
  spec.end = Duration{kLongestWriteLook};
  const RunTally written = probe.run(spec);
  if (!written.failure && written.bytes > 0) {
    const double factor = double(settings.bytes) / double(written.bytes);
    speed.write_s = scaled_look(written.wall_s, factor);
    if (const auto path = tier.backend->native_path(object); path && settings.cache == CacheRequest::cold) {
      const Clock::time_point start = Clock::now();
      static_cast<void>(evict(*path));
      static_cast<void>(residency(*path));
      speed.prepare_s = scaled_look(since(start), factor);
    }
    Buffer buffer(written.bytes);
    const Clock::time_point start = Clock::now();
    const auto reader = tier.backend->open(object);
    if (reader.ok() && (*reader)->read_at(0, buffer.first(written.bytes)).ok())
      speed.read_s = scaled_look(since(start), factor);
  }
  if (tier.facts.memory || tier.backend->caps().bypasses_cache || settings.cache == CacheRequest::asis)
    speed.prepare_s = {0, 0.01};
  static_cast<void>(probe.remove());
  return speed;
}

TimeRange probe_time(std::string_view kind, const ProbeSettings& settings, const ProbeSpeed& speed) {
  const double wanted_s = std::chrono::duration<double>(settings.min_time).count();
  const auto repeats = double(settings.repeats);
  const auto most_writes_s = [&](double pass_s) {
    return std::min(wanted_s, double(WriteProbe::kMostPasses) * pass_s);
  };
  // The first pass is not counted. A repeat ends with a sync of what is written.
  const TimeRange writes{
      std::min(wanted_s, speed.write_s.low_s) + repeats * most_writes_s(speed.write_s.low_s),
      std::min(wanted_s, speed.write_s.high_s) +
          repeats * (most_writes_s(speed.write_s.high_s) + std::min(wanted_s, 0.5 * speed.write_s.high_s))};
  // The cache is prepared before each pass.
  const double most_passes = std::ceil(wanted_s / std::max(1e-3, speed.read_s.low_s));
  const TimeRange read{wanted_s + speed.prepare_s.low_s, wanted_s + most_passes * speed.prepare_s.middle_s()};
  if (kind == kProbeFiles) return writes + TimeRange{0, speed.write_s.high_s};
  if (kind == kProbeWrites) return writes;
  if (kind == kProbeMetadata) return repeats * wanted_s * kMetadataFactor;
  if (kind == kProbeBestLoops)
    return {(kLeastLoops + repeats) * read.low_s, (kMostLoops + repeats) * read.high_s};
  return repeats * read;
}

}  // namespace penstock
