#include "miniapps/checkpoint/drain_progress.hpp"

#include <fmt/format.h>

#include <utility>

#include "io_backends/core/cli/shell_quoting.hpp"

namespace penstock {
namespace {

uint64_t moved_bytes_of(const Tier* tier) {
  if (tier == nullptr) return 0;
  const MovedBytes moved = tier->backend->moved_bytes();
  return moved.written + moved.read;
}

}  // namespace

DrainProgress::DrainProgress(const Checkpointer& saver, const Tier& slow, const Tier* fast)
    : saver_(saver),
      slow_(slow),
      fast_(fast),
      slow_bytes_(moved_bytes_of(&slow)),
      fast_bytes_(moved_bytes_of(fast)) {
  const CheckpointCounts counts = saver.counts();
  drained_ = counts.drained;
  space_waits_ = counts.space_waits;
  failures_ = counts.drain_failures;
}

std::chrono::nanoseconds DrainProgress::stalled_for() {
  const auto now = std::chrono::steady_clock::now();
  const auto changes = [](uint64_t& last, uint64_t value) { return std::exchange(last, value) != value; };
  const CheckpointCounts counts = saver_.counts();
  const bool drained = changes(drained_, counts.drained);
  const bool slow_moved = changes(slow_bytes_, moved_bytes_of(&slow_));
  const bool fast_moved = changes(fast_bytes_, moved_bytes_of(fast_));
  const bool waited = changes(space_waits_, counts.space_waits);
  if (drained) failures_ = counts.drain_failures;
  const bool moved = slow_moved || (fast_moved && !waited);
  if (drained || (moved && counts.drain_failures == failures_)) last_progress_ = now;
  return now - last_progress_;
}

std::string drain_command(const Tier& fast, const Tier& slow, std::string_view run) {
  return fmt::format("penstock checkpoint drain {} {} --run {}", shell_word(fast.spec), shell_word(slow.spec),
                     shell_word(run));
}

}  // namespace penstock
