// Threads: the training thread runs everything, with two exceptions. The snapshot thread runs
// write_snapshot() and all that this function calls. Any thread may call counts(), times() and now_s().
// Locks: none here. Ledger, drainer and snapshot writer have mutexes; CheckpointStore::stage() locks a file.
// Memory: every function may allocate.
// Ctrl-C: ends save() and wait() with `interrupted`; finalize() only while it retries a snapshot (full tier).
// Crash: a checkpoint is visible on a tier only when it is complete and synced (PendingCheckpoint::commit()).
// Then TieredCheckpointer::commit() acknowledges it and, on the slow tier, removes older ones.
#include "miniapps/checkpoint/checkpointer.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/core/utc_time.hpp"
#include "miniapps/checkpoint/drainer.hpp"
#include "miniapps/checkpoint/retention.hpp"
#include "miniapps/checkpoint/run_stores.hpp"
#include "miniapps/checkpoint/snapshot_writer.hpp"

namespace penstock {
namespace {
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollInterval{50};  // longest sleep of a waiting thread

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return "penstock " + std::string(build_info().version) + ", process " + std::to_string(::getpid()) +
         " on " + host.data();
}

// The time `patience` from now, or the latest time that the clock can represent.
Clock::time_point deadline_after(std::chrono::nanoseconds patience) {
  const Clock::time_point now = Clock::now();
  return patience > Clock::time_point::max() - now ? Clock::time_point::max() : now + patience;
}

// The state of one save on one rank.
struct SaveWork {
  CheckpointId id{};
  uint64_t bytes = 0;             // bytes of all ranks together
  std::vector<FileView> files{};  // the bytes to save: views of the caller's memory, or of the snapshot
  CheckpointManifest manifest{};  // used on rank 0; commit() adds the files
  double begin_s = 0;             // when save() was called, on the ledger's clock
  Clock::time_point until{};      // when to stop waiting for free space
  bool snapshot_busy = false;     // the last snapshot is still being written from memory
  bool was_full = false;          // an earlier try of this save found the fast tier full
  std::string full_reason{};      // why the fast tier was last found full
  bool in_ledger = false;
  // The destination of the save, which rank 0 chooses for all ranks.
  bool skipped = false;
  bool to_fast_tier = false;
  std::string folder{};                          // folder of the pending checkpoint
  std::unique_ptr<PendingCheckpoint> pending{};  // writes this rank's files
};

class TieredCheckpointer final : public Checkpointer {
 public:
  TieredCheckpointer(const CheckpointPolicy& policy, Communicator& ranks, OnReached on_reached)
      : policy_(policy), ranks_(ranks), ledger_(std::move(on_reached)) {}

  Result<void> begin(const Tier& slow, const Tier* fast);
  Result<CheckpointTimes> save(const SaveRequest& request) override;
  Result<void> wait(const CheckpointId& id, Reached level, std::chrono::nanoseconds patience) override;
  Result<void> finalize(std::chrono::nanoseconds patience) override;
  CheckpointCounts counts() const override { return ledger_.counts(); }
  std::vector<CheckpointTimes> times() const override { return ledger_.times(); }
  double now_s() const override { return ledger_.now_s(); }

 private:
  Result<void> open_as_root(const Tier& slow, const Tier* fast);
  Result<void> begin_snapshots();
  Result<void> wait_until_reached(const CheckpointId& id, Reached level, Clock::time_point until);

  // The steps of one save, on the training threads. All ranks run those up to write_and_commit(), rank 0 all.
  // For a snapshot, write_snapshot() calls write_own_files() and commit() on the snapshot thread.
  Result<SaveWork> work_of(const SaveRequest& request);
  Result<bool> write(SaveWork& work, bool from_memory);
  Result<void> agree_on_destination(SaveWork& work);
  Result<void> write_own_files(SaveWork& work, std::vector<CheckpointFile>& written);
  Result<void> write_and_commit(SaveWork& work);
  Result<void> commit(SaveWork& work, std::vector<CheckpointFile> files);

  Result<void> choose_destination(SaveWork& work);
  Result<uint64_t> next_generation(const SaveWork& work) const;
  Result<void> choose_tier(SaveWork& work);
  Result<void> use_slow_tier(SaveWork& work);
  Result<bool> fits_emptied_tier(uint64_t bytes) const;
  Result<void> reserve_fast_space(SaveWork& work);
  Result<void> wait_for_free_space(const SaveWork& work);

  // Without policy.by_snapshot, finish_last_snapshot() does nothing and the others are not called.
  Result<void> finish_last_snapshot(Clock::time_point until, bool interruptible);
  Result<void> retry_snapshot(Clock::time_point until);
  Result<void> take_snapshot(SaveWork& work);
  Result<void> write_snapshot(const std::atomic<bool>& given_up);

  const CheckpointPolicy policy_;
  Communicator& ranks_;
  CheckpointLedger ledger_;
  RunStores stores_;
  std::unique_ptr<Drainer> drainer_;         // only on rank 0, and only with a fast tier
  SaveWork snapshot_;                        // last snapshot; the snapshot thread uses it until it is written
  std::optional<CheckpointId> snapshot_id_;  // id of the last snapshot; only the training thread uses it
  std::unique_ptr<SnapshotWriter> snapshots_;  // null: no snapshots. Last, as its thread uses other members
};

Result<void> TieredCheckpointer::open_as_root(const Tier& slow, const Tier* fast) {
  PENSTOCK_TRY(check_run_name(policy_.run));
  if (policy_.keep_on_slow == 0) return make_error(Errc::invalid_argument, "--keep must be at least 1");
  // Without a thread for the drain no store is made. begin() of the drainer starts that thread.
  const auto start_a_thread = []() -> Result<void> {
    std::jthread([] {}).join();
    return success();
  };
  if (fast != nullptr) PENSTOCK_TRY(guarded(start_a_thread));
  PENSTOCK_ASSIGN(stores_, open_and_lock_run(policy_.run, slow, fast));
  if (fast == nullptr) return success();
  drainer_ = std::make_unique<Drainer>(policy_, *stores_.fast, *stores_.slow, ledger_);
  return drainer_->begin();
}

Result<void> TieredCheckpointer::begin_snapshots() {
  if (!policy_.by_snapshot) return success();
  return guarded([&]() -> Result<void> {
    snapshots_ = std::make_unique<SnapshotWriter>(
        [this](const std::atomic<bool>& given_up) { return write_snapshot(given_up); },
        [this](Error error) { ledger_.record_failure(std::move(error)); });
    return success();
  });
}

Result<void> TieredCheckpointer::begin(const Tier& slow, const Tier* fast) {
  PENSTOCK_TRY(on_root(ranks_, [&] { return open_as_root(slow, fast); }));
  const auto begin_on_this_rank = [&]() -> Result<void> {
    if (!ranks_.root()) {
      PENSTOCK_ASSIGN(stores_, open_run(slow, fast));
    }
    return begin_snapshots();
  };
  return all_ok(ranks_, begin_on_this_rank);
}

Result<CheckpointTimes> TieredCheckpointer::save(const SaveRequest& request) {
  const double begin_s = ledger_.now_s();
  const Clock::time_point start = Clock::now();
  const Clock::time_point until = deadline_after(policy_.block_for);
  bool snapshot_busy = false;
  if (snapshots_ != nullptr && policy_.on_full != OnFull::block) {
    PENSTOCK_ASSIGN(snapshot_busy, snapshots_->any_rank_busy(ranks_));
  }
  if (!snapshot_busy) PENSTOCK_TRY(finish_last_snapshot(until, true));
  PENSTOCK_TRY(all_ok(ranks_, ledger_.failure()));
  PENSTOCK_ASSIGN(SaveWork work, work_of(request));
  work.until = until;
  work.begin_s = begin_s;
  work.snapshot_busy = snapshot_busy;
  const bool from_memory = policy_.by_snapshot && !snapshot_busy;
  PENSTOCK_ASSIGN(const bool written, write(work, from_memory));
  CheckpointTimes saved{.id = work.id, .bytes = work.bytes, .save_begin_s = begin_s, .skipped = !written};
  if (written && !from_memory) saved.reached = work.to_fast_tier ? Reached::fast : Reached::durable;
  saved.block_s = std::chrono::duration<double>(Clock::now() - start).count();
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&saved.block_s, 1), Reduction::max));
  if (ranks_.root()) ledger_.record_block_time(saved.id, saved.block_s);
  return saved;
}

// Collective. Waits until all ranks have written the last snapshot. Writes it again if a tier was full.
Result<void> TieredCheckpointer::finish_last_snapshot(Clock::time_point until, bool interruptible) {
  if (snapshots_ == nullptr) return success();
  PENSTOCK_ASSIGN(const bool full, snapshots_->wait_for_all_ranks(ranks_, until, interruptible));
  if (full) return retry_snapshot(until);
  snapshot_.pending.reset();  // its destructor removes the folder if the write has failed
  return success();
}

// Collective. Called if a tier was full when the last snapshot was written: saves it again, from the copies
// that all ranks still have in memory. After timed_out or interrupted the copies stay there.
Result<void> TieredCheckpointer::retry_snapshot(Clock::time_point until) {
  SaveWork& work = snapshot_;
  work.until = until;
  work.was_full = work.to_fast_tier;
  work.in_ledger = true;
  if (work.full_reason.empty()) work.full_reason = snapshots_->full_reason();
  const Result<bool> written = write(work, false);
  const bool may_retry =
      !written.ok() && (written.error().code == Errc::timed_out || written.error().code == Errc::interrupted);
  if (may_retry) return written.error();
  work.pending.reset();
  snapshots_->abandon();
  if (written.ok()) return success();
  Error error = written.error();
  error.what = "the checkpoint of step " + std::to_string(work.id.step) +
               " could not be written from its snapshot in memory, and is lost: " + error.what;
  if (error.code == Errc::no_space)
    error.what += " (free some space there, lower --keep, or add a fast tier with --on-full block)";
  ledger_.record_failure(error);
  return error;
}

// Rank 0's part of wait(): returns when the checkpoint has reached the level.
Result<void> TieredCheckpointer::wait_until_reached(const CheckpointId& id, Reached level,
                                                    Clock::time_point until) {
  for (;;) {
    PENSTOCK_TRY(ledger_.failure());
    const std::vector<CheckpointTimes> all = ledger_.times();
    const auto found =
        std::find_if(all.rbegin(), all.rend(), [&](const CheckpointTimes& one) { return one.id == id; });
    if (found == all.rend())
      return make_error(Errc::not_found, "no checkpoint of step " + std::to_string(id.step) + " was saved");
    if (found->skipped)
      return make_error(Errc::no_space, "the checkpoint of step " + std::to_string(id.step) + " was skipped");
    if (found->reached >= level) return success();
    PENSTOCK_TRY(check_interrupt());
    if (Clock::now() >= until)
      return make_error(Errc::timed_out, "the checkpoint of step {} is not {} yet{}", id.step,
                        reached_name(level), drainer_ == nullptr ? "" : drainer_->last_error_text());
    const Clock::time_point next_check = std::min(until, Clock::now() + kPollInterval);
    if (drainer_ != nullptr && !drainer_->is_idle()) {
      drainer_->wait_for_next_drain(next_check);
    } else if (snapshots_ == nullptr || snapshots_->wait_until_written(next_check)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

Result<void> TieredCheckpointer::wait(const CheckpointId& id, Reached level,
                                      std::chrono::nanoseconds patience) {
  const Clock::time_point until = deadline_after(patience);
  if (snapshot_id_ == id) PENSTOCK_TRY(finish_last_snapshot(until, true));
  return on_root(ranks_, [&] { return wait_until_reached(id, level, until); });
}

Result<void> TieredCheckpointer::finalize(std::chrono::nanoseconds patience) {
  const Clock::time_point until = deadline_after(patience);
  PENSTOCK_TRY(finish_last_snapshot(until, false));
  PENSTOCK_TRY(all_ok(ranks_, ledger_.failure()));
  return on_root(ranks_, [&] { return drainer_ == nullptr ? success() : drainer_->wait_until_idle(until); });
}

// On rank 0. Returns the lowest generation of this step that neither a checkpoint on a tier nor the last
// snapshot has. In a retry (work.in_ledger), the last snapshot does not count: it is `work`, or none exists.
Result<uint64_t> TieredCheckpointer::next_generation(const SaveWork& work) const {
  for (CheckpointId id{.step = work.id.step};; ++id.generation) {
    PENSTOCK_ASSIGN(bool taken, stores_.slow->has(policy_.run, id));
    if (!taken && stores_.fast != nullptr) {
      PENSTOCK_ASSIGN(taken, stores_.fast->has(policy_.run, id));
    }
    if (!taken && !work.in_ledger) taken = snapshot_id_ == id;
    if (!taken) return id.generation;
  }
}

// Rank 0 chooses the tier, the generation and the folder of a save. After an error `work` keeps its id and
// tier: the ledger knows the save by this id, and the next try must know which tier was full.
Result<void> TieredCheckpointer::choose_destination(SaveWork& work) {
  PENSTOCK_ASSIGN(const uint64_t generation, next_generation(work));
  const bool was_fast = std::exchange(work.to_fast_tier, false);
  work.skipped = work.snapshot_busy && policy_.on_full == OnFull::skip;
  if (!work.skipped) {
    if (const Result<void> done = work.snapshot_busy ? use_slow_tier(work) : choose_tier(work); !done.ok()) {
      work.to_fast_tier = was_fast;
      return done;
    }
  }
  work.id.generation = generation;
  work.folder = work.pending == nullptr ? "" : work.pending->folder();
  return success();
}

// Collective. Rank 0 chooses the destination. First removes files of an earlier try, which may fill a tier.
Result<void> TieredCheckpointer::agree_on_destination(SaveWork& work) {
  work.pending.reset();
  using Bytes = std::vector<uint8_t>;
  PENSTOCK_ASSIGN(
      const Bytes chosen, on_root(ranks_, [&]() -> Result<Bytes> {
        PENSTOCK_TRY(choose_destination(work));
        return Json::to_cbor(Json::array({work.skipped, work.to_fast_tier, work.id.generation, work.folder}));
      }));
  const Json all = Json::from_cbor(chosen);
  all[0].get_to(work.skipped);
  all[1].get_to(work.to_fast_tier);
  all[2].get_to(work.id.generation);
  all[3].get_to(work.folder);
  work.manifest.id = work.id;
  return success();
}

// Whether the fast tier could take the checkpoint if all other checkpoints were removed from it.
Result<bool> TieredCheckpointer::fits_emptied_tier(uint64_t bytes) const {
  if (policy_.quota != 0 && bytes > policy_.quota) return false;
  PENSTOCK_ASSIGN(const uint64_t space, stores_.fast->space_if_emptied());
  return space >= bytes && space - bytes >= policy_.headroom;
}

// Reserves space on the fast tier and makes the folder there (work.pending). `no_space` if free space or
// quota do not suffice now. `busy` if another process holds the store's lock for 5 s; Ctrl-C ends that wait
// with `interrupted`. Called on rank 0 by the training thread, which holds no mutex.
Result<void> TieredCheckpointer::reserve_fast_space(SaveWork& work) {
  if (policy_.quota != 0 && drainer_->held_bytes() + work.bytes > policy_.quota)
    return make_error(Errc::no_space, "its quota of {} is used up", format_size(policy_.quota));
  PENSTOCK_ASSIGN(work.pending, stores_.fast->stage(policy_.run, "save", work.bytes, policy_.headroom));
  work.to_fast_tier = true;
  return success();
}

// Waits for kPollInterval, or less if a drain ends, which may have freed space. timed_out after work.until.
Result<void> TieredCheckpointer::wait_for_free_space(const SaveWork& work) {
  PENSTOCK_TRY(check_interrupt());
  PENSTOCK_TRY(ledger_.failure());
  ledger_.set_counts([](CheckpointCounts& counts) { ++counts.space_waits; });
  const Clock::time_point now = Clock::now();
  if (now >= work.until)
    return make_error(Errc::timed_out, "the fast tier '{}' stayed full for {} (--on-full-timeout){}{}{}",
                      stores_.fast->tier().name, format_duration(policy_.block_for),
                      work.full_reason.empty() ? "" : ": ", work.full_reason, drainer_->last_error_text());
  const Clock::time_point next_check = std::min(work.until, now + kPollInterval);
  // With nothing left to drain, only other processes can free space. They cannot wake this thread.
  if (drainer_->is_idle())
    std::this_thread::sleep_until(next_check);
  else
    drainer_->wait_for_next_drain(next_check);
  return success();
}

Result<void> TieredCheckpointer::use_slow_tier(SaveWork& work) {
  PENSTOCK_ASSIGN(work.pending, stores_.slow->stage(policy_.run, "save", work.bytes, 0));
  work.to_fast_tier = false;
  if (stores_.fast != nullptr) ledger_.set_counts([](CheckpointCounts& counts) { ++counts.written_through; });
  if (stores_.fast != nullptr && policy_.log && ledger_.counts().written_through == 1)
    policy_.log("a checkpoint of " + format_size(work.bytes) + " does not fit into the fast tier '" +
                stores_.fast->tier().name + "': it is written to '" + stores_.slow->tier().name +
                "' directly");
  return success();
}

// Reserves space on the fast tier. Removes durable copies from it, the oldest first, until the checkpoint
// fits. If that is not enough, policy_.on_full decides: skip the save, use the slow tier, or wait for space.
Result<void> TieredCheckpointer::choose_tier(SaveWork& work) {
  if (stores_.fast == nullptr) return use_slow_tier(work);
  bool known_to_fit = work.was_full;
  for (bool check_space = !work.was_full;; check_space = true) {
    if (check_space) {
      const Result<void> reserved = reserve_fast_space(work);
      if (reserved.ok() || reserved.error().code != Errc::no_space) return reserved;
      work.full_reason = reserved.error().message();
    }
    if (!known_to_fit) {
      PENSTOCK_ASSIGN(known_to_fit, fits_emptied_tier(work.bytes));
      if (!known_to_fit && !policy_.fail_oversize) return use_slow_tier(work);
      if (!known_to_fit)
        return make_error(Errc::no_space,
                          "a checkpoint of {} does not fit into the fast tier '{}': to write it to '{}', "
                          "pass --oversize writethrough",
                          format_size(work.bytes), stores_.fast->tier().name, stores_.slow->tier().name);
    }
    PENSTOCK_ASSIGN(const bool evicted, drainer_->evict_one());
    if (evicted) continue;
    work.skipped = policy_.on_full == OnFull::skip;
    if (work.skipped) return success();
    if (policy_.on_full == OnFull::writethrough) return use_slow_tier(work);
    PENSTOCK_TRY(wait_for_free_space(work));
  }
}

// Writes the save; false if it is skipped. If the fast tier is full, all ranks try again with was_full set.
Result<bool> TieredCheckpointer::write(SaveWork& work, bool from_memory) {
  for (;; work.was_full = work.in_ledger = true) {
    const CheckpointId old_id = work.id;
    PENSTOCK_TRY(agree_on_destination(work));
    if (ranks_.root())
      work.in_ledger ? ledger_.rename(old_id, work.id) : ledger_.add_save(work.id, work.bytes, work.begin_s);
    if (work.skipped) {
      if (ranks_.root()) ledger_.record_skip(work.id);
      return false;
    }
    const Result<void> done = from_memory ? take_snapshot(work) : write_and_commit(work);
    if (done.ok()) return true;
    // Here all ranks have the same error, so all of them try again or none does.
    if (done.error().code != Errc::no_space || !work.to_fast_tier) return done.error();
    work.full_reason = done.error().message();
  }
}

// Copies the state to memory. Moving `work` does not change its id and to_fast_tier, which save() reads.
Result<void> TieredCheckpointer::take_snapshot(SaveWork& work) {
  PENSTOCK_TRY(all_ok(ranks_, snapshots_->reserve_memory(work.files)));
  snapshot_id_ = work.id;
  snapshot_ = std::move(work);
  snapshots_->copy_and_write(snapshot_.id.step, snapshot_.files);
  return success();
}

Result<void> TieredCheckpointer::write_own_files(SaveWork& work, std::vector<CheckpointFile>& written) {
  if (!ranks_.root()) {
    PENSTOCK_ASSIGN(work.pending, PendingCheckpoint::join(stores_.of(work.to_fast_tier), work.folder));
  }
  const auto rank = uint64_t(ranks_.rank());
  for (const FileView& file : work.files) {
    PENSTOCK_ASSIGN(CheckpointFile entry, work.pending->write(file.name, rank, file.bytes));
    written.push_back(std::move(entry));
  }
  if (ranks_.size() > 1) PENSTOCK_TRY(work.pending->report_files(rank, written));
  return success();
}

Result<void> TieredCheckpointer::write_and_commit(SaveWork& work) {
  std::vector<CheckpointFile> written;
  PENSTOCK_TRY(all_ok(ranks_, write_own_files(work, written)));
  const auto commit_all = [&]() -> Result<void> {
    if (ranks_.size() > 1) {
      PENSTOCK_ASSIGN(written, work.pending->collect_files(uint64_t(ranks_.size())));
    }
    return commit(work, std::move(written));
  };
  return on_root(ranks_, commit_all);
}

Result<void> TieredCheckpointer::commit(SaveWork& work, std::vector<CheckpointFile> files) {
  work.manifest.files = std::move(files);
  PENSTOCK_ASSIGN(const CheckpointManifest manifest, work.pending->commit(work.manifest));
  ledger_.record_level(manifest.id, work.to_fast_tier ? Reached::fast : Reached::durable);
  stores_.of(work.to_fast_tier).hint_latest(policy_.run, manifest.id);
  if (work.to_fast_tier) {
    drainer_->add(manifest);
    return ledger_.failure();
  }
  // The new checkpoint is durable in any case, so an error of this removal of older ones is only logged.
  const auto pruned = prune_checkpoints(*stores_.slow, policy_.run, policy_.keep_on_slow, manifest.id);
  if (pruned.ok())
    ledger_.set_counts([&](CheckpointCounts& counts) { counts.pruned += *pruned; });
  else if (policy_.log)
    policy_.log("cannot remove old checkpoints: " + pruned.error().message());
  return ledger_.failure();
}

// Writes this rank's part of a snapshot, on the snapshot thread. Rank 0 then waits for the lists of files of
// all ranks in the folder, and commits. Makes no collective call, since the training thread may be in one.
Result<void> TieredCheckpointer::write_snapshot(const std::atomic<bool>& given_up) {
  SaveWork& work = snapshot_;
  std::vector<CheckpointFile> written;
  PENSTOCK_TRY(write_own_files(work, written));
  if (!ranks_.root()) return success();
  for (const Clock::time_point until = deadline_after(policy_.block_for); ranks_.size() > 1;) {
    Result<std::vector<CheckpointFile>> parts = work.pending->collect_files(uint64_t(ranks_.size()));
    if (parts.ok()) {
      written = *std::move(parts);
      break;
    }
    if (parts.error().code != Errc::not_found) return std::move(parts).error();
    // The rank without a list of files reports its own error when all ranks meet in wait_for_all_ranks().
    if (given_up) return make_error(Errc::no_space, "another rank has not written its part");
    PENSTOCK_TRY(check_interrupt());
    if (Clock::now() >= until) return std::move(parts).error();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return commit(work, std::move(written));
}

// Collective. Prepares a save. Checks that its manifest will be short enough to be read back.
Result<SaveWork> TieredCheckpointer::work_of(const SaveRequest& request) {
  SaveWork work;
  work.files = request.files;
  work.id.step = request.step;
  work.manifest.run = policy_.run;
  work.manifest.ranks = uint64_t(ranks_.size());
  work.manifest.trainer = request.trainer;
  work.manifest.payload = request.payload;
  work.manifest.payload_seed = request.payload_seed;
  work.manifest.snapshot_time = utc_now();
  work.manifest.writer = this_process();
  std::array<uint64_t, 3> sums{0, 0, request.files.size()};
  for (const FileView& file : request.files) {
    sums[0] += file.bytes.size();
    sums[1] += manifest_entry_bytes(file.name, file.bytes.size());
  }
  PENSTOCK_TRY(ranks_.all_reduce(std::span(sums), Reduction::sum));
  work.bytes = sums[0];
  PENSTOCK_TRY(check_manifest_bytes(sums[0], sums[1], sums[2]));
  return work;
}
}  // namespace

Result<std::unique_ptr<Checkpointer>> Checkpointer::open(const CheckpointPolicy& policy, const Tier& slow,
                                                         const Tier* fast, Communicator& ranks,
                                                         OnReached on_reached) {
  auto checkpointer = std::make_unique<TieredCheckpointer>(policy, ranks, std::move(on_reached));
  PENSTOCK_TRY(checkpointer->begin(slow, fast));
  return std::unique_ptr<Checkpointer>(std::move(checkpointer));
}
}  // namespace penstock
