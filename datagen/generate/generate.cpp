// Makes all collective calls of `generate`: calls in which a rank waits for the other ranks. Between them, it
// calls the steps of Generator and Repairer, which do one rank's part and never wait for other ranks.
// (generate_share.cpp has the collective calls that exchange results.)
//
// Threads: every rank calls generate() from one thread, and all functions here run on this thread. There is
// one exception: if all_ok() gets a `stop` function, it runs the work on another thread, unless there is only
// one rank. Generator and Repairer start threads.
// Lock: the target's lock (a file) keeps other processes away. Rank 0 takes it before it inspects the target,
// and holds it until generate() returns. The system releases it if the process ends.
// Memory: everything allocates. guarded() turns an exception into an error, because the other ranks would
// wait for a rank that throws.
// Ctrl-C: Generator and Repairer stop before their next object. The state file and the journal remain for
// --resume.
// Crash: files are written in this order: the state file, the objects and the journal, and, after their sync,
// the manifest. Then the journal, the state file and the lock file are removed. A kill at any point leaves a
// target that --resume completes, or a complete data set.
#include "datagen/generate/generate.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "datagen/generate/generate_repair.hpp"
#include "datagen/generate/generate_share.hpp"
#include "datagen/generate/generate_target.hpp"
#include "datagen/generate/generator.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/target/target_folder.hpp"
#include "datagen/target/target_sync.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {
namespace {

// Returns whether the target has a finished data set, an unfinished one or none. Removes what must not
// remain: temporary files, the state file and journal of a finished data set, and a manifest next to an
// unfinished one. If there is no data set, writes the state file of the new one. Only rank 0 calls this, with
// the target's lock held, before the other ranks begin.
Result<TargetState> prepare_target(const Generation& generation, Tier& tier, bool resume) {
  // The check is repeated with the lock held: the caller's first check was without the lock, and another
  // process may have written since then.
  PENSTOCK_ASSIGN(const bool complete, check_target(tier, generation.state, resume));
  Backend& backend = *tier.backend;
  remove_temporary_files(backend);
  if (complete) {
    PENSTOCK_TRY(remove_generation_state(backend));
    return TargetState::finished;
  }
  PENSTOCK_ASSIGN(const std::optional<GenerationState> started, read_generation_state(backend, tier.root));
  if (!started) {
    PENSTOCK_TRY(write_generation_state(backend, generation.state));
    return TargetState::fresh;
  }
  // A manifest next to an unfinished data set belongs to another data set. It would not describe the objects
  // that are made now.
  PENSTOCK_TRY(remove_if_there(backend.names(), kManifestName));
  return TargetState::started;
}

// Checks that this rank sees the same target as rank 0. `not_found` if the target's state file is missing on
// this rank or belongs to another data set. All ranks but rank 0 call it.
Result<void> check_same_target(const Generation& generation, Tier& tier) {
  PENSTOCK_ASSIGN(const std::optional<GenerationState> started,
                  read_generation_state(*tier.backend, tier.root));
  if (started && journal_key(*started) == journal_key(generation.state)) return success();
  return make_error(Errc::not_found,
                    "'{}' is not the folder in which rank 0 started the data set: set --out to a folder that "
                    "every rank sees",
                    tier.root);
}

// Repairs a finished data set: checks the size of every object, and makes the wrong objects again. The ranks
// share this work, so all must call it together, while rank 0 holds the target's lock.
// `corrupt`, naming the object, if this build would make an object with other bytes than the manifest says.
// Such an object is never published, but the old wrong object has been removed by then.
Result<void> repair_finished(const Generation& generation, Tier& tier, unsigned threads, Communicator& ranks,
                             Progress& progress, GenerateResult& out) {
  const Result<Manifest> manifest = Manifest::load(*tier.backend, kManifestName);
  PENSTOCK_TRY(all_ok(ranks, manifest));
  PENSTOCK_ASSIGN(const std::vector<uint64_t> wrong,
                  on_root(ranks, [&] { return wrong_objects(*manifest, tier, threads); }));
  if (wrong.empty()) return success();
  std::optional<Repairer> repairer;
  const auto prepare = [&]() -> Result<void> {
    PENSTOCK_ASSIGN(TargetSync sync, TargetSync::begin(tier));
    repairer.emplace(generation, *manifest, *tier.backend, std::move(sync), threads, ranks, progress);
    return success();
  };
  PENSTOCK_TRY(all_ok(ranks, prepare));
  out.checked_by_size = true;
  PENSTOCK_TRY(all_ok(ranks, [&] { return repairer->begin(wrong); }));
  const Result<void> made = all_ok(
      ranks, [&] { return repairer->make_share(wrong); }, [&] { repairer->stop(); });
  PENSTOCK_TRY(sum_over_ranks(ranks, repairer->counts(), out));
  return made;
}

// Makes the objects that are missing, and then the manifest. All ranks must call it together.
Result<void> make_missing(Generator& generator, bool resumed, Communicator& ranks, GenerateResult& out) {
  const auto stop = [&] { generator.stop(); };
  PENSTOCK_TRY(on_root(ranks, [&] { return generator.name_objects(); }));
  JournalRead journal;
  const auto accept_existing = [&]() -> Result<void> {
    PENSTOCK_ASSIGN(journal, generator.accept_existing_objects());
    return success();
  };
  if (resumed) PENSTOCK_TRY(all_ok(ranks, accept_existing, stop));
  PENSTOCK_ASSIGN(const std::vector<JournalRead> journals, gather<JournalRead>(ranks, journal));
  for (const JournalRead& one : journals) {
    journal.next_segment = std::max(journal.next_segment, one.next_segment);
    out.damaged_journal_parts = std::max(out.damaged_journal_parts, one.damaged_parts);
  }
  generator.start_journal(journal.next_segment);
  const Result<void> made = all_ok(
      ranks, [&] { return generator.make_share(); }, stop);
  PENSTOCK_TRY(sum_over_ranks(ranks, generator.counts(), out));
  PENSTOCK_TRY(made);
  PENSTOCK_TRY(generator.results().send_to_root());
  return on_root(ranks, [&] { return generator.publish_manifest(); });
}

// The part of generate() for which rank 0 must hold the lock. All ranks must call it together.
Result<void> generate_locked(const Generation& generation, Tier& tier, unsigned threads, bool resume,
                             Communicator& ranks, Progress& progress, GenerateResult& out) {
  PENSTOCK_ASSIGN(const TargetState found,
                  on_root(ranks, [&] { return prepare_target(generation, tier, resume); }));
  if (found == TargetState::finished) return repair_finished(generation, tier, threads, ranks, progress, out);
  const bool resumed = found == TargetState::started;
  out.can_resume = resumed;
  if (Result<void> same_target =
          all_ok(ranks, ranks.root() ? success() : check_same_target(generation, tier));
      !same_target.ok()) {
    // No object was made yet. So rank 0 removes the state file, and the target is empty again.
    if (ranks.root() && !resumed) static_cast<void>(remove_generation_state(*tier.backend));
    return same_target;
  }
  out.can_resume = true;
  std::optional<Generator> generator;
  const auto prepare = [&]() -> Result<void> {
    PENSTOCK_ASSIGN(TargetSync sync, TargetSync::begin(tier));
    generator.emplace(generation, tier, std::move(sync), threads, resumed, ranks, progress);
    return success();
  };
  PENSTOCK_TRY(all_ok(ranks, prepare));
  PENSTOCK_TRY(make_missing(*generator, resumed, ranks, out));
  PENSTOCK_TRY(on_root(ranks, [&] { return remove_generation_state(*tier.backend); }));
  out.can_resume = false;
  return success();
}

// Takes the target's lock for all ranks. Only rank 0 calls it.
Result<std::unique_ptr<Lock>> lock_target(Namespace& names) {
  const Result<Entry> folder = names.stat(".penstock");
  Result<std::unique_ptr<Lock>> lock = names.lock(kGenerationLockName);
  // names.lock() makes the folder .penstock. If the folder is new and the lock cannot be taken, the folder is
  // removed again, unless another process holds the lock.
  const bool is_new = !folder.ok() && folder.error().code == Errc::not_found;
  if (!lock.ok() && is_new && lock.error().code != Errc::busy) static_cast<void>(names.remove(".penstock"));
  return lock;
}

// Removes the lock's file. generate() calls this at its end, unless the target has an unfinished data set.
// `done` is the result of generate_locked(). If `done` is an error, also removes the folder .penstock, if
// that is empty.
Result<void> remove_lock(Namespace& names, const Result<void>& done) {
  Result<void> removed = remove_if_there(names, kGenerationLockName);
  if (done.ok() && !removed.ok()) return removed;
  // The folder is empty if no data set was started. If it has files, such as the manifest of a finished data
  // set, remove() fails and the folder stays.
  if (!done.ok()) static_cast<void>(names.remove(".penstock"));
  return success();
}

}  // namespace

void GeneratedCounts::add(const GeneratedCounts& part) {
  samples_made += part.samples_made;
  bytes_made += part.bytes_made;
  samples_kept += part.samples_kept;
  samples_journaled += part.samples_journaled;
  damaged_objects += part.damaged_objects;
}

Result<void> generate(const Generation& generation, Tier& tier, unsigned threads, bool resume,
                      Communicator& ranks, Progress& progress, GenerateResult& out) {
  Namespace& names = tier.backend->names();
  return guarded([&]() -> Result<void> {
    std::unique_ptr<Lock> lock;
    PENSTOCK_TRY(on_root(ranks, [&]() -> Result<void> {
      PENSTOCK_ASSIGN(lock, lock_target(names));
      return success();
    }));
    Result<void> done = generate_locked(generation, tier, threads, resume, ranks, progress, out);
    // If the data set is unfinished, nothing is removed: --resume needs the state file in the folder
    // .penstock.
    if (out.can_resume) return done;
    if (done.ok()) return on_root(ranks, [&] { return remove_lock(names, done); });
    if (ranks.root()) static_cast<void>(remove_lock(names, done));
    return done;
  });
}

}  // namespace penstock
