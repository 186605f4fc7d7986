#include "miniapps/checkpoint/save_together.hpp"

#include <unistd.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/core/utc_time.hpp"
#include "miniapps/checkpoint/retention.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSignalPollInterval{50};  // how often one that waits looks for a signal

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return "penstock " + std::string(build_info().version) + ", process " + std::to_string(::getpid()) +
         " on " + host.data();
}

}  // namespace

Clock::time_point after(std::chrono::nanoseconds patience) {
  const Clock::time_point now = Clock::now();
  return patience > Clock::time_point::max() - now ? Clock::time_point::max() : now + patience;
}

// One that is still on its way from memory has its generation, too, and keeps it when it is tried again.
Result<std::uint64_t> SaveTogether::next_generation(const SaveWork& work) const {
  for (CheckpointId id{.step = work.id.step};; ++id.generation) {
    PENSTOCK_ASSIGN(bool taken, stores_.slow->has(policy_.run, id));
    if (!taken && stores_.fast != nullptr) {
      PENSTOCK_ASSIGN(taken, stores_.fast->has(policy_.run, id));
    }
    if (!taken && !work.known && in_memory_ != nullptr) taken = in_memory_->has_taken(id);
    if (!taken) return id.generation;
  }
}

// Rank 0's part of agree_on(). A try that fails leaves the work's id and tier as they were: the next try has
// to know which tier was full, and by which id the ledger knows the work.
Result<void> SaveTogether::choose(SaveWork& work) {
  PENSTOCK_ASSIGN(const std::uint64_t generation, next_generation(work));
  const bool was_fast = std::exchange(work.fast, false);
  work.skipped = work.memory_taken && policy_.on_full == OnFull::skip;
  if (!work.skipped) {
    if (const Result<void> room = work.memory_taken ? write_through(work) : admit(work); !room.ok()) {
      work.fast = was_fast;
      return room;
    }
  }
  work.id.generation = generation;
  work.folder = work.staged == nullptr ? "" : work.staged->folder();
  return success();
}

// Collective: where the save goes is rank 0's decision, which all follow. What an earlier try made is removed
// before room is looked for: it may be what takes the room.
Result<void> SaveTogether::agree_on(SaveWork& work) {
  work.staged.reset();
  PENSTOCK_TRY(outcome_of_root(ranks_, ranks_.root() ? choose(work) : success()));
  const std::vector<std::uint8_t> chosen = nlohmann::json::to_cbor(
      nlohmann::json::array({work.skipped, work.fast, work.id.generation, work.folder}));
  const auto said = std::as_bytes(std::span(chosen));
  std::vector<std::byte> bytes(said.begin(), said.end());  // of rank 0; the others' are replaced
  PENSTOCK_TRY(ranks_.broadcast(bytes));
  const nlohmann::json all = nlohmann::json::from_cbor(bytes);
  all[0].get_to(work.skipped);
  all[1].get_to(work.fast);
  all[2].get_to(work.id.generation);
  all[3].get_to(work.folder);
  work.manifest.id = work.id;
  return success();
}

// Whether the fast tier would take it if all went that can go.
Result<bool> SaveTogether::fits_ever(std::uint64_t bytes) const {
  if (policy_.quota != 0 && bytes > policy_.quota) return false;
  PENSTOCK_ASSIGN(const std::uint64_t most, stores_.fast->room_if_all_went());
  return most >= bytes && most - bytes >= policy_.headroom;
}

// False where there is no room now.
Result<bool> SaveTogether::take_fast_room(SaveWork& work) {
  if (policy_.quota != 0 && drainer_->held_bytes() + work.bytes > policy_.quota) return false;
  Result<std::unique_ptr<Staged>> staged =
      stores_.fast->stage(policy_.run, "save", work.bytes, policy_.headroom);
  if (!staged.ok() && staged.error().code == Errc::no_space) return false;
  PENSTOCK_ASSIGN(work.staged, std::move(staged));
  work.fast = true;
  return true;
}

// Until a drain has ended, which may have made some; false when the time is over.
Result<bool> SaveTogether::wait_for_room(Clock::time_point until) {
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

// To the slow tier, whatever room the fast one has.
Result<void> SaveTogether::write_through(SaveWork& work) {
  PENSTOCK_ASSIGN(work.staged, stores_.slow->stage(policy_.run, "save", work.bytes, 0));
  work.fast = false;
  if (stores_.fast != nullptr) ledger_.count([](CheckpointCounts& counts) { ++counts.written_through; });
  return success();
}

Error SaveTogether::stayed_full() const {
  const std::optional<Error> trouble = drainer_->trouble();
  return make_error(Errc::timed_out,
                    "the fast tier '" + stores_.fast->tier().name + "' stayed full for " +
                        format_seconds(std::chrono::duration<double>(policy_.block_for).count()) +
                        (trouble ? "; the drain says: " + trouble->message() : ""));
}

// Durable copies make room, the oldest first; then the policy decides. Waiting ends with timed_out, and with
// interrupted.
Result<void> SaveTogether::admit(SaveWork& work) {
  if (stores_.fast == nullptr) return write_through(work);
  bool known_to_fit = work.was_full;
  for (bool look = !work.was_full;; look = true) {
    if (look) {
      PENSTOCK_ASSIGN(const bool taken, take_fast_room(work));
      if (taken) return success();
    }
    if (!known_to_fit) {
      PENSTOCK_ASSIGN(known_to_fit, fits_ever(work.bytes));
      if (!known_to_fit) return send_oversized(work);
    }
    PENSTOCK_ASSIGN(const bool went, drainer_->evict_one());
    if (went) continue;
    work.skipped = policy_.on_full == OnFull::skip;
    if (work.skipped) return success();
    if (policy_.on_full == OnFull::writethrough) return write_through(work);
    PENSTOCK_ASSIGN(const bool more, wait_for_room(work.until));
    if (!more) return stayed_full();
  }
}

Result<void> SaveTogether::send_oversized(SaveWork& work) {
  if (policy_.oversize == Oversize::writethrough) return write_through(work);
  return make_error(Errc::no_space, "a checkpoint of " + format_size(work.bytes) +
                                        " is more than the fast tier '" + stores_.fast->tier().name +
                                        "' can hold: --oversize writethrough sends it to '" +
                                        stores_.slow->tier().name + "'");
}

// Where the fast tier fills up during the writing, all ranks try again with what they know then.
Result<bool> SaveTogether::write(SaveWork& work, bool from_memory) {
  for (;; work.was_full = work.known = true) {
    const CheckpointId before = work.id;
    PENSTOCK_TRY(agree_on(work));
    if (ranks_.root())
      work.known ? ledger_.renamed(before, work.id) : ledger_.asked(work.id, work.bytes, work.asked_s);
    if (work.skipped) {
      if (ranks_.root()) ledger_.skipped(work.id);
      return false;
    }
    const Result<void> done = from_memory ? hand_over(work) : write_together(work);
    if (done.ok()) return true;
    // The same on all ranks: what one says, agree() tells all.
    if (done.error().code != Errc::no_space || !work.fast) return done.error();
  }
}

// The work that is handed over keeps what it says of itself.
Result<void> SaveTogether::hand_over(SaveWork& work) {
  PENSTOCK_TRY(agree(ranks_, in_memory_->make_room(work)));
  in_memory_->take(std::move(work));
  return success();
}

Result<void> SaveTogether::write_mine(SaveWork& work, std::vector<CheckpointFile>& written) {
  if (!ranks_.root()) {
    PENSTOCK_ASSIGN(work.staged, Staged::join(stores_.of(work.fast), work.folder));
  }
  const auto rank = static_cast<std::uint64_t>(ranks_.rank());
  for (const FileView& file : work.files) {
    PENSTOCK_ASSIGN(CheckpointFile entry, work.staged->write(file.name, rank, file.bytes));
    written.push_back(std::move(entry));
  }
  if (ranks_.size() > 1) PENSTOCK_TRY(work.staged->leave_part(rank, written));
  return success();
}

Result<void> SaveTogether::write_together(SaveWork& work) {
  std::vector<CheckpointFile> written;
  PENSTOCK_TRY(agree(ranks_, write_mine(work, written)));
  const auto commit = [&]() -> Result<void> {
    if (!ranks_.root()) return success();
    if (ranks_.size() > 1) {
      PENSTOCK_ASSIGN(written, work.staged->take_parts(static_cast<std::uint64_t>(ranks_.size())));
    }
    work.manifest.files = std::move(written);
    PENSTOCK_ASSIGN(const CheckpointManifest manifest, work.staged->commit(work.manifest));
    return committed(manifest, work.fast);
  };
  return outcome_of_root(ranks_, commit());
}

Result<void> SaveTogether::committed(const CheckpointManifest& manifest, bool fast) {
  ledger_.reached(manifest.id, fast ? Reached::fast : Reached::durable);
  stores_.of(fast).hint_latest(policy_.run, manifest.id);
  if (fast) {
    drainer_->add(manifest);
    return ledger_.failure();
  }
  // What is durable stays so, whether or not older ones can be removed now.
  const Result<std::uint64_t> pruned =
      prune_checkpoints(*stores_.slow, policy_.run, policy_.keep, manifest.id);
  if (pruned.ok())
    ledger_.count([&](CheckpointCounts& counts) { counts.pruned += *pruned; });
  else
    warn("cannot remove checkpoints that are no longer wanted: " + pruned.error().message());
  return ledger_.failure();
}

// As write_together(), but ranks find each other's parts in the folder: no collective call may run at the
// same time as the training's own.
Result<void> SaveTogether::write_snapshot(SaveWork& work) {
  std::vector<CheckpointFile> written;
  PENSTOCK_TRY(write_mine(work, written));
  if (!ranks_.root()) return success();
  for (const Clock::time_point until = after(policy_.block_for); ranks_.size() > 1;) {
    Result<std::vector<CheckpointFile>> parts =
        work.staged->take_parts(static_cast<std::uint64_t>(ranks_.size()));
    if (parts.ok()) {
      written = *std::move(parts);
      break;
    }
    if (parts.error().code != Errc::not_found) return std::move(parts).error();
    // Whichever rank has none says why itself, when all meet.
    if (in_memory_->given_up()) return make_error(Errc::no_space, "another rank has not written its part");
    PENSTOCK_TRY(check_interrupt());
    if (Clock::now() >= until) return std::move(parts).error();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  work.manifest.files = std::move(written);
  PENSTOCK_ASSIGN(const CheckpointManifest manifest, work.staged->commit(work.manifest));
  return committed(manifest, work.fast);
}

// Collective. Whether it can ever be read back is known before a byte is written.
Result<SaveWork> SaveTogether::work_of(const SaveRequest& request) {
  SaveWork work;
  work.files = request.files;
  work.id.step = request.step;
  work.manifest.run = policy_.run;
  work.manifest.ranks = static_cast<std::uint64_t>(ranks_.size());
  work.manifest.trainer = request.trainer;
  work.manifest.payload = request.payload;
  work.manifest.payload_seed = request.payload_seed;
  work.manifest.snapshot_time = utc_now();
  work.manifest.writer = this_process();
  std::array<std::uint64_t, 3> sums{0, 0, request.files.size()};
  for (const FileView& file : request.files) {
    sums[0] += file.bytes.size();
    sums[1] += manifest_entry_bytes(file.name, file.bytes.size());
  }
  PENSTOCK_TRY(ranks_.all_reduce(std::span(sums), Reduction::sum));
  work.bytes = sums[0];
  PENSTOCK_TRY(check_manifest_bytes(sums[0], sums[1], sums[2]));
  return work;
}

}  // namespace penstock
