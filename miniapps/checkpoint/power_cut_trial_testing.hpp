// For tests only: a training that uses two stores, the levels that were acknowledged to it, and a check that
// these levels are still true after a crash.
#pragma once

#include <array>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "io_backends/testing/power_cut_testing.hpp"
#include "io_backends/testing/testing.hpp"
#include "miniapps/checkpoint/copy_checkpoint.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

inline constexpr uint64_t kSteps = 3;
inline constexpr const char* kRun = "run";

// Whether to run all tests, also those that take minutes.
inline bool full() {
  return std::getenv("PENSTOCK_FULL") != nullptr;
}

inline std::vector<std::byte> bytes_of_step(uint64_t step, unsigned rank) {
  return pattern(rank == 0 ? 30'000 : 1'001, unsigned(step) * 2 + rank);
}

// Which steps were acknowledged to the training, for each level. The killed process shares this memory with
// the test.
struct Acknowledged {
  std::array<bool, kSteps + 1> fast{};
  std::array<bool, kSteps + 1> durable{};
};

// A deliberate error of the code under test.
struct Mutant {
  const char* name = "none";
  Skips skips = [](Synced, std::string_view) { return false; };
  bool evicts_early = false;
};

inline std::vector<Mutant> mutants() {
  const auto folder = [](const char* which) {
    return [which](Synced what, std::string_view name) { return what == Synced::folder && name == which; };
  };
  const auto bytes = [](const char* end) {
    return [end](Synced what, std::string_view name) { return what == Synced::bytes && name.ends_with(end); };
  };
  return {{.name = "no_data_fsync", .skips = bytes(".bin")},
          {.name = "no_manifest_fsync", .skips = bytes("/MANIFEST")},
          {.name = "no_tmp_dir_fsync",
           .skips = [](Synced what,
                       std::string_view name) { return what == Synced::folder && name.starts_with("tmp/"); }},
          {.name = "no_new_parent_fsync", .skips = folder("ckpt/run")},
          {.name = "no_parent_fsync",
           .skips =
               [](Synced what, std::string_view name) {
                 return what == Synced::folder && (name == "ckpt/run" || name == "tmp");
               }},
          {.name = "no_grandparent_fsync", .skips = folder("ckpt")},
          {.name = "no_store_fsync", .skips = bytes("STORE.json")},
          {.name = "no_root_fsync", .skips = folder("")},
          {.name = "evict_before_durable", .evicts_early = true}};
}

// The two tiers of a trial, newly opened by a process.
struct Tiers {
  Tier fast;
  Tier slow;
};

struct Stores {
  std::unique_ptr<CheckpointStore> fast;
  std::unique_ptr<CheckpointStore> slow;
  std::unique_ptr<Lock> saves;
  std::unique_ptr<Lock> drains;
};

inline Result<Stores> start(const Tiers& tiers) {
  Stores stores;
  PENSTOCK_ASSIGN(stores.fast, CheckpointStore::open_or_make(tiers.fast, StoreRole::fast));
  PENSTOCK_ASSIGN(stores.slow, CheckpointStore::open_or_make(tiers.slow, StoreRole::slow));
  PENSTOCK_ASSIGN(stores.saves, stores.fast->lock_run(kRun, "save"));
  PENSTOCK_ASSIGN(stores.drains, stores.slow->lock_run(kRun, "drain"));
  PENSTOCK_TRY(stores.fast->sweep(kRun, "save"));
  PENSTOCK_TRY(stores.slow->sweep(kRun, "drain"));
  return stores;
}

inline Result<CheckpointManifest> write_files(PendingCheckpoint& staged, uint64_t step) {
  CheckpointManifest manifest;
  manifest.run = kRun;
  manifest.id = {step, 0};
  manifest.ranks = 2;
  for (const unsigned rank : {0U, 1U}) {
    const auto bytes = bytes_of_step(step, rank);
    PENSTOCK_ASSIGN(CheckpointFile file, staged.write("rank-" + std::to_string(rank) + ".bin", rank, bytes));
    manifest.files.push_back(std::move(file));
  }
  return manifest;
}

// Copies a saved checkpoint to the slow store, acknowledges it, and then removes it from the fast store.
inline Result<void> drain_and_evict(Stores& stores, const CheckpointManifest& manifest, bool& durable) {
  PENSTOCK_TRY(copy_checkpoint(*stores.fast, *stores.slow, manifest));
  durable = true;
  return stores.fast->remove(kRun, manifest.id);
}

inline Result<void> evict_and_drain(Stores& stores, uint64_t step, bool& durable) {
  PENSTOCK_ASSIGN(const auto staged, stores.slow->stage(kRun, "drain", 40'000, 0));
  PENSTOCK_ASSIGN(CheckpointManifest manifest, write_files(*staged, step));
  PENSTOCK_TRY(stores.fast->remove(kRun, manifest.id));
  PENSTOCK_TRY(staged->commit(manifest));
  durable = true;
  return success();
}

inline Result<void> train(const Tiers& tiers, const Mutant& mutant, Acknowledged& acknowledged) {
  PENSTOCK_ASSIGN(Stores stores, start(tiers));
  for (uint64_t step = 1; step <= kSteps; ++step) {
    PENSTOCK_ASSIGN(const auto staged, stores.fast->stage(kRun, "save", 40'000, 0));
    PENSTOCK_ASSIGN(CheckpointManifest manifest, write_files(*staged, step));
    PENSTOCK_ASSIGN(manifest, staged->commit(manifest));
    acknowledged.fast.at(step) = true;
    if (step == kSteps) break;  // the last checkpoint stays on the fast store
    PENSTOCK_TRY(mutant.evicts_early ? evict_and_drain(stores, step, acknowledged.durable.at(step))
                                     : drain_and_evict(stores, manifest, acknowledged.durable.at(step)));
  }
  return success();
}

// Does what a start after a crash does: drains and evicts everything on the fast store.
inline Result<void> recover(const Tiers& tiers, Acknowledged& acknowledged) {
  PENSTOCK_ASSIGN(Stores stores, start(tiers));
  PENSTOCK_ASSIGN(const auto listed, list_checkpoints(*stores.fast, kRun));
  for (const ListedCheckpoint& one : listed) {
    if (!one.manifest) return one.manifest.error();
    PENSTOCK_TRY(drain_and_evict(stores, *one.manifest, acknowledged.durable.at(one.id.step)));
  }
  return success();
}

using Violations = std::vector<std::string>;

// Returns the steps whose checkpoint has all the saved bytes. Adds each listed checkpoint that does not have
// them to `violations`.
inline std::set<uint64_t> whole_steps(const CheckpointStore& store, Violations& violations) {
  std::set<uint64_t> whole;
  const auto listed = list_checkpoints(store, kRun);
  if (!listed) violations.push_back("cannot be listed: " + listed.error().message());
  if (!listed) return whole;
  for (const ListedCheckpoint& one : *listed) {
    if (!one.manifest) violations.push_back("listed, but broken: " + one.manifest.error().message());
    if (!one.manifest) continue;
    Result<void> good = store.verify(kRun, *one.manifest);
    for (const CheckpointFile& file : one.manifest->files) {
      const auto wanted = bytes_of_step(one.id.step, unsigned(file.rank));
      if (good)
        good = store.read_file(kRun, one.id, file, [&](uint64_t offset, auto bytes) {
          const bool equal =
              offset == 0 && std::equal(bytes.begin(), bytes.end(), wanted.begin(), wanted.end());
          return equal ? success() : make_error(Errc::corrupt, "other bytes than were saved");
        });
    }
    if (good) whole.insert(one.id.step);
    if (!good) violations.push_back("a good manifest, but: " + good.error().message());
  }
  return whole;
}

inline Violations check(const Tiers& tiers, const Acknowledged& acknowledged) {
  const auto stores = start(tiers);
  if (!stores) return {"does not start: " + stores.error().message()};
  Violations violations;
  const auto fast = whole_steps(*stores->fast, violations);
  const auto slow = whole_steps(*stores->slow, violations);
  for (uint64_t step = 1; step <= kSteps; ++step) {
    if (acknowledged.durable.at(step) && !slow.contains(step))
      violations.push_back("durable step " + std::to_string(step) + " is not on the slow tier");
    if (acknowledged.fast.at(step) && !fast.contains(step) && !slow.contains(step))
      violations.push_back("saved step " + std::to_string(step) + " is nowhere");
  }
  return violations;
}

// The result of cuts at many operations: their number, and how many had violations.
struct Sweep {
  uint64_t points = 0;
  uint64_t bad = 0;
  std::string first{};  // the first violation

  void add(const std::string& where, const Violations& violations) {
    ++points;
    if (violations.empty()) return;
    if (bad++ == 0) first = where + ": " + violations.front();
  }
  void say(const std::string& what) const {
    std::cout << "             " << what << ": " << points << " cut points, " << bad << " with violations"
              << (first.empty() ? "" : "; the first at ") << first << "\n";
  }
};

}  // namespace penstock
