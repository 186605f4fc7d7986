#include "miniapps/train/resume.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "io_backends/core/ranks/collectives.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/prove.hpp"
#include "miniapps/checkpoint/restart.hpp"
#include "miniapps/checkpoint/store.hpp"
#include "miniapps/train/step_checkpoints.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The checkpoint stores on the tiers of the run, with that of the fast tier first. If there is no store on a
// tier, the tier is left out.
struct Stores {
  std::vector<std::unique_ptr<CheckpointStore>> owned;
  std::vector<CheckpointStore*> all;
};

Result<Stores> open_on_this_rank(const StepSaving& saving) {
  Stores stores;
  for (const Tier* const tier : {saving.fast ? &*saving.fast : nullptr, &saving.slow}) {
    if (tier == nullptr) continue;
    Result<std::unique_ptr<CheckpointStore>> store = CheckpointStore::open(*tier);
    if (!store.ok() && store.error().code == Errc::not_found) continue;
    if (!store.ok()) return store.error();
    stores.owned.push_back(*std::move(store));
    stores.all.push_back(stores.owned.back().get());
  }
  return stores;
}

// Opens the stores on all ranks. If one rank fails or does not see all stores, all ranks fail. Collective.
Result<Stores> open_stores(const StepSaving& saving, Communicator& ranks) {
  Result<Stores> stores = open_on_this_rank(saving);
  PENSTOCK_TRY(all_ok(ranks, stores));
  std::array<uint64_t, 1> most_stores{stores->all.size()};
  PENSTOCK_TRY(ranks.all_reduce(std::span<uint64_t>(most_stores), Reduction::max));
  const Result<void> all_visible = most_stores[0] == stores->all.size()
                                       ? success()
                                       : make_error(Errc::io,
                                                    "this rank does not see all checkpoint stores that other "
                                                    "ranks see: name tiers that all ranks share");
  PENSTOCK_TRY(all_ok(ranks, all_visible));
  return stores;
}

std::string tier_texts(const StepSaving& saving) {
  const std::string slow = "'" + saving.slow.spec + "'";
  return saving.fast ? slow + " and '" + saving.fast->spec + "'" : slow;
}

Error no_checkpoint_error(const StepSaving& saving, const Restart& restart) {
  std::string what = "no checkpoint of run '" + saving.policy.run + "' on " + tier_texts(saving) +
                     " can be restored: there is none";
  if (!restart.rejected.empty()) {
    const RejectedCheckpoint& first = restart.rejected.front();
    what = "no checkpoint of run '" + saving.policy.run + "' on " + tier_texts(saving) +
           " can be restored: " + std::to_string(restart.rejected.size()) + " are damaged, the newest (" +
           folder_of(first.id) + " on '" + first.tier + "'): " + first.why;
  }
  return make_error(Errc::not_found, what);
}

Result<Restart> choose_checkpoint(const StepSaving& saving, const Stores& stores, bool read,
                                  Communicator& ranks) {
  PENSTOCK_ASSIGN(Restart restart, choose_restart(stores.all, saving.policy.run,
                                                  {.read_files = read, .quarantine_wrong = read}, ranks));
  if (restart.store == nullptr) return no_checkpoint_error(saving, restart);
  return restart;
}

// Reads this rank's files of the checkpoint and checks every byte. If the run has fewer ranks than when the
// checkpoint was saved, a rank also reads the files of ranks that no longer exist.
Result<void> prove_own_files(const Restart& restart, const Communicator& ranks) {
  const CheckpointManifest& manifest = restart.manifest;
  for (const CheckpointFile& file : manifest.files) {
    const auto size = uint64_t(ranks.size());
    if (file.rank % size != uint64_t(ranks.rank())) continue;
    PENSTOCK_TRY(read_and_prove(*restart.store, manifest, file, nullptr));
  }
  return success();
}

// Takes the locks of the run on all stores; `busy` if another process has one of them. Rank 0 calls it before
// it searches for a checkpoint: without the locks another process could delete or evict the checkpoint while
// it is read.
Result<std::vector<std::unique_ptr<Lock>>> lock_all(const Stores& stores, const std::string& run) {
  std::vector<std::unique_ptr<Lock>> locks;
  for (CheckpointStore* const store : stores.all) {
    for (const std::string_view purpose : {"save", "drain"}) {
      PENSTOCK_ASSIGN(std::unique_ptr<Lock> lock, store->lock_run(run, purpose));
      locks.push_back(std::move(lock));
    }
  }
  return locks;
}

// Sets the members of a trainer state that describe the work of the plan: app, corpus, shuffle and
// step_samples. A run can be resumed only with the same values.
void describe_work(const TrainPlan& plan, TrainerState& state) {
  state.app = plan.app->name;
  state.corpus = plan.corpus.manifest.checksum();
  state.shuffle = shuffle_text(plan.shuffle);
  state.step_samples = plan.step_samples();
}

Result<void> check_resumable(const TrainPlan& plan) {
  const CheckpointManifest& manifest = plan.saving->resumed->manifest;
  const auto refuse = [&](const std::string& why) {
    return make_error(Errc::invalid_argument, "run '" + manifest.run + "' cannot be resumed here: " + why);
  };
  const TrainerState& saved = manifest.trainer;
  TrainerState current;
  describe_work(plan, current);
  if (!saved.app.empty()) {  // "": the checkpoint is not from a training
    if (saved.app != current.app) return refuse("it is a run of 'penstock train " + saved.app + "'");
    if (saved.corpus != current.corpus)
      return refuse("the manifest of its corpus has the checksum " + saved.corpus + ", that of '" +
                    plan.corpus.name + "' has " + current.corpus +
                    ": name the corpus of that run with --data");
    if (saved.shuffle != current.shuffle)
      return refuse("its order is that of --shuffle " + saved.shuffle + ", not of --shuffle " +
                    current.shuffle);
    if (saved.step_samples != current.step_samples)
      return refuse("its steps take " + std::to_string(saved.step_samples) + " samples of each rank, not " +
                    std::to_string(current.step_samples) + " (--batch times --accelerators)");
  }
  if (manifest.trainer.seed != plan.seed)
    return refuse("it used another seed: add --seed " + std::to_string(manifest.trainer.seed));
  if (plan.accelerator.starts_with("cpu"))
    return refuse(
        "checkpoints do not contain the weights that --accelerator cpu trains: choose another --accelerator");
  const uint64_t samples =
      plan.files() != nullptr ? plan.files()->samples->samples() : plan.corpus.manifest.samples();
  if (manifest.trainer.consumed > samples)
    return refuse("it had consumed " + std::to_string(manifest.trainer.consumed) +
                  " samples of an epoch, and this corpus has " + std::to_string(samples));
  const auto ranks = uint64_t(plan.ranks->size());
  const bool shared_order = plan.shuffle == Shuffle::none || plan.shuffle == Shuffle::global;
  if (manifest.ranks == ranks || (shared_order && plan.files() == nullptr)) return success();
  return refuse("it used " + std::to_string(manifest.ranks) + " ranks, each with its own " +
                (plan.files() != nullptr ? "files" : "order") + ": start the same number of ranks");
}

}  // namespace

Result<uint64_t> seed_of_run(const StepSaving& saving, Communicator& ranks) {
  PENSTOCK_ASSIGN(const Stores stores, open_stores(saving, ranks));
  PENSTOCK_ASSIGN(const Restart restart, choose_checkpoint(saving, stores, false, ranks));
  return restart.manifest.trainer.seed;
}

// Returns how many steps up to `step` the newest checkpoint on the slow tier lacks. Checkpoints whose
// manifest is not valid do not count.
Result<uint64_t> steps_lacking_on_slow(const Stores& stores, const StepSaving& saving, uint64_t step) {
  uint64_t newest_step = 0;
  for (const CheckpointStore* const store : stores.all) {
    if (store->tier().spec != saving.slow.spec) continue;
    PENSTOCK_ASSIGN(const std::vector<ListedCheckpoint> found, list_checkpoints(*store, saving.policy.run));
    for (const ListedCheckpoint& one : found)
      if (one.manifest.ok() && one.id.step <= step) newest_step = std::max(newest_step, one.id.step);
  }
  return step - newest_step;
}

Result<ResumePoint> resume_run(const StepSaving& saving, Communicator& ranks) {
  const Clock::time_point since = Clock::now();
  PENSTOCK_ASSIGN(const Stores stores, open_stores(saving, ranks));
  std::vector<std::unique_ptr<Lock>> locks;
  PENSTOCK_TRY(on_root(ranks, [&]() -> Result<void> {
    PENSTOCK_ASSIGN(locks, lock_all(stores, saving.policy.run));
    return success();
  }));
  PENSTOCK_ASSIGN(const Restart restart, choose_checkpoint(saving, stores, true, ranks));
  ResumePoint resumed;
  resumed.find_s = seconds_since(since);
  PENSTOCK_TRY(all_ok(ranks, prove_own_files(restart, ranks)));
  resumed.restore_s = seconds_since(since);
  resumed.manifest = restart.manifest;
  PENSTOCK_TRY(on_root(ranks, [&]() -> Result<void> {
    PENSTOCK_ASSIGN(resumed.unsaved_on_slow_steps,
                    steps_lacking_on_slow(stores, saving, restart.manifest.id.step));
    return success();
  }));
  resumed.tier = restart.store->tier().name;
  resumed.restart = restart_json(restart);
  return resumed;
}

Result<void> check_unused(const StepSaving& saving, Communicator& ranks) {
  const auto check = [&]() -> Result<void> {
    PENSTOCK_ASSIGN(const Stores stores, open_on_this_rank(saving));
    PENSTOCK_ASSIGN(const auto locks, lock_all(stores, saving.policy.run));
    for (const CheckpointStore* const store : stores.all) {
      PENSTOCK_ASSIGN(const std::vector<ListedCheckpoint> found, list_checkpoints(*store, saving.policy.run));
      if (found.empty()) continue;
      return make_error(Errc::invalid_argument,
                        "run '" + saving.policy.run + "' has checkpoints on '" + store->tier().name +
                            "' already: add --resume to continue it, or --run NAME to start another run");
    }
    return success();
  };
  return on_root(ranks, check);
}

Result<std::string> find_run(TrainPlan& plan) {
  StepSaving& saving = *plan.saving;
  if (!saving.resume) {
    PENSTOCK_TRY(check_unused(saving, *plan.ranks));
    return std::string();
  }
  PENSTOCK_ASSIGN(saving.resumed, resume_run(saving, *plan.ranks));
  plan.limits.start = saving.resumed->start();
  PENSTOCK_TRY(check_resumable(plan));
  return "run '" + saving.policy.run + "' resumes after step " +
         std::to_string(saving.resumed->manifest.id.step) + ", from '" + saving.resumed->tier + "'";
}

Result<void> open_checkpoints(TrainPlan& plan) {
  StepSaving& saving = *plan.saving;
  TrainerState state{.seed = plan.seed};
  if (saving.resumed) state = saving.resumed->manifest.trainer;
  describe_work(plan, state);
  PENSTOCK_ASSIGN(saving.checkpoints,
                  StepCheckpoints::open(saving, plan.limits.start.batches, state, *plan.ranks));
  return success();
}

}  // namespace penstock
