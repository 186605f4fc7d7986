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

struct VerifiedCopy {
  std::string tier;
  std::string run;
  CheckpointId id;
  uint64_t bytes = 0;
  bool proven = false;  // also compared with the bytes that the seed gives
  bool gone = false;    // a training, a drain or gc removed it before it was read
  std::string problem;  // "": the copy is right, or gone
};

// Reads and checks all files of the manifest.
Result<void> read_copy(const CheckpointStore& store, const CheckpointManifest& manifest, Progress& progress) {
  for (const CheckpointFile& file : manifest.files)
    PENSTOCK_TRY(read_and_prove(store, manifest, file, [&](auto, auto bytes) {
      progress.advance(bytes.size());
      return success();
    }));
  return success();
}

// Checks one copy: its manifest, then every byte. If a running training meanwhile removes the copy and saves
// that step again, the new copy is checked.
Result<VerifiedCopy> verify_copy(const FoundCheckpoint& found, ListedCheckpoint& copy, Progress& progress) {
  VerifiedCopy verified{.tier = copy.store->tier().name, .run = found.run, .id = found.id, .problem = ""};
  for (;;) {
    Result<void> checked = outcome_of(copy.manifest);
    if (checked.ok()) {
      verified.bytes = copy.manifest->bytes();
      verified.proven = provable(*copy.manifest);
      checked = read_copy(*copy.store, *copy.manifest, progress);
    }
    if (checked.ok()) return verified;
    if (checked.error().code == Errc::interrupted) return checked.error();
    Result<CheckpointManifest> current = copy.store->manifest(found.run, found.id);
    verified.gone = !current.ok() && current.error().code == Errc::not_found;
    if (verified.gone) return verified;
    const bool same = current.ok() == copy.manifest.ok() && (!current.ok() || *current == *copy.manifest);
    if (same) {
      verified.problem = checked.error().message();
      return verified;
    }
    copy.manifest = std::move(current);
  }
}

Result<std::vector<VerifiedCopy>> verify_all(std::vector<FoundCheckpoint>& all, const Output& output) {
  uint64_t bytes = 0;
  for (const FoundCheckpoint& found : all)
    for (const ListedCheckpoint& copy : found.copies)
      bytes += copy.manifest.ok() ? copy.manifest->bytes() : 0;
  Progress progress(output.progress, "verify", bytes, "B");
  std::vector<VerifiedCopy> verified;
  for (FoundCheckpoint& found : all) {
    const CheckpointManifest* first = nullptr;  // the manifest of the first right copy
    for (ListedCheckpoint& copy : found.copies) {
      PENSTOCK_ASSIGN(VerifiedCopy one, verify_copy(found, copy, progress));
      if (one.problem.empty() && !one.gone) {
        if (first == nullptr) first = &*copy.manifest;
        if (!same_content(*copy.manifest, *first))
          one.problem = fmt::format("differs from checkpoint {} of '{}' on the other tier",
                                    short_name(found.id), found.run);
      }
      verified.push_back(std::move(one));
    }
  }
  return verified;
}

struct Sums {
  uint64_t present = 0, wrong = 0, gone = 0, bytes = 0, proven = 0;
};

Sums sum_up(const std::vector<VerifiedCopy>& all) {
  Sums sums;
  for (const VerifiedCopy& one : all) {
    if (one.gone) {
      ++sums.gone;
      continue;
    }
    ++sums.present;
    sums.bytes += one.bytes;
    sums.wrong += one.problem.empty() ? 0U : 1U;
    sums.proven += one.proven && one.problem.empty() ? 1U : 0U;
  }
  return sums;
}

void print_lines(const std::vector<VerifiedCopy>& all, const Sums& sums) {
  for (const VerifiedCopy& one : all)
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
              {"copies", sums.present},
              {"wrong", sums.wrong},
              {"gone", sums.gone},
              {"bytes", sums.bytes},
              {"verdict", sums.wrong > 0 ? "failed" : "ok"}});
}

void print_table(const std::vector<VerifiedCopy>& all, const Sums& sums, const Output& output) {
  Table table({{"tier", Align::left}, {"run", Align::left}, {"checkpoint"}, {"problem", Align::left}});
  for (const VerifiedCopy& one : all)
    if (!one.problem.empty())
      table.row({printable(one.tier), one.run, short_name(one.id), printable(one.problem)});
  std::string text = table.empty() ? "" : table.text() + "\n";
  text += fmt::format("{} of {} checkpoint copies are intact ({} read); {} checked against the seed",
                      format_count(sums.present - sums.wrong), format_count(sums.present),
                      format_bytes(double(sums.bytes), output), format_count(sums.proven));
  if (sums.gone > 0)
    text += fmt::format("; {} removed by other processes before they were read", format_count(sums.gone));
  print_text(text + "\n");
}

Result<int> run_verify(const CommandContext& context) {
  PENSTOCK_ASSIGN(const NamedStores stores, open_stores(context, true));
  PENSTOCK_ASSIGN(const std::vector<std::string> runs, wanted_runs(stores.existing(), context.options));
  PENSTOCK_ASSIGN(std::vector<FoundCheckpoint> all, find_checkpoints(stores.existing(), runs));
  PENSTOCK_ASSIGN(const std::vector<VerifiedCopy> verified, verify_all(all, context.output));
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
    .summary = "read every checkpoint and check every byte",
    .options = kVerifyOptions,
    .run = &run_verify,
    .synopsis = "penstock checkpoint verify STORE... [--run NAME]",
    .examples = {"penstock checkpoint verify /dev/shm/bb /pfs/ckpt   # exit 1 if any copy is damaged"},
    .arguments = "STORE...",
    .has_placement = true,
};

}  // namespace penstock
