#include "miniapps/checkpoint/restart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "io_backends/core/json.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/quarantine.hpp"

namespace penstock {
namespace {

constexpr int kMaxTries = 100;  // most calls of choose_once(), if other processes keep removing checkpoints

// Whether this process caused the error (a signal, no memory, a bug). Such an error says nothing about the
// checkpoint.
bool is_failure_of_this_process(Errc code) {
  return code == Errc::interrupted || code == Errc::exhausted || code == Errc::internal;
}

// Success if the training can resume from this copy. Else the error says why not.
Result<void> examine(const ListedCheckpoint& copy, std::string_view run, const RestartRequest& request) {
  if (!copy.manifest) return copy.manifest.error();
  if (request.ranks && copy.manifest->ranks != *request.ranks)
    return make_error(Errc::invalid_argument, "it is from {} ranks, not {}", copy.manifest->ranks,
                      *request.ranks);
  return request.read_files ? copy.store->verify(run, *copy.manifest) : success();
}

// Returns why the copy is rejected, as text. With `quarantine_wrong`, moves a copy with wrong bytes to
// quarantine and adds this to the text.
std::string reject(const ListedCheckpoint& copy, std::string_view run, const CheckpointId& id,
                   const Error& error, bool quarantine_wrong) {
  std::string why = error.message();
  if (!quarantine_wrong) return why;
  const Result<bool> moved = quarantine_if_wrong(*copy.store, run, id, error);
  if (!moved) return why + fmt::format(" (not moved: {})", moved.error().message());
  return *moved ? why + " (moved to quarantine)" : why;
}

Json json_of(const std::vector<RejectedCheckpoint>& rejected) {
  Json rows = Json::array();
  for (const RejectedCheckpoint& one : rejected)
    rows.push_back(
        {{"tier", one.tier}, {"step", one.id.step}, {"generation", one.id.generation}, {"why", one.why}});
  return rows;
}

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const Restart& restart) {
  const Json json{{"run", restart.run},
                  {"store", restart.store == nullptr ? "" : restart.store->uuid()},
                  {"manifest", restart.store == nullptr ? "" : serialize(restart.manifest)},
                  {"rejected", json_of(restart.rejected)},
                  {"lost_steps", restart.lost_steps}};
  const std::string text = one_line(json);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Converts the choice of rank 0 (`bytes`) to a Restart that refers to this rank's own store. An error if this
// rank does not see the chosen checkpoint.
Result<Restart> restart_from(const Bytes& bytes, std::span<CheckpointStore* const> stores) {
  Restart restart;
  std::string uuid;
  std::string manifest;
  try {
    const Json json = Json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    restart.run = json.at("run").get<std::string>();
    restart.lost_steps = json.at("lost_steps").get<uint64_t>();
    for (const Json& row : json.at("rejected"))
      restart.rejected.push_back({row.at("tier").get<std::string>(),
                                  {row.at("step").get<uint64_t>(), row.at("generation").get<uint64_t>()},
                                  row.at("why").get<std::string>()});
    uuid = json.at("store").get<std::string>();
    manifest = json.at("manifest").get<std::string>();
  } catch (const JsonError& problem) {
    return make_error(Errc::internal, "cannot read the checkpoint that rank 0 chose: {}", problem.what());
  }
  if (uuid.empty()) return restart;
  PENSTOCK_ASSIGN(restart.manifest, parse_checkpoint_manifest(manifest, "the manifest that rank 0 chose"));
  const auto own_store = std::find_if(stores.begin(), stores.end(),
                                      [&](const CheckpointStore* store) { return store->uuid() == uuid; });
  if (own_store == stores.end())
    return make_error(Errc::not_found,
                      "rank 0 chose a store that this rank does not have: name the same stores on all ranks");
  restart.store = *own_store;
  PENSTOCK_ASSIGN(const bool is_there, restart.store->has(restart.run, restart.manifest.id));
  if (is_there) return restart;
  return make_error(
      Errc::not_found,
      "'{}', chosen by rank 0, is not visible to this rank in store '{}': all ranks must see the same files",
      CheckpointStore::folder(restart.run, restart.manifest.id), restart.store->tier().name);
}

// Lists the stores once and tries their checkpoints. Returns nothing if a listed copy has disappeared:
// another process has removed it, and may have added others. The caller then tries again.
Result<std::optional<Restart>> choose_once(std::span<CheckpointStore* const> stores, std::string_view run,
                                           const RestartRequest& request) {
  PENSTOCK_ASSIGN(const std::vector<FoundCheckpoint> all, find_checkpoints(stores, run));
  Restart restart;
  restart.run = run;
  if (all.empty()) return std::optional(std::move(restart));
  const uint64_t newest_step = all.back().id.step;
  std::optional<Error> read_error;
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    const CheckpointId& id = found->id;
    if (request.step && id.step != *request.step) continue;
    for (const ListedCheckpoint& copy : found->copies) {
      const auto usable = examine(copy, run, request);
      if (usable) {
        restart.store = copy.store;
        restart.manifest = *copy.manifest;
        restart.lost_steps = newest_step - id.step;
        return std::optional(std::move(restart));
      }
      if (is_failure_of_this_process(usable.error().code)) return usable.error();
      if (usable.error().code == Errc::not_found) return std::optional<Restart>();
      if (!read_error && !is_data_error(usable.error().code) && usable.error().code != Errc::invalid_argument)
        read_error = usable.error();
      restart.rejected.push_back(
          {copy.store->tier().name, id, reject(copy, run, id, usable.error(), request.quarantine_wrong)});
    }
  }
  // A checkpoint that could not be read may be complete, so the training must not start from the beginning.
  if (read_error) return *std::move(read_error);
  restart.lost_steps = newest_step;
  return std::optional(std::move(restart));
}

}  // namespace

Result<Restart> choose_restart(std::span<CheckpointStore* const> stores, std::string_view run,
                               const RestartRequest& request) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    PENSTOCK_ASSIGN(std::optional<Restart> found, choose_once(stores, run, request));
    if (found) return *std::move(found);
    PENSTOCK_TRY(check_interrupt());
  }
  return make_error(Errc::io,
                    "checkpoints of run '{}' are being removed faster than they can be read: wait until the "
                    "training or drain that removes them has ended",
                    run);
}

Result<Restart> choose_restart(std::span<CheckpointStore* const> stores, std::string_view run,
                               const RestartRequest& request, Communicator& ranks) {
  Restart roots_choice;
  PENSTOCK_ASSIGN(const Bytes bytes, on_root(ranks, [&]() -> Result<Bytes> {
                    PENSTOCK_ASSIGN(roots_choice, choose_restart(stores, run, request));
                    return bytes_of(roots_choice);
                  }));
  Result<Restart> chosen =
      ranks.root() ? Result<Restart>(std::move(roots_choice)) : restart_from(bytes, stores);
  PENSTOCK_TRY(all_ok(ranks, chosen));
  return chosen;
}

Json restart_json(const Restart& restart) {
  Json chosen;
  if (restart.store != nullptr)
    chosen = {{"tier", restart.store->tier().name},
              {"role", role_name(restart.store->role())},
              {"durability", restart.store->durability()},
              {"step", restart.manifest.id.step},
              {"generation", restart.manifest.id.generation},
              {"ranks", restart.manifest.ranks},
              {"bytes", restart.manifest.bytes()},
              {"epoch", restart.manifest.trainer.epoch},
              {"step_of_epoch", restart.manifest.trainer.step_of_epoch},
              {"consumed", restart.manifest.trainer.consumed},
              {"snapshot_time", restart.manifest.snapshot_time}};
  return {{"run", restart.run},
          {"chosen", chosen},
          {"rejected", json_of(restart.rejected)},
          {"lost_steps", restart.lost_steps}};
}

}  // namespace penstock
