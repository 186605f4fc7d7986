// penstock checkpoint ls: lists the checkpoints and their states, from the files in the stores alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint_subcommands/checkpoint_options.hpp"
#include "miniapps/checkpoint_subcommands/stores.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"

namespace penstock {
namespace {

std::string_view state_of(const FoundCheckpoint& found) {
  if (found.manifest() == nullptr) return "invalid";
  if (!found.is_durable()) return "fast_committed";
  return found.valid_copy_in(StoreRole::fast) != nullptr ? "both" : "durable";
}

// Seconds from when the checkpoint was saved until now. Nothing if its time cannot be parsed.
std::optional<double> age_s(const CheckpointManifest& manifest) {
  std::tm parts{};
  if (::strptime(manifest.snapshot_time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return {};
  const auto saved_at = std::chrono::system_clock::from_time_t(::timegm(&parts));
  return std::chrono::duration<double>(std::chrono::system_clock::now() - saved_at).count();
}

std::string age_text(const std::optional<double>& seconds) {
  if (!seconds) return "-";
  if (*seconds < 120) return fmt::format("{:.0f} s", *seconds < 0 ? 0.0 : *seconds);
  if (*seconds < 2 * 3600) return fmt::format("{:.0f} min", *seconds / 60);
  if (*seconds < 48 * 3600) return fmt::format("{:.0f} h", *seconds / 3600);
  return fmt::format("{:.0f} d", *seconds / 86400);
}

Json copies_json(const FoundCheckpoint& found) {
  Json copies = Json::array();
  for (const ListedCheckpoint& copy : found.copies)
    copies.push_back({{"tier", copy.store->tier().name},
                      {"role", role_name(copy.store->role())},
                      {"durability", copy.store->durability()},
                      {"problem", copy.manifest.ok() ? "" : copy.manifest.error().message()}});
  return copies;
}

Json to_json(const FoundCheckpoint& found) {
  Json json{{"kind", "checkpoint"},
            {"run", found.run},
            {"step", found.id.step},
            {"generation", found.id.generation},
            {"state", state_of(found)}};
  if (const CheckpointManifest* manifest = found.manifest()) {
    const std::optional<double> age = age_s(*manifest);
    json["bytes"] = manifest->bytes();
    json["ranks"] = manifest->ranks;
    json["files"] = manifest->files.size();
    json["age_s"] = age ? Json(*age) : Json();
    json["epoch"] = manifest->trainer.epoch;
    json["payload"] = manifest->payload;
    json["snapshot_time"] = manifest->snapshot_time;
    json["writer"] = manifest->writer;
  }
  json["copies"] = copies_json(found);
  return json;
}

std::string state_text(const FoundCheckpoint& found) {
  const std::string_view state = state_of(found);
  if (state == "fast_committed") return "fast committed";
  return state == "both" ? "fast and durable" : std::string(state);
}

std::string copies_text(const FoundCheckpoint& found) {
  std::vector<std::string> copy_names;
  for (const ListedCheckpoint& copy : found.copies)
    copy_names.push_back(shown_name(*copy.store) + (copy.manifest.ok() ? "" : " (wrong)"));
  return fmt::format("{}", fmt::join(copy_names, ", "));
}

void add_row(Table& table, const FoundCheckpoint& found, const Output& output) {
  std::vector<std::string> row{found.run, short_name(found.id), state_text(found), copies_text(found)};
  if (const CheckpointManifest* manifest = found.manifest())
    for (std::string cell :
         {format_bytes(double(manifest->bytes()), output), format_count(manifest->ranks, output),
          age_text(age_s(*manifest)), format_count(manifest->trainer.epoch, output),
          manifest->payload.empty() ? std::string("-") : printable(manifest->payload)})
      row.push_back(std::move(cell));
  table.row(std::move(row));
}

Result<int> run_ls(const CommandContext& context) {
  PENSTOCK_ASSIGN(const NamedStores stores, open_stores(context, true));
  PENSTOCK_ASSIGN(const std::vector<std::string> runs, wanted_runs(stores.existing(), context.options));
  PENSTOCK_ASSIGN(const std::vector<FoundCheckpoint> all, find_checkpoints(stores.existing(), runs));
  Table table({{"run", Align::left},
               {"checkpoint"},
               {"state", Align::left},
               {"on", Align::left},
               {"bytes"},
               {"ranks"},
               {"age"},
               {"epoch"},
               {"payload", Align::left}});
  std::string problems;
  for (const FoundCheckpoint& found : all) {
    if (context.output.json) print_json(to_json(found));
    add_row(table, found, context.output);
    for (const ListedCheckpoint& copy : found.copies)
      if (!copy.manifest.ok()) problems += "damaged: " + printable(copy.manifest.error().message()) + "\n";
  }
  if (context.output.json) return 0;
  print_text(table.empty() ? "no checkpoints\n" : table.text() + (problems.empty() ? "" : "\n" + problems));
  return 0;
}

constexpr OptionSpec kLsOptions[] = {kRunOption};

}  // namespace

extern const CommandInfo checkpoint_ls;
const CommandInfo checkpoint_ls{
    .name = "checkpoint ls",
    .summary = "list checkpoints, their tiers, and whether they are durable",
    .options = kLsOptions,
    .run = &run_ls,
    .synopsis = "penstock checkpoint ls STORE... [--run NAME]",
    .examples = {"penstock checkpoint ls /dev/shm/bb /pfs/ckpt   # one row per checkpoint"},
    .arguments = "STORE...",
    .has_placement = true,
};

}  // namespace penstock
