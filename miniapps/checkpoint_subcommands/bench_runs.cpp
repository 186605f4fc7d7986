#include "miniapps/checkpoint_subcommands/bench_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
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

}  // namespace penstock
