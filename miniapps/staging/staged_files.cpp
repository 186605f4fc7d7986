// Threads: the main thread of `stage apply` or `stage revert` calls the functions of the header. The threads
// of parallel_for() call stage_file() or revert_file() and what these call, each with a buffer of its own.
// Locks: StagedTiers holds a lock file on the fast tier, so only one process at a time works on a plan.
// Apply::mutex_ and Revert::mutex_ guard what the threads share. No file is copied or read with them held;
// only forget_earlier() saves the state with Apply::mutex_ held.
// Memory: a buffer of 1 MiB per thread. Names and messages allocate, also under the locks.
// Ctrl-C: checked before each file and between pieces of 1 MiB. After Ctrl-C an apply saves its state, and
// the call succeeds with `complete` false in its outcome.
// Crash: the state on disk has `may_have_unlisted_copies` set before the first copy. So after a kill, the
// next process treats every file of the plan that is not in `earlier_files` as a copy, and compares it with
// the original.
#include "miniapps/staging/staged_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "datagen/objects/object_check.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/scope.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/files/page_cache.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20U;

Result<uint32_t> crc_of(Tier& tier, const std::string& name, uint64_t bytes, Buffer& buffer) {
  PENSTOCK_ASSIGN(const auto reader, tier.backend->open(name));
  return crc32c_of(*reader, 0, bytes, buffer);
}

// Returns the CRC32C of a copy. If possible, drops it from the page cache first, so that the device is read.
Result<uint32_t> read_back(Tier& tier, const std::string& name, uint64_t bytes, Buffer& buffer) {
  const auto path = tier.backend->native_path(name);
  if (path && !tier.facts.memory) static_cast<void>(evict(*path));
  return crc_of(tier, name, bytes, buffer);
}

// The size of a file, or nothing if there is none.
Result<std::optional<uint64_t>> size_if_exists(Tier& tier, const std::string& name) {
  const auto there = tier.backend->names().stat(name);
  if (!there.ok() && there.error().code == Errc::not_found) return std::optional<uint64_t>();
  if (!there.ok()) return there.error();
  if (there->folder)
    return make_error(Errc::already_exists, "'{}' is a folder on tier '{}', and a file in the plan", name,
                      tier.name);
  return std::optional(there->bytes);
}

// One apply. The main thread calls run() once; the threads of parallel_for() call stage_file().
class Apply {
 public:
  Apply(const StagingPlan& plan, StagedTiers& tiers, StagedState& state, unsigned threads, bool progress,
        const std::function<void(std::string_view)>& warn)
      : plan_(plan),
        slow_(tiers.slow),
        fast_(tiers.fast),
        state_(state),
        threads_(threads),
        show_progress_(progress),
        warn_(warn),
        was_unsure_(state.may_have_unlisted_copies) {}

  Result<ApplyOutcome> run();

 private:
  Result<void> check_room();
  Result<void> make_folders();
  void copy_mode_owner_and_times(const std::string& name) const;
  Result<void> save_final_state(bool all_inspected);
  Result<void> stage_file(Buffer& buffer, const PlannedFile& file);
  Result<void> inspect_copy(Buffer& buffer, const PlannedFile& file, uint64_t bytes);
  Result<void> copy(Buffer& buffer, const PlannedFile& file);
  Result<uint32_t> write_copy(Buffer& buffer, const PlannedFile& file, bool& changed);
  Result<void> forget_earlier(const PlannedFile& file);
  void record_copied(const PlannedFile& file, uint32_t crc);
  void forget_copied(const PlannedFile& file);
  void report_changed(const PlannedFile& file, const std::string& why);

  const StagingPlan& plan_;
  Tier& slow_;
  Tier& fast_;
  StagedState& state_;
  const unsigned threads_;
  const bool show_progress_;
  const std::function<void(std::string_view)>& warn_;
  const bool was_unsure_;
  std::mutex mutex_;                 // guards state_ and outcome_
  std::atomic<bool> unsure_{false};  // a publish failed, but its copy may exist
  ApplyOutcome outcome_;
};

// Checks that the copies fit. Called before the state or a copy is written, so that an apply without enough
// space fails early.
Result<void> Apply::check_room() {
  uint64_t needed = 0;
  for (const PlannedFile& file : plan_.files) {
    PENSTOCK_ASSIGN(const auto existing_bytes, size_if_exists(fast_, file.name));
    if (!existing_bytes) needed += file.bytes;
  }
  if (plan_.bytes() > plan_.capacity_bytes)
    return make_error(Errc::no_space, "the plan's files take {}, over its capacity of {}: make a new plan",
                      format_size(plan_.bytes()), format_size(plan_.capacity_bytes));
  const auto free = fast_.backend->names().free_bytes();
  if (!free.ok() || needed <= *free) return success();
  return make_error(Errc::no_space,
                    "the copies need {} on tier '{}', {} are free: free some space, or lower --capacity",
                    format_size(needed), fast_.name, format_size(*free));
}

// Gives the copy the mode, the times and, as root, the owner of its original. Called after publish(). A
// process that is killed between the two leaves a copy that only its user can read; the next apply calls this
// function again. Any thread may call it.
void Apply::copy_mode_owner_and_times(const std::string& name) const {
  const auto source = slow_.backend->native_path(name);
  const auto copy = fast_.backend->native_path(name);
  struct stat facts {};
  if (!source || !copy || ::stat(source->c_str(), &facts) != 0) return;
  const auto check = [&](int result, std::string_view what) {
    if (result != 0)
      warn_(errno_error(errno, fmt::format("cannot set the {} of", what), copy->native()).message());
  };
  if (::geteuid() == 0) check(::chown(copy->c_str(), facts.st_uid, facts.st_gid), "owner");
  check(::chmod(copy->c_str(), facts.st_mode & 07777U), "mode");
  check(::utimensat(AT_FDCWD, copy->c_str(), std::array{facts.st_atim, facts.st_mtim}.data(), 0), "times");
}

// Makes the folders of the copies. Called after the state with their names is saved: a folder that the state
// does not name would never be removed.
Result<void> Apply::make_folders() {
  for (const std::string& folder : state_.new_folders) {
    PENSTOCK_TRY(fast_.backend->names().make_folders(folder));
    copy_mode_owner_and_times(folder);
  }
  return success();
}

// Saves the state at the end of run(). The threads have ended, so it needs no lock. Ctrl-C does not stop it.
Result<void> Apply::save_final_state(bool all_inspected) {
  state_.may_have_unlisted_copies = unsure_ || (was_unsure_ && !all_inspected);
  const std::atomic<bool> heed_signals{false};
  const IgnoreInterrupt ignore_signals(heed_signals);
  return save_staged_state(*fast_.backend, state_);
}

// Removes the file from the list of earlier files: it was on the tier when this apply began and has been
// removed since, so the coming copy is ours. The state is saved before the copy exists: after a kill, revert
// must not take our copy for the old file. The lock is held during this write, since state_ must not change.
Result<void> Apply::forget_earlier(const PlannedFile& file) {
  const std::lock_guard lock(mutex_);
  if (!state_.is_earlier_file(file.name)) return success();
  state_.remove_earlier_file(file.name);
  return save_staged_state(*fast_.backend, state_);
}

// Adds a copy to the state. The threads of parallel_for() call this and the next two functions. Each takes
// the lock for a short time, and may allocate under it.
void Apply::record_copied(const PlannedFile& file, uint32_t crc) {
  const std::lock_guard lock(mutex_);
  state_.copied[file.name] = {file.bytes, crc};
}

void Apply::forget_copied(const PlannedFile& file) {
  const std::lock_guard lock(mutex_);
  state_.copied.erase(file.name);
}

void Apply::report_changed(const PlannedFile& file, const std::string& why) {
  const std::lock_guard lock(mutex_);
  outcome_.changed.push_back(fmt::format("'{}': {}", file.name, why));
  outcome_.changed_names.insert(file.name);
}

// Compares a file on the fast tier with the bytes that were copied or, if these are unknown, with the
// original. Reads without the lock: each file of the plan belongs to one thread.
Result<void> Apply::inspect_copy(Buffer& buffer, const PlannedFile& file, uint64_t bytes) {
  const auto other_bytes = [&](std::string_view whose) {
    return make_error(Errc::already_exists,
                      "'{}' already exists on tier '{}' with other bytes{}: remove it, or make a new plan",
                      file.name, fast_.name, whose);
  };
  std::optional<uint32_t> expected_crc;
  bool is_earlier = false;
  {
    const std::lock_guard lock(mutex_);
    is_earlier = state_.is_earlier_file(file.name);
    if (const auto known = state_.copied.find(file.name); known != state_.copied.end())
      expected_crc = known->second.crc32c;
  }
  if (bytes != file.bytes) return other_bytes(expected_crc ? " than were copied" : "");
  PENSTOCK_ASSIGN(const uint32_t crc, crc_of(fast_, file.name, bytes, buffer));
  if (!expected_crc) {
    PENSTOCK_ASSIGN(expected_crc, crc_of(slow_, file.name, bytes, buffer));
  }
  if (crc != *expected_crc) return other_bytes(" than the original");
  if (!is_earlier) {
    copy_mode_owner_and_times(file.name);  // a killed apply may not have called this
    record_copied(file, crc);
  }
  const std::lock_guard lock(mutex_);
  ++outcome_.already_there;
  return success();
}

// Copies into a file without a name, then gives it the name (publish()). An error before that leaves no copy.
// Sets `changed` if the original is not as the plan describes it.
Result<uint32_t> Apply::write_copy(Buffer& buffer, const PlannedFile& file, bool& changed) {
  PENSTOCK_ASSIGN(const auto reader, slow_.backend->open(file.name));
  PENSTOCK_ASSIGN(const auto writer, fast_.backend->create(file.name, file.bytes));
  uint32_t crc = 0;
  for (uint64_t offset = 0; offset < file.bytes;) {
    PENSTOCK_TRY(check_interrupt());
    const auto piece = buffer.first(size_t(std::min<uint64_t>(file.bytes - offset, buffer.capacity())));
    if (const auto read = reader->read_at(offset, piece); !read.ok()) {
      changed = read.error().code == Errc::truncated;
      return read.error();
    }
    crc = crc32c(piece, crc);
    PENSTOCK_TRY(writer->append(piece));
    offset += piece.size();
  }
  if (const std::string why = describe_change(slow_, file); !why.empty()) {
    changed = true;
    return make_error(Errc::corrupt, why);
  }
  if (auto published = writer->publish(Durability::file_and_name, IfExists::fail); !published.ok()) {
    // The copy may exist under its name: perhaps only the sync of the folder failed.
    if (published.error().code != Errc::already_exists) unsure_ = true;
    return std::move(published).error();
  }
  return crc;
}

// The order matters. forget_earlier() comes before the copy exists. record_copied() comes right after it
// exists, so that no later failure hides that the copy is ours. The comparison comes last, and removes a
// wrong copy.
Result<void> Apply::copy(Buffer& buffer, const PlannedFile& file) {
  PENSTOCK_TRY(forget_earlier(file));
  bool changed = false;
  const auto written = write_copy(buffer, file, changed);
  if (!written.ok() && changed) {
    report_changed(file, "changed during the copy");
    return success();
  }
  if (!written.ok()) return written.error();
  record_copied(file, *written);
  copy_mode_owner_and_times(file.name);
  PENSTOCK_ASSIGN(const uint32_t read_crc, read_back(fast_, file.name, file.bytes, buffer));
  if (read_crc != *written) {
    if (const auto removed = fast_.backend->names().remove(file.name); removed.ok())
      forget_copied(file);
    else
      warn_(fmt::format("could not remove the corrupt copy: {}", removed.error().message()));
    return make_error(Errc::corrupt, "'{}' read back from tier '{}' with other bytes: check that device",
                      file.name, fast_.name);
  }
  const std::lock_guard lock(mutex_);
  ++outcome_.copied;
  outcome_.bytes_copied += file.bytes;
  return success();
}

// Stages one file, on any thread of parallel_for(). An error stops the other threads before their next file.
Result<void> Apply::stage_file(Buffer& buffer, const PlannedFile& file) {
  if (const std::string why = describe_change(slow_, file); !why.empty()) {
    report_changed(file, why);
    return success();
  }
  PENSTOCK_ASSIGN(const auto existing_bytes, size_if_exists(fast_, file.name));
  return existing_bytes ? inspect_copy(buffer, file, *existing_bytes) : copy(buffer, file);
}

Result<ApplyOutcome> Apply::run() {
  const auto start = std::chrono::steady_clock::now();
  PENSTOCK_TRY(check_room());
  // New files can be read by this user alone, until copy_mode_owner_and_times() sets the mode of the
  // original. The umask belongs to the whole process, so no thread runs when it changes.
  const AtScopeEnd mode([before = ::umask(0077)] { ::umask(before); });
  // `may_have_unlisted_copies` is on disk before the first folder or copy: only this flag tells a later
  // process that this one was killed.
  state_.may_have_unlisted_copies = true;
  PENSTOCK_TRY(save_staged_state(*fast_.backend, state_));
  Result<void> done = make_folders();
  if (done.ok()) {
    std::vector<Buffer> buffers(threads_);
    for (Buffer& buffer : buffers) buffer.grow(kPieceBytes);
    Progress shown(show_progress_, "stage", plan_.files.size(), "files");
    done = parallel_for(plan_.files.size(), threads_, 4, [&](unsigned worker, uint64_t i) {
      Result<void> copied = stage_file(buffers[worker], plan_.files[i]);
      shown.advance(1);
      return copied;
    });
  }
  // The state is saved even after a failure: otherwise no file would list the copies that were made.
  const Result<void> saved = save_final_state(done.ok() && outcome_.changed.empty());
  if (!done.ok() && done.error().code != Errc::interrupted) {
    Error error = std::move(done).error();
    error.what +=
        fmt::format(" ({} of {} files are staged completely; to continue, run the same command again)",
                    format_count(state_.copied.size()), format_count(plan_.files.size()));
    return error;
  }
  PENSTOCK_TRY(saved);
  std::sort(outcome_.changed.begin(), outcome_.changed.end());
  outcome_.complete = done.ok();
  outcome_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(outcome_);
}

// Adds "a" and "a/b" for "a/b/c".
void add_folders_above(std::string_view name, std::set<std::string>& folders) {
  for (size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1))
    folders.emplace(name.substr(0, slash));
}

// Updates the list of earlier files: those that were on the tier and are no copies. Runs on the main thread,
// before anything is written. An earlier file that was removed leaves the list. A file that exists joins it,
// unless an apply copied it or a killed apply may have copied it.
Result<StagedState> update_earlier(const StagingPlan& plan, StagedTiers& tiers, StagedState state) {
  std::vector<std::string> earlier_files;
  for (const PlannedFile& file : plan.files) {
    if (state.copied.contains(file.name)) continue;
    if (state.may_have_unlisted_copies && !state.is_earlier_file(file.name)) continue;
    PENSTOCK_ASSIGN(const auto existing_bytes, size_if_exists(tiers.fast, file.name));
    if (existing_bytes) earlier_files.push_back(file.name);
  }
  std::sort(earlier_files.begin(), earlier_files.end());
  state.earlier_files = std::move(earlier_files);
  return state;
}

// One revert. The main thread calls run() once; the threads of parallel_for() call revert_file(). state_ does
// not change, so it needs no lock. An interrupted revert does not record what it removed: the next revert
// counts those copies as not there.
class Revert {
 public:
  Revert(const StagingPlan& plan, StagedTiers& tiers, const StagedState& state)
      : plan_(plan), tiers_(tiers), slow_(tiers.slow), fast_(tiers.fast), state_(state) {}

  Result<RevertOutcome> run(unsigned threads, bool progress) {
    std::vector<Buffer> buffers(threads);
    for (Buffer& buffer : buffers) buffer.grow(kPieceBytes);
    Result<void> done = success();
    {
      Progress shown(progress, "revert", plan_.files.size(), "files");
      done = parallel_for(plan_.files.size(), threads, 4, [&](unsigned worker, uint64_t i) {
        Result<void> reverted = revert_file(buffers[worker], plan_.files[i]);
        shown.advance(1);
        return reverted;
      });
    }
    if (!done.ok() && done.error().code != Errc::interrupted) return done.error();
    outcome_.complete = done.ok();
    if (!done.ok()) return std::move(outcome_);
    // The threads have ended, so this needs no lock. The state is removed last, and only if no copy of ours
    // stays.
    std::sort(outcome_.kept.begin(), outcome_.kept.end());
    remove_folders();
    if (outcome_.kept.empty()) forget_plan(tiers_, plan_.id);
    return std::move(outcome_);
  }

 private:
  // Why the file is not the copy that was made; "" if it is that copy. Reads the file without the lock.
  Result<std::string> difference(Buffer& buffer, const PlannedFile& file, uint64_t bytes) {
    const auto known = state_.copied.find(file.name);
    if (bytes != file.bytes) return fmt::format("{} bytes instead of {}", bytes, file.bytes);
    PENSTOCK_ASSIGN(const uint32_t crc, crc_of(fast_, file.name, bytes, buffer));
    if (known != state_.copied.end())
      return crc == known->second.crc32c ? std::string() : std::string("its bytes differ from the copy");
    // A killed apply may have copied the file. With the original's bytes, it can be removed without loss.
    const auto original = crc_of(slow_, file.name, bytes, buffer);
    if (original.ok() && *original == crc) return std::string();
    return std::string("its bytes differ from the original, and the plan has no checksum of the copy");
  }

  // Whether an apply copied the file, or a killed apply may have. Any thread may call it.
  bool is_ours(const std::string& name) const {
    return state_.copied.contains(name) || (state_.may_have_unlisted_copies && !state_.is_earlier_file(name));
  }

  Result<void> revert_file(Buffer& buffer, const PlannedFile& file) {
    PENSTOCK_ASSIGN(const auto existing_bytes, size_if_exists(fast_, file.name));
    if (existing_bytes && is_ours(file.name)) {
      PENSTOCK_ASSIGN(const std::string why, difference(buffer, file, *existing_bytes));
      if (why.empty()) PENSTOCK_TRY(fast_.backend->names().remove(file.name));
      const std::lock_guard lock(mutex_);
      outcome_.removed += why.empty() ? 1U : 0U;
      outcome_.bytes_removed += why.empty() ? file.bytes : 0U;
      if (!why.empty()) outcome_.kept.push_back(fmt::format("'{}': {}", file.name, why));
      return success();
    }
    const std::lock_guard lock(mutex_);
    ++(existing_bytes ? outcome_.found_before : outcome_.not_there);
    return success();
  }

  // Removes the folders that apply made, each before its parent. A folder that is not empty cannot be
  // removed, and stays.
  void remove_folders() {
    for (auto folder = state_.new_folders.rbegin(); folder != state_.new_folders.rend(); ++folder) {
      remove_temporary_files(*fast_.backend, *folder);  // left by a killed apply
      static_cast<void>(fast_.backend->names().remove(*folder));
    }
  }

  const StagingPlan& plan_;
  StagedTiers& tiers_;
  Tier& slow_;
  Tier& fast_;
  const StagedState& state_;
  std::mutex mutex_;
  RevertOutcome outcome_;
};

}  // namespace

Result<StagedTiers> StagedTiers::open(const StagingPlan& plan) {
  PENSTOCK_ASSIGN(Tier slow, open_planned_tier(plan.slow));
  PENSTOCK_ASSIGN(Tier fast, open_planned_tier(plan.fast));
  auto lock = fast.backend->names().lock(staged_lock_name(plan.id));
  if (!lock.ok() && lock.error().code == Errc::busy)
    return make_error(Errc::busy, "this plan is in use by another process on tier '{}'", fast.name);
  if (!lock.ok()) return lock.error();
  return StagedTiers{std::move(slow), std::move(fast), *std::move(lock)};
}

Result<bool> is_started(const StagingPlan& plan) {
  PENSTOCK_ASSIGN(const Tier fast, open_planned_tier(plan.fast));
  for (const std::string& name : {staged_state_name(plan.id), staged_lock_name(plan.id)}) {
    const auto there = fast.backend->names().stat(name);
    if (there.ok()) return true;
    if (there.error().code != Errc::not_found) return there.error();
  }
  return false;
}

Result<StagedState> begin_state(const StagingPlan& plan, StagedTiers& tiers) {
  auto started = load_staged_state(*tiers.fast.backend, plan.id);
  if (started.ok()) return update_earlier(plan, tiers, *std::move(started));
  if (started.error().code != Errc::not_found) return started;
  StagedState state;
  state.plan_id = plan.id;
  std::set<std::string> folders;
  for (const PlannedFile& file : plan.files) {
    PENSTOCK_ASSIGN(const auto there, size_if_exists(tiers.fast, file.name));
    if (there) state.earlier_files.push_back(file.name);
    add_folders_above(file.name, folders);
  }
  for (const std::string& folder : folders) {
    const auto there = tiers.fast.backend->names().stat(folder);
    if (!there.ok() && there.error().code != Errc::not_found) return there.error();
    if (!there.ok()) state.new_folders.push_back(folder);
  }
  return state;
}

Result<ApplyOutcome> apply_plan(const StagingPlan& plan, StagedTiers& tiers, StagedState& state,
                                unsigned threads, bool progress,
                                const std::function<void(std::string_view)>& warn) {
  return Apply(plan, tiers, state, threads, progress, warn).run();
}

Result<RevertOutcome> revert_plan(const StagingPlan& plan, StagedTiers& tiers, const StagedState& state,
                                  unsigned threads, bool progress) {
  return Revert(plan, tiers, state).run(threads, progress);
}

// Removes the state before the lock file: another process may take the lock as soon as the name of the lock
// file is free, and must not find the state then. A power cut before the sync may bring the state back.
void forget_plan(StagedTiers& tiers, std::string_view plan_id) {
  Namespace& names = tiers.fast.backend->names();
  for (const std::string& name : {staged_state_name(plan_id), staged_lock_name(plan_id),
                                  std::string(kStagedFolder), std::string(".penstock")})
    static_cast<void>(names.remove(name));  // a folder that others use is not empty, and stays
  static_cast<void>(names.sync_dir(""));
}

}  // namespace penstock
