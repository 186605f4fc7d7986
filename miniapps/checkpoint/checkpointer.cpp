#include "miniapps/checkpoint/checkpointer.hpp"

#include <algorithm>
#include <array>
#include <system_error>
#include <thread>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/drainer.hpp"
#include "miniapps/checkpoint/run_stores.hpp"
#include "miniapps/checkpoint/save_together.hpp"
#include "miniapps/checkpoint/snapshot_writer.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;
using Memory = SnapshotWriter::State;

constexpr std::chrono::milliseconds kPollInterval{50};  // how often one that waits looks again

class TieredCheckpointer final : public Checkpointer {
 public:
  TieredCheckpointer(const CheckpointPolicy& policy, Communicator& ranks, Acknowledged acknowledged)
      : policy_(policy), ranks_(ranks), ledger_(std::move(acknowledged)) {}

  Result<void> begin(const Tier& slow, const Tier* fast);
  Result<Saved> save(const SaveRequest& request) override;
  Result<void> wait(const CheckpointId& id, Reached level, std::chrono::nanoseconds patience) override;
  Result<void> finalize(std::chrono::nanoseconds patience) override;
  CheckpointCounts counts() const override { return ledger_.counts(); }
  std::vector<CheckpointTimes> times() const override { return ledger_.times(); }
  double now_s() const override { return ledger_.now_s(); }

 private:
  Result<void> open_as_root(const Tier& slow, const Tier* fast);
  Result<void> begin_snapshots();
  Result<void> healthy();
  Result<void> settled(const CheckpointId& id, Reached level, Clock::time_point until, bool stoppable);

  // Of policy.snapshot.
  enum class Wait : std::uint8_t { never, until_stopped, through_signals };
  Result<bool> clear_memory(Clock::time_point until, Wait wait);
  Result<void> write_again(Clock::time_point until);

  const CheckpointPolicy policy_;
  Communicator& ranks_;
  CheckpointLedger ledger_;
  RunStores stores_;
  std::unique_ptr<Drainer> drainer_;  // rank 0's, where there is a fast tier
  std::optional<SaveTogether> together_;
  std::unique_ptr<SnapshotWriter> snapshots_;  // last: its thread uses all of the rest
};

Result<void> TieredCheckpointer::open_as_root(const Tier& slow, const Tier* fast) {
  PENSTOCK_TRY(check_run_name(policy_.run));
  if (policy_.keep == 0) return make_error(Errc::invalid_argument, "at least one checkpoint is to be kept");
  PENSTOCK_ASSIGN(stores_, take_run(policy_.run, slow, fast));
  if (fast == nullptr) return success();
  drainer_ = std::make_unique<Drainer>(policy_, *stores_.fast, *stores_.slow, ledger_);
  return drainer_->begin();
}

Result<void> TieredCheckpointer::begin_snapshots() {
  if (!policy_.snapshot) return success();
  try {
    snapshots_ =
        std::make_unique<SnapshotWriter>([this](SaveWork& work) { return together_->write_snapshot(work); },
                                         [this](Error error) { ledger_.fail(std::move(error)); });
  } catch (const std::system_error& failure) {
    return no_more_threads(failure, 1);
  }
  together_->use(*snapshots_);
  return success();
}

Result<void> TieredCheckpointer::begin(const Tier& slow, const Tier* fast) {
  PENSTOCK_TRY(outcome_of_root(ranks_, ranks_.root() ? open_as_root(slow, fast) : success()));
  const auto follow = [&]() -> Result<void> {
    if (!ranks_.root()) {
      PENSTOCK_ASSIGN(stores_, see_run(slow, fast));
    }
    together_.emplace(policy_, ranks_, stores_, ledger_, drainer_.get());
    return begin_snapshots();
  };
  return agree(ranks_, follow());
}

Result<void> TieredCheckpointer::healthy() {
  return agree(ranks_, ledger_.failure());
}

Result<Saved> TieredCheckpointer::save(const SaveRequest& request) {
  const double asked_s = ledger_.now_s();
  const Clock::time_point since = Clock::now();
  const Clock::time_point until = after(policy_.block_for);
  PENSTOCK_ASSIGN(const bool taken,
                  clear_memory(until, policy_.on_full == OnFull::block ? Wait::until_stopped : Wait::never));
  PENSTOCK_TRY(healthy());
  PENSTOCK_ASSIGN(SaveWork work, together_->work_of(request));
  work.until = until;
  work.asked_s = asked_s;
  work.memory_taken = taken;
  const bool from_memory = policy_.snapshot && !taken;
  PENSTOCK_ASSIGN(const bool written, together_->write(work, from_memory));
  Saved saved{.id = work.id, .skipped = !written};
  if (written && !from_memory) saved.reached = work.fast ? Reached::fast : Reached::durable;
  double block_s = std::chrono::duration<double>(Clock::now() - since).count();
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&block_s, 1), Reduction::max));
  if (ranks_.root()) ledger_.blocked(saved.id, block_s);
  return saved;
}

// Collective. Waits until the thread has written the last snapshot, with free space for it; true where it has
// not and `wait` is never. A rank without free space, or that failed, leaves the others' threads
// waiting for its part: hence all ranks look together.
Result<bool> TieredCheckpointer::clear_memory(Clock::time_point until, Wait wait) {
  if (snapshots_ == nullptr) return false;
  for (;;) {
    const Clock::time_point now = Clock::now();
    const Memory mine =
        snapshots_->look(wait != Wait::never && until > now ? std::min(until, now + kPollInterval) : now);
    std::array<std::uint64_t, 5> any{mine == Memory::busy, mine == Memory::full, mine == Memory::failed,
                                     Clock::now() >= until, interrupted()};
    PENSTOCK_TRY(ranks_.all_reduce(std::span(any), Reduction::max));
    const auto [busy, full, failed, late, stopped] = any;
    if (busy == 0) {
      if (failed != 0) snapshots_->abandon();
      if (failed != 0 || full == 0) return false;
      PENSTOCK_TRY(write_again(until));
      return false;
    }
    if (full != 0 || failed != 0) snapshots_->give_up();
    if (wait == Wait::never) return true;
    const std::string what = "the checkpoint of step " + std::to_string(snapshots_->taken_id().step) +
                             " is still on its way from memory";
    if (wait == Wait::until_stopped && stopped != 0)
      return make_error(Errc::interrupted, "stopped while " + what);
    if (late != 0)
      return make_error(Errc::timed_out, what +
                                             ": wait longer, save less often, or leave checkpoints out "
                                             "(--on-full skip)");
  }
}

// Collective: the tier was full when the snapshot was to be written. Its bytes are still in memory on all
// ranks, and it is treated as any other that finds no room. Where that takes too long they stay there.
Result<void> TieredCheckpointer::write_again(Clock::time_point until) {
  SaveWork& work = snapshots_->taken();
  work.until = until;
  work.was_full = work.fast;
  work.known = true;
  const Result<bool> written = together_->write(work, false);
  const bool stays =
      !written.ok() && (written.error().code == Errc::timed_out || written.error().code == Errc::interrupted);
  if (stays) return written.error();
  snapshots_->abandon();
  if (written.ok()) return success();
  Error error = written.error();
  error.what =
      "the checkpoint of step " + std::to_string(work.id.step) + " was lost with its snapshot: " + error.what;
  if (error.code == Errc::no_space)
    error.what += " (make room there, keep fewer, or save through a fast tier with --on-full block)";
  ledger_.fail(error);
  return error;
}

// Rank 0's part of waiting: until what is asked of that checkpoint holds.
Result<void> TieredCheckpointer::settled(const CheckpointId& id, Reached level, Clock::time_point until,
                                         bool stoppable) {
  for (;;) {
    PENSTOCK_TRY(ledger_.failure());
    const std::vector<CheckpointTimes> all = ledger_.times();
    const auto at =
        std::find_if(all.rbegin(), all.rend(), [&](const CheckpointTimes& one) { return one.id == id; });
    if (at == all.rend())
      return make_error(Errc::not_found, "no such checkpoint was saved: step " + std::to_string(id.step));
    if (at->skipped)
      return make_error(Errc::no_space, "the checkpoint of step " + std::to_string(id.step) + " was skipped");
    if (at->durable_s || (level == Reached::fast && at->fast_s) || level == Reached::nothing)
      return success();
    if (stoppable) PENSTOCK_TRY(check_interrupt());
    if (Clock::now() >= until) {
      const std::optional<Error> trouble = drainer_ == nullptr ? std::nullopt : drainer_->trouble();
      return make_error(Errc::timed_out, "the checkpoint of step " + std::to_string(id.step) + " is not " +
                                             std::string(reached_name(level)) + " yet" +
                                             (trouble ? "; the drain says: " + trouble->message() : ""));
    }
    const Clock::time_point look = std::min(until, Clock::now() + kPollInterval);
    if (drainer_ != nullptr && !drainer_->idle()) {
      drainer_->wait_for_progress(look);
    } else if (snapshots_ == nullptr || snapshots_->look(look) != Memory::busy) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

Result<void> TieredCheckpointer::wait(const CheckpointId& id, Reached level,
                                      std::chrono::nanoseconds patience) {
  const Clock::time_point until = after(patience);
  if (snapshots_ != nullptr && snapshots_->has_taken(id)) {
    PENSTOCK_ASSIGN([[maybe_unused]] const bool taken, clear_memory(until, Wait::until_stopped));
  }
  return outcome_of_root(ranks_, ranks_.root() ? settled(id, level, until, true) : success());
}

Result<void> TieredCheckpointer::finalize(std::chrono::nanoseconds patience) {
  const Clock::time_point until = after(patience);
  PENSTOCK_ASSIGN([[maybe_unused]] const bool taken, clear_memory(until, Wait::through_signals));
  PENSTOCK_TRY(healthy());
  const auto drained = [&]() -> Result<void> {
    if (!ranks_.root() || drainer_ == nullptr) return success();
    while (!drainer_->idle()) {
      PENSTOCK_TRY(ledger_.failure());
      if (Clock::now() >= until) {
        const std::optional<Error> trouble = drainer_->trouble();
        return make_error(Errc::timed_out, format_size(ledger_.counts().backlog_bytes) + " on '" +
                                               stores_.fast->tier().name +
                                               "' are not durable yet; `penstock checkpoint drain` goes on" +
                                               (trouble ? "; the drain says: " + trouble->message() : ""));
      }
      drainer_->wait_for_progress(std::min(until, Clock::now() + kPollInterval));
    }
    return ledger_.failure();
  };
  return outcome_of_root(ranks_, drained());
}

}  // namespace

Result<std::unique_ptr<Checkpointer>> Checkpointer::open(const CheckpointPolicy& policy, const Tier& slow,
                                                         const Tier* fast, Communicator& ranks,
                                                         Acknowledged acknowledged) {
  auto made = std::make_unique<TieredCheckpointer>(policy, ranks, std::move(acknowledged));
  PENSTOCK_TRY(made->begin(slow, fast));
  return std::unique_ptr<Checkpointer>(std::move(made));
}

}  // namespace penstock
