// How long the probes of `tiers --probe` are expected to take.
#pragma once

#include <string>
#include <string_view>

#include "benchmarks/probe/tier_probe.hpp"
#include "io_backends/core/time_range.hpp"

namespace penstock {

// The kinds of probes, which are the parts of the time plan. The first is needed by the others; the last is
// the first to be left out.
inline constexpr std::string_view kProbeFiles = "files";
inline constexpr std::string_view kProbeSequentialReads = "sequential reads";
inline constexpr std::string_view kProbeSmallFileReads = "small-file reads";
inline constexpr std::string_view kProbeRandomReads = "random reads";
inline constexpr std::string_view kProbeBestLoops = "best loops";
inline constexpr std::string_view kProbeWrites = "writes";
inline constexpr std::string_view kProbeMetadata = "metadata";
inline constexpr std::string_view kProbeKinds[] = {
    kProbeFiles,     kProbeSequentialReads, kProbeSmallFileReads, kProbeRandomReads,
    kProbeBestLoops, kProbeWrites,          kProbeMetadata};

// How fast a tier is, roughly: seconds to write and to read `ProbeSettings::bytes`, and to make them cold.
struct ProbeSpeed {
  TimeRange write_s{0.1, 5};
  TimeRange read_s{0.05, 2};
  TimeRange prepare_s{0.005, 0.2};
};

// Writes and reads a small object, which it removes again. What fails keeps its wide range.
ProbeSpeed estimate_speed(Tier& tier, const ProbeSettings& settings, const std::string& object);

// The time of one probe of this kind.
TimeRange probe_time(std::string_view kind, const ProbeSettings& settings, const ProbeSpeed& speed);

}  // namespace penstock
