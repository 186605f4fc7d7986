#include "miniapps/checkpoint/checkpointer.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "io_backends/base/buffer.hpp"
#include "io_backends/base/build_info.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/progress.hpp"
#include "io_backends/base/units.hpp"
#include "miniapps/checkpoint/admission.hpp"
#include "miniapps/checkpoint/drainer.hpp"
#include "miniapps/checkpoint/ledger.hpp"
#include "miniapps/checkpoint/retention.hpp"
#include "results/store.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};  // how often one that waits looks again

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return "penstock " + std::string(build_info().version) + ", process " + std::to_string(::getpid()) +
         " on " + host.data();
}

// Where a save goes: rank 0's decision, which all follow.
struct Course {
  bool skip = false;
  bool fast = false;
  std::uint64_t generation = 0;
  std::string folder;  // in the making, on that tier

  std::string text() const {
    return nlohmann::json{{"skip", skip}, {"fast", fast}, {"generation", generation}, {"folder", folder}}
        .dump();
  }
  static Course from(std::string_view text) {
    const nlohmann::json json = nlohmann::json::parse(text);
    return {.skip = json["skip"],
            .fast = json["fast"],
            .generation = json["generation"],
            .folder = json["folder"]};
  }
};

// What a save is of, without its bytes: these may be elsewhere by the time they are written.
struct Work {
  CheckpointId id;
  bool fast = false;
  std::vector<FileView> files;
  CheckpointManifest manifest;     // of rank 0: all but the files
  std::string folder;              // in the making
  std::unique_ptr<Staged> staged;  // this rank's hold of it
  Clock::time_point until;         // when waiting for room ends
};

class TieredCheckpointer final : public Checkpointer {
 public:
  TieredCheckpointer(const CheckpointPolicy& policy, Communicator& ranks, Acknowledged acknowledged)
      : policy_(policy), ranks_(ranks), ledger_(std::move(acknowledged)) {}
  ~TieredCheckpointer() override;

  Result<void> begin(const Tier& slow, const Tier* fast);
  Result<Saved> save(const SaveRequest& request) override;
  Result<void> wait(const CheckpointId& id, Reached level, std::chrono::nanoseconds patience) override;
  Result<void> finalize(std::chrono::nanoseconds patience) override;
  CheckpointCounts counts() const override { return ledger_.counts(); }
  std::vector<CheckpointTimes> times() const override { return ledger_.times(); }
  double now_s() const override { return ledger_.now_s(); }

 private:
  CheckpointStore& store(bool fast) { return fast ? *fast_ : *slow_; }
  Result<void> open_slow(const Tier& slow);
  Result<void> open_as_root(const Tier& slow, const Tier* fast);
  Result<void> healthy();
  Result<std::uint64_t> next_generation(std::uint64_t step) const;
  Result<Course> choose(std::uint64_t step, std::uint64_t bytes, bool was_full, Work& work);
  Work work_of(const SaveRequest& request) const;
  Result<Course> agree_on(std::uint64_t bytes, bool was_full, Work& work);
  Result<void> write_mine(Work& work, std::vector<CheckpointFile>& written);
  Result<void> write_together(Work& work);
  Result<void> committed(const CheckpointManifest& manifest, bool fast);
  Result<void> settled(const CheckpointId& id, Reached level, Clock::time_point until, bool stoppable);

  // Of policy.snapshot: the copy, and the thread that writes it.
  Result<void> wait_for_writer();
  Result<void> snapshot(Work& work);
  void write_behind() noexcept;
  Result<void> write_snapshot(Work& work);

  const CheckpointPolicy policy_;
  Communicator& ranks_;
  CheckpointLedger ledger_;
  std::unique_ptr<CheckpointStore> slow_;
  std::unique_ptr<CheckpointStore> fast_;  // null: none
  std::vector<std::unique_ptr<Lock>> locks_;
  std::unique_ptr<Drainer> drainer_;    // rank 0's, where there is a fast tier
  std::optional<Admission> admission_;  // rank 0's

  Buffer memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Work> behind_;  // what the thread is to write, or writes
  bool stop_ = false;
  std::jthread writer_;
};

TieredCheckpointer::~TieredCheckpointer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

// A slow tier that a run has drained to before must be there: else it is not mounted, most likely.
Result<void> TieredCheckpointer::open_slow(const Tier& slow) {
  std::optional<std::string> before;
  if (fast_ != nullptr) {
    PENSTOCK_ASSIGN(before, fast_->paired(policy_.run));
  }
  if (!before) {
    PENSTOCK_ASSIGN(slow_, CheckpointStore::open_or_make(slow, StoreRole::slow));
    return fast_ == nullptr ? success() : fast_->pair(policy_.run, *slow_);
  }
  Result<std::unique_ptr<CheckpointStore>> opened = CheckpointStore::open(slow);
  if (!opened.ok() && opened.error().code != Errc::not_found) return opened.error();
  if (opened.ok() && (*opened)->facts().uuid == *before) {
    slow_ = *std::move(opened);
    return success();
  }
  return make_error(Errc::invalid_argument, "run '" + policy_.run + "' drains from '" + fast_->tier().name +
                                                "' to the store " + *before + ", which is not at '" +
                                                slow.name + "' (" + slow.root +
                                                "): mount it there, or take another --run");
}

Result<void> TieredCheckpointer::open_as_root(const Tier& slow, const Tier* fast) {
  PENSTOCK_TRY(check_run_name(policy_.run));
  if (policy_.keep == 0) return make_error(Errc::invalid_argument, "at least one checkpoint is to be kept");
  if (fast != nullptr) {
    PENSTOCK_ASSIGN(fast_, CheckpointStore::open_or_make(*fast, StoreRole::fast));
  }
  PENSTOCK_TRY(open_slow(slow));
  for (CheckpointStore* const store : {slow_.get(), fast_.get()}) {
    if (store == nullptr) continue;
    for (const std::string_view what : {"save", "drain"}) {
      PENSTOCK_ASSIGN(std::unique_ptr<Lock> lock, store->lock_run(policy_.run, what));
      locks_.push_back(std::move(lock));
      PENSTOCK_TRY(store->sweep(policy_.run, what));
    }
  }
  if (fast_ != nullptr) drainer_ = std::make_unique<Drainer>(policy_, *fast_, *slow_, ledger_);
  admission_.emplace(policy_, *slow_, fast_.get(), drainer_.get(), ledger_);
  return drainer_ == nullptr ? success() : drainer_->begin();
}

Result<void> TieredCheckpointer::begin(const Tier& slow, const Tier* fast) {
  PENSTOCK_TRY(as_root_says(ranks_, ranks_.root() ? open_as_root(slow, fast) : success()));
  const auto follow = [&]() -> Result<void> {
    if (ranks_.root()) return success();
    PENSTOCK_ASSIGN(slow_, CheckpointStore::open(slow));
    if (fast != nullptr) {
      PENSTOCK_ASSIGN(fast_, CheckpointStore::open(*fast));
    }
    return success();
  };
  PENSTOCK_TRY(agree(ranks_, follow()));
  if (policy_.snapshot) writer_ = std::jthread([this] { write_behind(); });
  return success();
}

Result<void> TieredCheckpointer::healthy() {
  return agree(ranks_, ledger_.failure());
}

Result<std::uint64_t> TieredCheckpointer::next_generation(std::uint64_t step) const {
  for (CheckpointId id{.step = step};; ++id.generation) {
    PENSTOCK_ASSIGN(bool taken, slow_->has(policy_.run, id));
    if (!taken && fast_ != nullptr) {
      PENSTOCK_ASSIGN(taken, fast_->has(policy_.run, id));
    }
    if (!taken) return id.generation;
  }
}

Result<Course> TieredCheckpointer::choose(std::uint64_t step, std::uint64_t bytes, bool was_full,
                                          Work& work) {
  Course course;
  PENSTOCK_ASSIGN(course.generation, next_generation(step));
  PENSTOCK_ASSIGN(Admitted admitted, admission_->admit(bytes, was_full, work.until));
  course.skip = admitted.staged == nullptr;
  course.fast = admitted.fast;
  work.staged = std::move(admitted.staged);
  if (!course.skip) course.folder = work.staged->folder();
  return course;
}

// Every rank's.
Result<Course> TieredCheckpointer::agree_on(std::uint64_t bytes, bool was_full, Work& work) {
  std::vector<std::byte> said;
  Result<void> chosen = success();
  if (ranks_.root()) {
    Result<Course> course = choose(work.id.step, bytes, was_full, work);
    if (course.ok()) {
      const std::string text = course->text();
      said.assign(std::as_bytes(std::span(text)).begin(), std::as_bytes(std::span(text)).end());
    } else {
      chosen = std::move(course).error();
    }
  }
  PENSTOCK_TRY(as_root_says(ranks_, chosen));
  PENSTOCK_TRY(ranks_.broadcast(said));
  Course course =
      Course::from({static_cast<const char*>(static_cast<const void*>(said.data())), said.size()});
  work.fast = course.fast;
  work.folder = course.folder;
  return course;
}

Result<void> TieredCheckpointer::write_mine(Work& work, std::vector<CheckpointFile>& written) {
  if (!ranks_.root()) {
    PENSTOCK_ASSIGN(work.staged, Staged::join(store(work.fast), work.folder));
  }
  const auto rank = static_cast<std::uint64_t>(ranks_.rank());
  for (const FileView& file : work.files) {
    PENSTOCK_ASSIGN(CheckpointFile entry, work.staged->write(file.name, rank, file.bytes));
    written.push_back(std::move(entry));
  }
  if (ranks_.size() > 1) PENSTOCK_TRY(work.staged->leave_part(rank, written));
  return success();
}

Result<void> TieredCheckpointer::write_together(Work& work) {
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
  return as_root_says(ranks_, commit());
}

Result<void> TieredCheckpointer::committed(const CheckpointManifest& manifest, bool fast) {
  ledger_.reached(manifest.id, fast ? Reached::fast : Reached::durable);
  store(fast).hint_latest(policy_.run, manifest.id);
  if (fast) {
    drainer_->add(manifest);
    return ledger_.failure();
  }
  // What is durable stays so, whether or not older ones can be removed now.
  const Result<std::uint64_t> pruned = prune_checkpoints(*slow_, policy_.run, policy_.keep, manifest.id);
  if (pruned.ok())
    ledger_.count([&](CheckpointCounts& counts) { counts.pruned += *pruned; });
  else
    warn("cannot remove checkpoints that are no longer wanted: " + pruned.error().message());
  return ledger_.failure();
}

Result<Saved> TieredCheckpointer::save(const SaveRequest& request) {
  const double asked_s = ledger_.now_s();
  const Clock::time_point since = Clock::now();
  const Clock::time_point until = after(policy_.block_for);
  PENSTOCK_TRY(wait_for_writer());
  PENSTOCK_TRY(healthy());
  std::uint64_t bytes = 0;
  for (const FileView& file : request.files) bytes += file.bytes.size();
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&bytes, 1), Reduction::sum));

  Saved saved{.id = {.step = request.step}};
  for (bool was_full = false;; was_full = true) {
    Work work = work_of(request);
    work.until = until;
    PENSTOCK_ASSIGN(const Course course, agree_on(bytes, was_full, work));
    const CheckpointId before = saved.id;
    saved.id = work.id = work.manifest.id = {.step = request.step, .generation = course.generation};
    saved.skipped = course.skip;
    if (ranks_.root()) was_full ? ledger_.renamed(before, saved.id) : ledger_.asked(saved.id, bytes, asked_s);
    if (course.skip) break;
    const Result<void> done = policy_.snapshot ? agree(ranks_, snapshot(work)) : write_together(work);
    if (done.ok()) {
      if (!policy_.snapshot) saved.reached = course.fast ? Reached::fast : Reached::durable;
      break;
    }
    // The same on all ranks: what one says, agree() tells all.
    if (done.error().code != Errc::no_space || !course.fast) return done.error();
  }
  double block_s = std::chrono::duration<double>(Clock::now() - since).count();
  PENSTOCK_TRY(ranks_.all_reduce(std::span(&block_s, 1), Reduction::max));
  if (ranks_.root()) ledger_.blocked(saved.id, block_s);
  if (ranks_.root() && saved.skipped) ledger_.skipped(saved.id);
  return saved;
}

Work TieredCheckpointer::work_of(const SaveRequest& request) const {
  Work work;
  work.files = request.files;
  work.id.step = request.step;
  work.manifest.run = policy_.run;
  work.manifest.ranks = static_cast<std::uint64_t>(ranks_.size());
  work.manifest.trainer = request.trainer;
  work.manifest.payload = request.payload;
  work.manifest.payload_seed = request.payload_seed;
  work.manifest.snapshot_time = utc_now();
  work.manifest.writer = this_process();
  return work;
}

Result<void> TieredCheckpointer::wait_for_writer() {
  if (!policy_.snapshot) return success();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !behind_; });
  return success();
}

// The bytes as they are now, in memory of ours, and the thread that writes them.
Result<void> TieredCheckpointer::snapshot(Work& work) {
  std::size_t bytes = 0;
  for (const FileView& file : work.files) bytes += static_cast<std::size_t>(whole_blocks(file.bytes.size()));
  try {
    memory_.grow(bytes);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for a snapshot of " + format_size(bytes));
  }
  std::size_t at = 0;
  for (FileView& file : work.files) {
    std::memcpy(memory_.data() + at, file.bytes.data(), file.bytes.size());
    file.bytes = std::span(memory_.data() + at, file.bytes.size());
    at += static_cast<std::size_t>(whole_blocks(file.bytes.size()));
  }
  const std::lock_guard lock(mutex_);
  behind_ = std::move(work);
  changed_.notify_all();
  return success();
}

void TieredCheckpointer::write_behind() noexcept {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || behind_; });
      if (!behind_) return;
    }
    try {
      if (Result<void> written = write_snapshot(*behind_); !written.ok())
        ledger_.fail(std::move(written).error());
    } catch (const std::exception& error) {
      ledger_.fail(
          make_error(Errc::internal, "the thread that writes snapshots died: " + std::string(error.what())));
    }
    const std::lock_guard lock(mutex_);
    behind_.reset();
    changed_.notify_all();
  }
}

// As write_together(), but ranks hear of each other by their parts in the folder: no collective call may be
// made beside the training's own.
Result<void> TieredCheckpointer::write_snapshot(Work& work) {
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
    if (parts.error().code != Errc::not_found || Clock::now() >= until) return std::move(parts).error();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  work.manifest.files = std::move(written);
  PENSTOCK_ASSIGN(const CheckpointManifest manifest, work.staged->commit(work.manifest));
  return committed(manifest, work.fast);
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
    const Clock::time_point look = std::min(until, Clock::now() + kLook);
    if (drainer_ != nullptr && !drainer_->idle()) {
      drainer_->wait_for_progress(look);
    } else {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, look);
    }
  }
}

Result<void> TieredCheckpointer::wait(const CheckpointId& id, Reached level,
                                      std::chrono::nanoseconds patience) {
  return as_root_says(ranks_, ranks_.root() ? settled(id, level, after(patience), true) : success());
}

Result<void> TieredCheckpointer::finalize(std::chrono::nanoseconds patience) {
  PENSTOCK_TRY(wait_for_writer());
  PENSTOCK_TRY(healthy());
  const auto drained = [&]() -> Result<void> {
    if (!ranks_.root() || drainer_ == nullptr) return success();
    for (const Clock::time_point until = after(patience); !drainer_->idle();) {
      PENSTOCK_TRY(ledger_.failure());
      if (Clock::now() >= until) {
        const std::optional<Error> trouble = drainer_->trouble();
        return make_error(Errc::timed_out, format_size(drainer_->held().backlog) + " on '" +
                                               fast_->tier().name +
                                               "' are not durable yet; `penstock checkpoint drain` goes on" +
                                               (trouble ? "; the drain says: " + trouble->message() : ""));
      }
      drainer_->wait_for_progress(std::min(until, Clock::now() + kLook));
    }
    return ledger_.failure();
  };
  return as_root_says(ranks_, drained());
}

}  // namespace

OnFull on_full_of(std::string_view word) {
  if (word == "skip") return OnFull::skip;
  return word == "writethrough" ? OnFull::writethrough : OnFull::block;
}

Oversize oversize_of(std::string_view word) {
  return word == "fail" ? Oversize::fail : Oversize::writethrough;
}

std::string_view reached_name(Reached level) {
  switch (level) {
    case Reached::nothing:
      return "nothing";
    case Reached::fast:
      return "fast";
    case Reached::durable:
      return "durable";
  }
  return "";
}

Result<std::unique_ptr<Checkpointer>> Checkpointer::open(const CheckpointPolicy& policy, const Tier& slow,
                                                         const Tier* fast, Communicator& ranks,
                                                         Acknowledged acknowledged) {
  auto made = std::make_unique<TieredCheckpointer>(policy, ranks, std::move(acknowledged));
  PENSTOCK_TRY(made->begin(slow, fast));
  return std::unique_ptr<Checkpointer>(std::move(made));
}

}  // namespace penstock
