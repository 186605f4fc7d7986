// penstock checkpoint verify: reads every copy of every checkpoint, and reports what is wrong.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/prove.hpp"
#include "miniapps/checkpoint_subcommands/checkpoint_options.hpp"
#include "miniapps/checkpoint_subcommands/stores.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"

namespace penstock {
namespace {

struct Verified {
  std::string tier;
  std::string run;
  CheckpointId id;
  std::uint64_t bytes = 0;
  bool proven = false;  // also checked against the seed
  bool gone = false;    // removed before it was read: by a training, a drain or gc
  std::string problem;  // "": the copy is right, or gone
};

// Reads all files of the manifest.
Result<void> read_copy(const CheckpointStore& store, const CheckpointManifest& manifest, Progress& shown) {
  for (const CheckpointFile& file : manifest.files)
    PENSTOCK_TRY(read_and_prove(store, manifest, file, [&](auto, auto bytes) {
      shown.advance(bytes.size());
      return success();
    }));
  return success();
}

// Checks one copy: its manifest, then every byte. Meanwhile a running training may remove it and save that
// step again; then the new copy is checked.
Result<Verified> verify_copy(const FoundCheckpoint& found, ListedCheckpoint& copy, Progress& shown) {
  Verified verified{.tier = copy.store->tier().name, .run = found.run, .id = found.id, .problem = ""};
  for (;;) {
    Result<void> whole = outcome_of(copy.manifest);
    if (whole.ok()) {
      verified.bytes = copy.manifest->bytes();
      verified.proven = provable(*copy.manifest);
      whole = read_copy(*copy.store, *copy.manifest, shown);
    }
    if (whole.ok()) return verified;
    if (whole.error().code == Errc::interrupted) return whole.error();
    Result<CheckpointManifest> now = copy.store->manifest(found.run, found.id);
    verified.gone = !now.ok() && now.error().code == Errc::not_found;
    if (verified.gone) return verified;
    const bool same = now.ok() == copy.manifest.ok() && (!now.ok() || *now == *copy.manifest);
    if (same) {
      verified.problem = whole.error().message();
      return verified;
    }
    copy.manifest = std::move(now);
  }
}

Result<std::vector<Verified>> verify_all(std::vector<FoundCheckpoint>& all, const Output& output) {
  std::uint64_t bytes = 0;
  for (const FoundCheckpoint& found : all)
    for (const ListedCheckpoint& copy : found.copies)
      bytes += copy.manifest.ok() ? copy.manifest->bytes() : 0;
  Progress shown(output.progress, "verify", bytes, "B");
  std::vector<Verified> verified;
  for (FoundCheckpoint& found : all) {
    const CheckpointManifest* first = nullptr;  // the manifest of the first right copy
    for (ListedCheckpoint& copy : found.copies) {
      PENSTOCK_ASSIGN(Verified one, verify_copy(found, copy, shown));
      if (one.problem.empty() && !one.gone) {
        if (first == nullptr) first = &*copy.manifest;
        if (!same_content(*copy.manifest, *first))
          one.problem = fmt::format("is another one than checkpoint {} of '{}' on the other tier",
                                    short_name(found.id), found.run);
      }
      verified.push_back(std::move(one));
    }
  }
  return verified;
}

struct Sums {
  std::uint64_t there = 0, wrong = 0, gone = 0, bytes = 0, proven = 0;
};

Sums sum_up(const std::vector<Verified>& all) {
  Sums sums;
  for (const Verified& one : all) {
    if (one.gone) {
      ++sums.gone;
      continue;
    }
    ++sums.there;
    sums.bytes += one.bytes;
    sums.wrong += one.problem.empty() ? 0U : 1U;
    sums.proven += one.proven && one.problem.empty() ? 1U : 0U;
  }
  return sums;
}

void print_lines(const std::vector<Verified>& all, const Sums& sums) {
  for (const Verified& one : all)
    print_json({{"kind", "copy"},
                {"tier", one.tier},
                {"run", one.run},
                {"step", one.id.step},
                {"generation", one.id.generation},
                {"bytes", one.gone ? 0 : one.bytes},
                {"proven", one.proven && !one.gone && one.problem.empty()},
                {"gone", one.gone},
                {"problem", one.problem}});
  print_json({{"kind", "summary"},
              {"copies", sums.there},
              {"wrong", sums.wrong},
              {"gone", sums.gone},
              {"bytes", sums.bytes},
              {"verdict", sums.wrong > 0 ? "failed" : "ok"}});
}

void print_table(const std::vector<Verified>& all, const Sums& sums, const Output& output) {
  Table table({{"tier", Align::left}, {"run", Align::left}, {"checkpoint"}, {"problem", Align::left}});
  for (const Verified& one : all)
    if (!one.problem.empty())
      table.row({printable(one.tier), one.run, short_name(one.id), printable(one.problem)});
  std::string text = table.empty() ? "" : table.text() + "\n";
  text += fmt::format("{} of {} copies of checkpoints are whole ({} read); {} proven against the seed",
                      format_count(sums.there - sums.wrong), format_count(sums.there),
                      format_bytes(static_cast<double>(sums.bytes), output), format_count(sums.proven));
  if (sums.gone > 0)
    text += fmt::format("; {} taken away by others before they were read", format_count(sums.gone));
  print_text(text + "\n");
}

Result<int> run_verify(const CommandContext& context) {
  PENSTOCK_ASSIGN(const NamedStores stores, open_stores(context, true));
  PENSTOCK_ASSIGN(const std::vector<std::string> runs, wanted_runs(stores.there(), context.options));
  PENSTOCK_ASSIGN(std::vector<FoundCheckpoint> all, find_checkpoints(stores.there(), runs));
  PENSTOCK_ASSIGN(const std::vector<Verified> verified, verify_all(all, context.output));
  const Sums sums = sum_up(verified);
  if (context.output.json)
    print_lines(verified, sums);
  else
    print_table(verified, sums, context.output);
  return sums.wrong > 0 ? 1 : 0;
}

constexpr OptionSpec kVerifyOptions[] = {kRunOption};

}  // namespace

extern const CommandInfo checkpoint_verify;
const CommandInfo checkpoint_verify{
    .name = "checkpoint verify",
    .summary = "reads every checkpoint and checks every byte",
    .options = kVerifyOptions,
    .run = &run_verify,
    .synopsis = "penstock checkpoint verify STORE... [--run NAME]",
    .examples = {"penstock checkpoint verify /dev/shm/bb /pfs/ckpt   # exit 1 if any is wrong"},
    .arguments = "STORE...",
    .pinned = true,
};

}  // namespace penstock
