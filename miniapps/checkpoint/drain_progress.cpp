#include "miniapps/checkpoint/drain_progress.hpp"

#include <fmt/format.h>

#include <utility>

#include "io_backends/core/cli/shell_quoting.hpp"

namespace penstock {

DrainProgress::DrainProgress(const Checkpointer& saver, const Tier& slow)
    : saver_(saver), slow_(slow), written_bytes_(slow.backend->moved_bytes().written) {
  const CheckpointCounts counts = saver.counts();
  drained_ = counts.drained;
  failures_ = counts.drain_failures;
}

std::chrono::nanoseconds DrainProgress::stalled_for() {
  const auto now = std::chrono::steady_clock::now();
  const CheckpointCounts counts = saver_.counts();
  const bool drained = std::exchange(drained_, counts.drained) != counts.drained;
  const uint64_t bytes_now = slow_.backend->moved_bytes().written;
  const bool written = std::exchange(written_bytes_, bytes_now) != bytes_now;
  if (drained) failures_ = counts.drain_failures;
  if (drained || (written && counts.drain_failures == failures_)) last_progress_ = now;
  return now - last_progress_;
}

std::string drain_command(const Tier& fast, const Tier& slow, std::string_view run) {
  return fmt::format("penstock checkpoint drain {} {} --run {}", shell_word(fast.spec), shell_word(slow.spec),
                     shell_word(run));
}

}  // namespace penstock
