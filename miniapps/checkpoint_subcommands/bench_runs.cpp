#include "miniapps/checkpoint_subcommands/bench_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/run_stores.hpp"

namespace penstock {
namespace {

constexpr std::string_view kBenchPrefix = "bench-";
constexpr size_t kNumberDigits = 16;

// The folders of a store in which bench_runs() looks for runs: the names of their entries begin with the name
// of a run. A process that was killed early may have left entries in only some of these folders.
constexpr std::string_view kNamedAfterRuns[] = {"ckpt", "pairs", "locks", "tmp", "reserved"};

Result<std::set<std::string>> bench_runs(const CheckpointStore& store) {
  std::set<std::string> runs;
  for (const std::string_view folder : kNamedAfterRuns) {
    const Result<void> listed = store.tier().backend->names().list(folder, [&](const Entry& entry) {
      const std::string name = entry.name.substr(entry.name.rfind('/') + 1);
      const std::string run = name.substr(0, name.find('.'));
      if (is_bench_run(run)) runs.insert(run);
      return true;
    });
    if (!listed.ok() && listed.error().code != Errc::not_found) return listed.error();
  }
  return runs;
}

}  // namespace

std::string bench_run_name(std::string_view arm, uint64_t number) {
  return fmt::format("{}{}-{:016x}", kBenchPrefix, arm, number);
}

bool is_bench_run(std::string_view run) {
  return std::any_of(std::begin(kSavingArms), std::end(kSavingArms), [&](std::string_view arm) {
    const std::string prefix = fmt::format("{}{}-", kBenchPrefix, arm);
    return run.size() == prefix.size() + kNumberDigits && run.starts_with(prefix) &&
           run.find_first_not_of("0123456789abcdef", prefix.size()) == std::string_view::npos;
  });
}

Result<bool> remove_bench_run(CheckpointStore& store, const std::string& run) {
  {
    std::vector<std::unique_ptr<Lock>> locks;
    const Result<void> locked = take_run_locks(store, run, locks);
    if (!locked.ok() && locked.error().code == Errc::busy) return false;
    PENSTOCK_TRY(locked);
    PENSTOCK_TRY(outcome_of(sweep_run(store, run)));
    PENSTOCK_ASSIGN(const std::vector<ListedCheckpoint> found, list_checkpoints(store, run));
    for (const ListedCheckpoint& one : found) PENSTOCK_TRY(store.remove(run, one.id));
  }
  PENSTOCK_TRY(store.forget_run(run));
  return true;
}

Result<uint64_t> sweep_bench_runs(CheckpointStore& store) {
  PENSTOCK_ASSIGN(const std::set<std::string> runs, bench_runs(store));
  uint64_t swept = 0;
  for (const std::string& run : runs) {
    PENSTOCK_ASSIGN(const bool removed, remove_bench_run(store, run));
    swept += removed ? 1U : 0U;
  }
  return swept;
}

namespace {

constexpr std::string_view kBenchLock = "lock";
constexpr std::string_view kMadeByBench = "store-made-by-bench";
constexpr std::string_view kFolderToo = "with its folder";  // the text of kMadeByBench, or ""

std::string in_ceiling_folder(std::string_view name) {
  return path_in(kCeilingFolder, name);
}

// Whether a run that is no bench run has left anything in the store.
Result<bool> has_other_runs(const StoreFiles& files) {
  for (const std::string_view folder : kStoreFolders) {
    PENSTOCK_ASSIGN(const std::vector<Entry> entries, files.list_if_there(folder));
    for (const Entry& entry : entries) {
      const std::string_view name = last_part(entry.name);
      if (!is_bench_run(name.substr(0, name.find('.')))) return true;
    }
  }
  PENSTOCK_ASSIGN(const std::vector<Entry> pairs, files.list_if_there("pairs"));
  return std::any_of(pairs.begin(), pairs.end(),
                     [](const Entry& pair) { return !is_bench_run(last_part(pair.name)); });
}

}  // namespace

Result<std::unique_ptr<Lock>> begin_bench(const Tier& tier) {
  const StoreFiles files(tier);
  PENSTOCK_ASSIGN(const bool store_exists, files.is_there(kStoreFile));
  const bool folder_exists = files.list("").ok();
  auto lock = tier.backend->names().lock(in_ceiling_folder(kBenchLock));
  if (!lock.ok()) {
    const bool harmless = lock.error().code == Errc::busy || lock.error().code == Errc::unsupported;
    return harmless ? Result<std::unique_ptr<Lock>>(std::unique_ptr<Lock>()) : files.named(lock.error());
  }
  if (!tier.facts.network) {  // there, the lock of a bench on another machine may be invisible
    PENSTOCK_ASSIGN(const std::vector<Entry> entries, files.list(kCeilingFolder));
    for (const Entry& entry : entries) {
      const std::string_view name = last_part(entry.name);
      if (name == kBenchLock || name == kMadeByBench) continue;
      PENSTOCK_TRY(entry.folder ? files.remove_tree(entry) : files.remove(entry.name));
    }
  }
  PENSTOCK_ASSIGN(const bool is_noted, files.is_there(in_ceiling_folder(kMadeByBench)));
  if (!store_exists && !is_noted)
    PENSTOCK_TRY(files.write_text(in_ceiling_folder(kMadeByBench), folder_exists ? "" : kFolderToo,
                                  Durability::visible, IfExists::replace));
  return lock;
}

Result<void> end_bench(const Tier& tier, std::unique_ptr<Lock> lock) {
  if (lock == nullptr) return success();
  const StoreFiles files(tier);
  PENSTOCK_ASSIGN(const bool made_by_bench, files.is_there(in_ceiling_folder(kMadeByBench)));
  PENSTOCK_ASSIGN(const bool is_used, has_other_runs(files));
  if (made_by_bench && !is_used) {
    // A folder that is not empty is not removed: then another process has just started to use it.
    PENSTOCK_TRY(files.remove("pairs"));
    for (const std::string_view folder : kStoreFolders) PENSTOCK_TRY(files.remove(folder));
    for (const std::string_view file : {kStoreLatest, kStoreLock, kStoreFile})
      PENSTOCK_TRY(files.remove(file));
  }
  bool made_folder = false;
  if (made_by_bench) {
    PENSTOCK_ASSIGN(const std::string text, files.read_text(in_ceiling_folder(kMadeByBench), kMostSmallText));
    made_folder = text == kFolderToo;
  }
  PENSTOCK_TRY(files.remove(in_ceiling_folder(kMadeByBench)));
  PENSTOCK_TRY(files.remove(in_ceiling_folder(kBenchLock)));
  PENSTOCK_TRY(files.remove(kCeilingFolder));
  if (const auto folder = tier.backend->native_path(""); folder && made_folder && !is_used) {
    std::error_code not_empty;
    std::filesystem::remove(*folder, not_empty);
  }
  return success();
}

}  // namespace penstock
