#include "miniapps/checkpoint/save_together.hpp"

#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/retention.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return "penstock " + std::string(build_info().version) + ", process " + std::to_string(::getpid()) +
         " on " + host.data();
}

}  // namespace

// Where a save goes: rank 0's decision, which all follow.
struct SaveTogether::Course {
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

// One that is still on its way from memory has its generation, too, and keeps it when it is tried again.
Result<std::uint64_t> SaveTogether::next_generation(std::uint64_t step, bool known) const {
  for (CheckpointId id{.step = step};; ++id.generation) {
    PENSTOCK_ASSIGN(bool taken, stores_.slow->has(policy_.run, id));
    if (!taken && stores_.fast != nullptr) {
      PENSTOCK_ASSIGN(taken, stores_.fast->has(policy_.run, id));
    }
    if (!taken && !known && in_memory_ != nullptr) taken = in_memory_->has_taken(id);
    if (!taken) return id.generation;
  }
}

Result<SaveTogether::Course> SaveTogether::choose(SaveWork& work, const Way& way) {
  Course course;
  PENSTOCK_ASSIGN(course.generation, next_generation(work.id.step, way.known));
  if (way.around && policy_.on_full == OnFull::skip) {
    course.skip = true;
    return course;
  }
  PENSTOCK_ASSIGN(Admitted admitted, way.around ? admission_->write_through(work.bytes)
                                                : admission_->admit(work.bytes, way.was_full, work.until));
  course.skip = admitted.staged == nullptr;
  course.fast = admitted.fast;
  work.staged = std::move(admitted.staged);
  if (!course.skip) course.folder = work.staged->folder();
  return course;
}

// Every rank's. What an earlier try made is gone before room is looked for.
Result<SaveTogether::Course> SaveTogether::agree_on(SaveWork& work, const Way& way) {
  work.staged.reset();
  std::vector<std::byte> said;
  Result<void> chosen = success();
  if (ranks_.root()) {
    Result<Course> course = choose(work, way);
    if (course.ok()) {
      const std::string text = course->text();
      said.assign(std::as_bytes(std::span(text)).begin(), std::as_bytes(std::span(text)).end());
    } else {
      chosen = std::move(course).error();
    }
  }
  PENSTOCK_TRY(outcome_of_root(ranks_, chosen));
  PENSTOCK_TRY(ranks_.broadcast(said));
  Course course =
      Course::from({static_cast<const char*>(static_cast<const void*>(said.data())), said.size()});
  work.fast = course.fast;
  work.folder = course.folder;
  return course;
}

// Collective: finds room and writes there, or hands it to the thread that does; false where it is skipped.
Result<bool> SaveTogether::write(SaveWork& work, Way way) {
  for (;; way.was_full = way.known = true) {
    PENSTOCK_ASSIGN(const Course course, agree_on(work, way));
    const CheckpointId before = work.id;
    work.id.generation = course.generation;
    work.manifest.id = work.id;
    if (ranks_.root())
      way.known ? ledger_.renamed(before, work.id) : ledger_.asked(work.id, work.bytes, way.asked_s);
    if (course.skip) {
      if (ranks_.root()) ledger_.skipped(work.id);
      return false;
    }
    const Result<void> done = way.from_memory ? hand_over(work) : write_together(work);
    if (done.ok()) return true;
    // The same on all ranks: what one says, agree() tells all.
    if (done.error().code != Errc::no_space || !course.fast) return done.error();
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
