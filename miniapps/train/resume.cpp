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

// The stores that exist on the two tiers, the fast one first.
struct Stores {
  std::vector<std::unique_ptr<CheckpointStore>> owned;
  std::vector<CheckpointStore*> all;
};

Result<Stores> open_here(const StepSaving& saving) {
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

// Collective: opens the stores on all ranks, or on none.
Result<Stores> open_stores(const StepSaving& saving, Communicator& ranks) {
  Result<Stores> stores = open_here(saving);
  PENSTOCK_TRY(all_ok(ranks, stores));
  std::array<std::uint64_t, 1> most{stores->all.size()};
  PENSTOCK_TRY(ranks.all_reduce(std::span<std::uint64_t>(most), Reduction::max));
  const Result<void> seen =
      most[0] == stores->all.size()
          ? success()
          : make_error(Errc::io,
                       "this rank does not see all the checkpoint stores that others see: all "
                       "ranks have to share both tiers");
  PENSTOCK_TRY(all_ok(ranks, seen));
  return stores;
}

std::string places(const StepSaving& saving) {
  const std::string slow = "'" + saving.slow.spec + "'";
  return saving.fast ? slow + " and '" + saving.fast->spec + "'" : slow;
}

Error nothing_there(const StepSaving& saving, const Restart& restart) {
  std::string what = "no checkpoint of run '" + saving.policy.run + "' on " + places(saving) +
                     " can be restored: there is none";
  if (!restart.rejected.empty()) {
    const RejectedCheckpoint& first = restart.rejected.front();
    what = "no checkpoint of run '" + saving.policy.run + "' on " + places(saving) +
           " can be restored: " + std::to_string(restart.rejected.size()) +
           " were found wrong, the newest (" + folder_of(first.id) + " on '" + first.tier +
           "'): " + first.why;
  }
  return make_error(Errc::not_found, what);
}

Result<Restart> choose(const StepSaving& saving, const Stores& stores, bool read, Communicator& ranks) {
  PENSTOCK_ASSIGN(Restart restart,
                  choose_restart(stores.all, saving.policy.run, {.read = read, .put_aside = read}, ranks));
  if (restart.store == nullptr) return nothing_there(saving, restart);
  return restart;
}

// If the run has fewer ranks than before, each rank proves several parts.
Result<void> prove(const Restart& restart, const Communicator& ranks) {
  const CheckpointManifest& manifest = restart.manifest;
  for (const CheckpointFile& file : manifest.files) {
    const auto size = static_cast<std::uint64_t>(ranks.size());
    if (file.rank % size != static_cast<std::uint64_t>(ranks.rank())) continue;
    PENSTOCK_TRY(read_and_prove(*restart.store, manifest, file, nullptr));
  }
  return success();
}

// By rank 0, during its search: without these locks another process could prune or evict a checkpoint while
// it is read. `busy` if another process has one.
Result<std::vector<std::unique_ptr<Lock>>> lock_all(const Stores& stores, const std::string& run) {
  std::vector<std::unique_ptr<Lock>> locks;
  for (CheckpointStore* const store : stores.all) {
    for (const std::string_view what : {"save", "drain"}) {
      PENSTOCK_ASSIGN(std::unique_ptr<Lock> lock, store->lock_run(run, what));
      locks.push_back(std::move(lock));
    }
  }
  return locks;
}

// Sets what each checkpoint contains of the plan's work: app, corpus, shuffle and step_samples.
void describe_work(const TrainPlan& plan, TrainerState& state) {
  state.app = plan.app->name;
  state.corpus = plan.corpus.manifest.checksum();
  state.shuffle = shuffle_text(plan.shuffle);
  state.step_samples = plan.step_samples();
}

Result<void> check_resumable(const TrainPlan& plan) {
  const CheckpointManifest& from = plan.saving->resumed->manifest;
  const auto refuse = [&](const std::string& why) {
    return make_error(Errc::invalid_argument, "run '" + from.run + "' cannot go on here: " + why);
  };
  const TrainerState& was = from.trainer;
  TrainerState now;
  describe_work(plan, now);
  if (!was.app.empty()) {  // "": the checkpoint is not from a training
    if (was.app != now.app) return refuse("it is one of 'train " + was.app + "'");
    if (was.corpus != now.corpus)
      return refuse("the manifest of its corpus has the checksum " + was.corpus + ", that of '" +
                    plan.corpus.name + "' has " + now.corpus + ": --data names another corpus");
    if (was.shuffle != now.shuffle)
      return refuse("its order is that of --shuffle " + was.shuffle + ", not of " + now.shuffle);
    if (was.step_samples != now.step_samples)
      return refuse("its steps take " + std::to_string(was.step_samples) + " samples of each rank, not " +
                    std::to_string(now.step_samples) + " (--batch times --accelerators)");
  }
  if (from.trainer.seed != plan.seed)
    return refuse("its order is that of --seed " + std::to_string(from.trainer.seed));
  if (plan.accelerator.starts_with("cpu"))
    return refuse("what --accelerator cpu learns is not in a checkpoint, whose bytes stand for a network");
  const std::uint64_t samples =
      plan.files() != nullptr ? plan.files()->samples->samples() : plan.corpus.manifest.samples();
  if (from.trainer.consumed > samples)
    return refuse("it had used " + std::to_string(from.trainer.consumed) +
                  " samples of an epoch, and here are " + std::to_string(samples));
  const auto ranks = static_cast<std::uint64_t>(plan.ranks->size());
  const bool shared = plan.shuffle == Shuffle::none || plan.shuffle == Shuffle::global;
  if (from.ranks == ranks || (shared && plan.files() == nullptr)) return success();
  return refuse("it ran over " + std::to_string(from.ranks) + " ranks, each of which had " +
                (plan.files() != nullptr ? "files" : "an order") + " of its own: start as many");
}

}  // namespace

Result<std::uint64_t> seed_of_run(const StepSaving& saving, Communicator& ranks) {
  PENSTOCK_ASSIGN(const Stores stores, open_stores(saving, ranks));
  PENSTOCK_ASSIGN(const Restart restart, choose(saving, stores, false, ranks));
  return restart.manifest.trainer.seed;
}

Result<Resumed> resume_run(const StepSaving& saving, Communicator& ranks) {
  const Clock::time_point since = Clock::now();
  PENSTOCK_ASSIGN(const Stores stores, open_stores(saving, ranks));
  std::vector<std::unique_ptr<Lock>> locks;
  PENSTOCK_TRY(on_root(ranks, [&]() -> Result<void> {
    PENSTOCK_ASSIGN(locks, lock_all(stores, saving.policy.run));
    return success();
  }));
  PENSTOCK_ASSIGN(const Restart restart, choose(saving, stores, true, ranks));
  Resumed resumed;
  resumed.find_s = seconds_since(since);
  PENSTOCK_TRY(all_ok(ranks, prove(restart, ranks)));
  resumed.restore_s = seconds_since(since);
  resumed.manifest = restart.manifest;
  resumed.tier = restart.store->tier().name;
  resumed.restart = restart_json(restart);
  return resumed;
}

Result<void> check_unused(const StepSaving& saving, Communicator& ranks) {
  const auto look = [&]() -> Result<void> {
    PENSTOCK_ASSIGN(const Stores stores, open_here(saving));
    PENSTOCK_ASSIGN(const auto locks, lock_all(stores, saving.policy.run));
    for (const CheckpointStore* const store : stores.all) {
      PENSTOCK_ASSIGN(const std::vector<ListedCheckpoint> found, list_checkpoints(*store, saving.policy.run));
      if (found.empty()) continue;
      return make_error(Errc::invalid_argument, "run '" + saving.policy.run + "' has checkpoints on '" +
                                                    store->tier().name +
                                                    "' already: go on with it by --resume, or begin another "
                                                    "one by --run NAME");
    }
    return success();
  };
  return on_root(ranks, look);
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
  return "run '" + saving.policy.run + "' goes on behind step " +
         std::to_string(saving.resumed->manifest.id.step) + ", from '" + saving.resumed->tier + "'";
}

Result<void> open_checkpoints(TrainPlan& plan) {
  StepSaving& saving = *plan.saving;
  TrainerState at{.seed = plan.seed};
  if (saving.resumed) at = saving.resumed->manifest.trainer;
  describe_work(plan, at);
  PENSTOCK_ASSIGN(saving.checkpoints,
                  StepCheckpoints::open(saving, plan.limits.start.batches, at, *plan.ranks));
  return success();
}

}  // namespace penstock
