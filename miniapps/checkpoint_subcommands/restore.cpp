// penstock checkpoint restore: finds the newest complete checkpoint, and restores its files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "datagen/target/target_folder.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/prove.hpp"
#include "miniapps/checkpoint/restart.hpp"
#include "miniapps/checkpoint_subcommands/checkpoint_options.hpp"
#include "miniapps/checkpoint_subcommands/stores.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"

namespace penstock {
namespace {

// Whether the error means that nothing can be restored (exit code 4). Other errors keep their own exit codes.
bool means_nothing_to_restore(const Error& error) {
  return error.code != Errc::invalid_argument && error.code != Errc::interrupted &&
         error.code != Errc::internal && error.code != Errc::exhausted;
}

// Checks that the files may be written to `to`, and removes the restart.json of an earlier restore: that file
// may exist only next to a completely restored checkpoint.
Result<void> prepare_target(Tier& to, bool replace) {
  PENSTOCK_ASSIGN(const bool there, folder_exists(to, "--to"));
  if (!there) return success();
  PENSTOCK_ASSIGN(const std::string first, first_foreign_entry(to, {}));
  if (!first.empty() && !replace)
    return make_error(Errc::already_exists,
                      "--to '{}' is not empty (it contains '{}'): choose another folder, or add --replace to "
                      "overwrite files of the same name",
                      to.root, printable(first));
  Namespace& names = to.backend->names();
  const Result<void> removed = names.remove(kRestartName);
  if (!removed.ok() && removed.error().code == Errc::not_found) return success();
  PENSTOCK_TRY(removed);
  return names.sync_dir("");
}

Result<void> restore_file(const Restart& restart, const CheckpointFile& file, Tier* to, bool replace,
                          Progress& progress) {
  std::unique_ptr<Writer> writer;
  if (to != nullptr) {
    PENSTOCK_ASSIGN(writer, to->backend->create(file.name, file.bytes));
  }
  const auto take = [&](uint64_t, std::span<const std::byte> bytes) -> Result<void> {
    progress.advance(bytes.size());
    return writer ? writer->append(bytes) : success();
  };
  PENSTOCK_TRY(read_and_prove(*restart.store, restart.manifest, file, take));
  if (!writer) return success();
  return writer->publish(Durability::file_and_name, replace ? IfExists::replace : IfExists::fail);
}

// Restores this rank's share of the files. The files that rank r saved are restored by rank (r modulo n) if n
// ranks restore.
Result<void> restore_share(const Restart& restart, const CommandContext& context, Tier* to) {
  const Communicator& ranks = context.communicator;
  const auto rank_count = uint64_t(ranks.size());
  const auto own_rank = uint64_t(ranks.rank());
  Progress progress(context.output.progress, "restore", restart.manifest.bytes() / rank_count, "B");
  for (const CheckpointFile& file : restart.manifest.files)
    if (file.rank % rank_count == own_rank)
      PENSTOCK_TRY(restore_file(restart, file, to, context.options.flag("replace"), progress));
  return success();
}

Result<void> write_restart(const Json& json, Tier& to) {
  const std::string text = indented(json, 2) + "\n";
  PENSTOCK_ASSIGN(const std::unique_ptr<Writer> writer, to.backend->create(kRestartName, text.size()));
  PENSTOCK_TRY(writer->append(std::as_bytes(std::span(text))));
  return writer->publish(Durability::file_and_name);
}

Json restore_json(const Restart& restart, const CommandContext& context, const Tier* to, double seconds) {
  Json json{{"kind", "restart"}};
  json.update(restart_json(restart));
  if (restart.store == nullptr) return json;
  json["to"] = to == nullptr ? Json() : Json(to->root);
  json["bytes"] = restart.manifest.bytes();
  json["files"] = restart.manifest.files.size();
  json["proven"] = provable(restart.manifest);
  json["ranks"] = context.communicator.size();
  json["wall_s"] = seconds;
  return json;
}

void print_rejected(const Restart& restart) {
  for (const RejectedCheckpoint& rejected : restart.rejected)
    print_text(fmt::format("rejected {} on {}: {}\n", short_name(rejected.id), printable(rejected.tier),
                           printable(rejected.why)));
}

void print_restored(const Restart& restart, const Tier* to, double seconds, const Output& output) {
  print_rejected(restart);
  const CheckpointManifest& manifest = restart.manifest;
  std::string text = fmt::format(
      "{} {} from {}: {} {}, {}, {} in {}", restart.run, short_name(manifest.id), shown_name(*restart.store),
      format_count(manifest.files.size()), manifest.files.size() == 1 ? "file" : "files",
      format_bytes(double(manifest.bytes()), output),
      to == nullptr ? std::string("read and checked") : fmt::format("restored to {}", printable(to->root)),
      format_seconds(seconds));
  text += provable(manifest) ? "; every byte matches the seed" : "; every checksum matches";
  if (restart.lost_steps > 0)
    text += fmt::format("; {} of training are lost",
                        restart.lost_steps == 1 ? "1 step" : format_count(restart.lost_steps) + " steps");
  print_text(text + "\n");
}

// For --step N: the error that says why this step cannot be restored, and which other steps exist. For the
// other steps, only the manifests were checked.
Error step_not_restorable(const Restart& restart, uint64_t step, std::span<CheckpointStore* const> stores) {
  std::string text = restart.rejected.empty() ? fmt::format("run '{1}' has no step {0}", step, restart.run)
                                              : fmt::format("step {} of run '{}' is damaged ({})", step,
                                                            restart.run, restart.rejected.front().why);
  const Result<std::vector<FoundCheckpoint>> all = find_checkpoints(stores, restart.run);
  if (!all.ok()) return all.error();
  std::set<uint64_t> other_steps;
  for (const FoundCheckpoint& found : *all)
    if (found.manifest() != nullptr && found.id.step != step) other_steps.insert(found.id.step);
  text += other_steps.empty() ? "; there are no other steps"
                              : fmt::format("; other steps: {}", fmt::join(other_steps, ", "));
  return make_error(Errc::not_found, std::move(text));
}

Error nothing_restorable(const Restart& restart, const CommandContext& context) {
  return make_error(
      Errc::not_found,
      restart.rejected.empty()
          ? fmt::format("there is no checkpoint of run '{}' to restore", restart.run)
          : fmt::format("no checkpoint of run '{}' is intact: {} are damaged; to list them: penstock "
                        "checkpoint verify {} --run {}",
                        restart.run, restart.rejected.size(), shell_line(context.positionals), restart.run));
}

Result<Restart> choose_checkpoint(const CommandContext& context,
                                  const std::vector<CheckpointStore*>& stores) {
  Communicator& ranks = context.communicator;
  PENSTOCK_ASSIGN(const std::string run, on_root(ranks, [&] { return one_run(stores, context.options); }));
  RestartRequest request;
  if (context.options.given("step")) request.step = uint64_t(context.options.integer("step"));
  return choose_restart(stores, run, request, ranks);
}

Result<void> restore_all(const Restart& restart, const CommandContext& context, Tier* to) {
  Communicator& ranks = context.communicator;
  if (to != nullptr)
    PENSTOCK_TRY(on_root(ranks, [&] { return prepare_target(*to, context.options.flag("replace")); }));
  return all_ok(ranks, restore_share(restart, context, to));
}

int report_nothing_restorable(const CommandContext& context, const Error& error) {
  report_failed(context, error);
  return kNothingRestorable;
}

Result<int> run_restore(const CommandContext& context) {
  Communicator& ranks = context.communicator;
  const SignalsForAll signals(ranks);
  const auto start = std::chrono::steady_clock::now();
  NamedStores stores;
  std::optional<Tier> target;
  const auto open_all = [&]() -> Result<void> {
    PENSTOCK_ASSIGN(stores, open_stores(context, true));
    if (context.options.given("to")) {
      PENSTOCK_ASSIGN(target, open_tier(context.options.text("to"), context.named_tiers));
    }
    return success();
  };
  const Result<void> opened = all_ok(ranks, open_all);
  if (!opened.ok() && means_nothing_to_restore(opened.error()))
    return report_nothing_restorable(context, opened.error());
  PENSTOCK_TRY(opened);
  Tier* const to = target ? &*target : nullptr;

  const Result<Restart> chosen = choose_checkpoint(context, stores.existing());
  if (!chosen.ok() && means_nothing_to_restore(chosen.error()))
    return report_nothing_restorable(context, chosen.error());
  PENSTOCK_TRY(outcome_of(chosen));
  const Restart& restart = *chosen;
  const bool is_root = ranks.root();
  if (restart.store == nullptr) {
    if (is_root && context.output.json) print_json(restore_json(restart, context, to, 0));
    if (is_root && !context.output.json) print_rejected(restart);
    const Error why =
        is_root && context.options.given("step")
            ? step_not_restorable(restart, uint64_t(context.options.integer("step")), stores.existing())
            : nothing_restorable(restart, context);
    return report_nothing_restorable(context, why);
  }

  PENSTOCK_TRY(restore_all(restart, context, to));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Json json = restore_json(restart, context, to, seconds);
  PENSTOCK_TRY(
      on_root(ranks, [&] { return is_root && to != nullptr ? write_restart(json, *to) : success(); }));
  if (is_root && context.output.json) print_json(json);
  if (is_root && !context.output.json) print_restored(restart, to, seconds, context.output);
  return 0;
}

constexpr std::string_view kWhereToGroup = "Where to";
constexpr OptionSpec kRestoreOptions[] = {
    kOneRunOption,
    step_option("restore this step"),
    {.name = "to",
     .role = OptionRole::target,
     .value = "DIR",
     .help = "write the files there, and restart.json last (default: only read and check them)",
     .group = kWhereToGroup},
    {.name = "replace",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "allow a folder that is not empty, and replace files of the same name",
     .group = kWhereToGroup},
};

}  // namespace

extern const CommandInfo checkpoint_restore;
const CommandInfo checkpoint_restore{
    .name = "checkpoint restore",
    .summary = "restore the newest intact checkpoint and check every byte",
    .options = kRestoreOptions,
    .run = &with_locks<run_restore>,
    .synopsis = "penstock checkpoint restore STORE... [--run NAME] [--step N] [--to DIR [--replace]]",
    .examples = {"penstock checkpoint restore /dev/shm/bb /pfs/ckpt --to restored   # the newest intact "
                 "checkpoint on either tier",
                 "penstock checkpoint restore /pfs/ckpt --step 400   # reads and checks it, writes nothing"},
    .arguments = "STORE...",
    .runs_on_ranks = true,
    .has_placement = true,
};

}  // namespace penstock
