#include "miniapps/checkpoint/admission.hpp"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSignalPollInterval{50};  // how often one that waits looks for a signal

}  // namespace

Clock::time_point after(std::chrono::nanoseconds patience) {
  const Clock::time_point now = Clock::now();
  return patience > Clock::time_point::max() - now ? Clock::time_point::max() : now + patience;
}

// Whether the fast tier would take it if all went that can go.
Result<bool> Admission::fits_ever(std::uint64_t bytes) const {
  if (policy_.quota != 0 && bytes > policy_.quota) return false;
  PENSTOCK_ASSIGN(const std::uint64_t most, fast_->room_if_all_went());
  return most >= bytes && most - bytes >= policy_.headroom;
}

// Null where there is no room now.
Result<std::unique_ptr<Staged>> Admission::stage_fast(std::uint64_t bytes) {
  if (policy_.quota != 0 && drainer_->held().bytes + bytes > policy_.quota) return std::unique_ptr<Staged>();
  Result<std::unique_ptr<Staged>> staged = fast_->stage(policy_.run, "save", bytes, policy_.headroom);
  if (!staged.ok() && staged.error().code == Errc::no_space) return std::unique_ptr<Staged>();
  return staged;
}

// Until a drain has ended, which may have made some; false when the time is over.
Result<bool> Admission::wait_for_room(Clock::time_point until) {
  PENSTOCK_TRY(check_interrupt());
  PENSTOCK_TRY(ledger_.failure());
  const Clock::time_point now = Clock::now();
  if (now >= until) return false;
  const Clock::time_point look = until - now > kSignalPollInterval ? now + kSignalPollInterval : until;
  // Others that have the room say nothing when they leave it.
  if (drainer_->idle())
    std::this_thread::sleep_until(look);
  else
    drainer_->wait_for_progress(look);
  return true;
}

Result<Admitted> Admission::write_through(std::uint64_t bytes) {
  PENSTOCK_ASSIGN(std::unique_ptr<Staged> staged, slow_.stage(policy_.run, "save", bytes, 0));
  if (fast_ != nullptr) ledger_.count([](CheckpointCounts& counts) { ++counts.written_through; });
  return Admitted{.fast = false, .staged = std::move(staged)};
}

Error Admission::stayed_full() const {
  const std::optional<Error> trouble = drainer_->trouble();
  return make_error(Errc::timed_out,
                    "the fast tier '" + fast_->tier().name + "' stayed full for " +
                        format_seconds(std::chrono::duration<double>(policy_.block_for).count()) +
                        (trouble ? "; the drain says: " + trouble->message() : ""));
}

Result<Admitted> Admission::admit(std::uint64_t bytes, bool was_full, Clock::time_point until) {
  if (fast_ == nullptr) return write_through(bytes);
  bool known_to_fit = was_full;
  for (bool look = !was_full;; look = true) {
    if (look) {
      PENSTOCK_ASSIGN(std::unique_ptr<Staged> staged, stage_fast(bytes));
      if (staged != nullptr) return Admitted{.fast = true, .staged = std::move(staged)};
    }
    if (!known_to_fit) {
      PENSTOCK_ASSIGN(known_to_fit, fits_ever(bytes));
      if (!known_to_fit) return oversized(bytes);
    }
    PENSTOCK_ASSIGN(const bool went, drainer_->evict_one());
    if (went) continue;
    if (policy_.on_full == OnFull::skip) return Admitted{};
    if (policy_.on_full == OnFull::writethrough) return write_through(bytes);
    PENSTOCK_ASSIGN(const bool more, wait_for_room(until));
    if (!more) return stayed_full();
  }
}

Result<Admitted> Admission::oversized(std::uint64_t bytes) {
  if (policy_.oversize == Oversize::writethrough) return write_through(bytes);
  return make_error(Errc::no_space, "a checkpoint of " + format_size(bytes) +
                                        " is more than the fast tier '" + fast_->tier().name +
                                        "' can hold: --oversize writethrough sends it to '" +
                                        slow_.tier().name + "'");
}

}  // namespace penstock
