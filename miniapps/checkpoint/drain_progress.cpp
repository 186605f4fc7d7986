#include "miniapps/checkpoint/drain_progress.hpp"

#include <fmt/format.h>

#include <utility>

#include "io_backends/core/cli/shell_quoting.hpp"

namespace penstock {
namespace {

uint64_t moved_bytes_of(const Tier& slow, const Tier* fast) {
  uint64_t bytes = 0;
  for (const Tier* tier : {&slow, fast}) {
    if (tier == nullptr) continue;
    const MovedBytes moved = tier->backend->moved_bytes();
    bytes += moved.written + moved.read;
  }
  return bytes;
}

}  // namespace

DrainProgress::DrainProgress(const Checkpointer& saver, const Tier& slow, const Tier* fast)
    : saver_(saver), slow_(slow), fast_(fast), moved_bytes_(moved_bytes_of(slow, fast)) {
  const CheckpointCounts counts = saver.counts();
  drained_ = counts.drained;
  failures_ = counts.drain_failures;
}

std::chrono::nanoseconds DrainProgress::stalled_for() {
  const auto now = std::chrono::steady_clock::now();
  const CheckpointCounts counts = saver_.counts();
  const bool drained = std::exchange(drained_, counts.drained) != counts.drained;
  const uint64_t bytes_now = moved_bytes_of(slow_, fast_);
  const bool moved = std::exchange(moved_bytes_, bytes_now) != bytes_now;
  if (drained) failures_ = counts.drain_failures;
  if (drained || (moved && counts.drain_failures == failures_)) last_progress_ = now;
  return now - last_progress_;
}

std::string drain_command(const Tier& fast, const Tier& slow, std::string_view run) {
  return fmt::format("penstock checkpoint drain {} {} --run {}", shell_word(fast.spec), shell_word(slow.spec),
                     shell_word(run));
}

}  // namespace penstock
