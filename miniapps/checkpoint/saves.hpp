// What is asked of a run's checkpoints, and what became of each: the types that Checkpointer and all that
// works for it share.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "miniapps/checkpoint/checkpoint_manifest.hpp"

namespace penstock {

enum class Reached : std::uint8_t { nothing, fast, durable };
std::string_view reached_name(Reached level);

// What to do where the fast tier has no room: wait for the drain, leave this checkpoint out, or write it to
// the slow tier at once. A checkpoint that is larger than the fast tier: to the slow tier, or an error.
enum class OnFull : std::uint8_t { block, skip, writethrough };
enum class Oversize : std::uint8_t { writethrough, fail };
// By the words of --on-full and --oversize, which the options' tables have checked.
constexpr OnFull on_full_of(std::string_view word) {
  if (word == "skip") return OnFull::skip;
  return word == "writethrough" ? OnFull::writethrough : OnFull::block;
}
constexpr Oversize oversize_of(std::string_view word) {
  return word == "fail" ? Oversize::fail : Oversize::writethrough;
}

struct CheckpointPolicy {
  std::string run = "default";
  std::uint64_t keep = 2;       // durable ones on the slow tier, the newest included; at least 2 unless all
                                // are verified anew before one goes
  std::uint64_t keep_fast = 1;  // durable ones that stay on the fast tier until their room is wanted
  OnFull on_full = OnFull::block;
  std::chrono::nanoseconds block_for = std::chrono::minutes(10);  // then the save fails: timed_out
  Oversize oversize = Oversize::writethrough;
  std::uint64_t headroom = 0;  // bytes of the fast tier that stay free
  std::uint64_t quota = 0;     // bytes that this run may have on the fast tier; 0: all
  bool read_back = false;      // drained copies are read again before they count
  bool snapshot = false;       // save() copies to memory and returns; a thread writes
  std::chrono::nanoseconds retry_after = std::chrono::seconds(1);  // of a drain that failed; doubles to 30 s
};

struct FileView {
  std::string name;
  std::span<const std::byte> bytes;
};

// What this rank saves. Its bytes may change as soon as save() has returned.
struct SaveRequest {
  std::uint64_t step = 0;
  std::vector<FileView> files{};
  TrainerState trainer{};
  std::string payload{};
  std::uint64_t payload_seed = 0;
};

// Times in seconds since the Checkpointer was opened; of rank 0, which for block_s takes the slowest rank's.
struct CheckpointTimes {
  CheckpointId id{};
  std::uint64_t bytes = 0;
  double asked_s = 0;              // save() was called
  double block_s = 0;              // how long it held the training
  std::optional<double> fast_s{};  // from asked_s until acknowledged at that level
  std::optional<double> durable_s{};
  std::optional<double> drain_begin_s{};  // absolute, of the attempt that succeeded
  std::optional<double> drain_s{};        // its length
  bool skipped = false;
};

struct CheckpointCounts {
  std::uint64_t saves = 0, skips = 0, written_through = 0, drained = 0, drain_failures = 0, evicted = 0,
                pruned = 0, quarantined = 0;
  std::uint64_t backlog_bytes = 0, backlog_most = 0;  // on the fast tier and not durable
};

}  // namespace penstock
