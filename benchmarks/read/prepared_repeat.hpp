// One repeat of a measurement: passes, each in the cache state that was asked for, until they have lasted
// long enough.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/read_team.hpp"
#include "datagen/cache/cache_control.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct RepeatPlan {
  std::string what{};  // for the progress line: "reading"
  ReadSpec spec{};     // of the whole repeat; its end does not count the ramp
  std::function<RunTally(const ReadSpec& pass, const ReadObserver& observer)> run{};
  ReadObserver observer{};                            // may be empty; counts from the start of the repeat
  std::function<void(std::string_view what)> note{};  // may be empty
};

struct RepeatFigures {
  RunTally tally;
  CacheState cache;               // before the first pass
  Verdict verdict = Verdict::ok;  // not_cold or not_warm, if that is what any pass was
  std::string reason;
  std::uint64_t read_call_bytes = 0;          // that crossed the back end's seam
  std::optional<std::uint64_t> device_bytes;  // that came from the device or server for the ranks
};

// Prepares, runs, and does so again while time is left to fill: only files that were evicted take more than
// one turn, since their passes must be evicted in between. What is not timed may take ten times as long as
// what is, and half a minute, before the repeat ends as it is. Absent when interrupted before anything was
// measured. Collective over the team, whose figures it returns.
std::optional<RepeatFigures> run_repeat(Tier& tier, CacheControl& cache, ReadTeam& team,
                                        const RepeatPlan& plan);

}  // namespace penstock
