// penstock checkpoint status: shows what each store is, how full it is, and which processes use it.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint_subcommands/checkpoint_options.hpp"
#include "miniapps/checkpoint_subcommands/stores.hpp"
#include "results/record/environment.hpp"
#include "results/record/record.hpp"

namespace penstock {
namespace {

struct HeldLock {
  std::string run;
  std::string purpose;  // "save", "drain"
  std::string holder;   // the text that the process wrote into the lock file: process, host, boot
};

struct StoreStatus {
  const CheckpointStore* store = nullptr;
  uint64_t checkpoints = 0, bytes = 0, wrong = 0;
  uint64_t pending = 0, quarantined = 0, trash = 0;
  std::optional<uint64_t> backlog_bytes;  // not durable yet; none: a slow store, or no slow store was named
  std::optional<uint64_t> room_bytes;     // space for checkpoints; none: the back end does not know it
  std::optional<std::vector<HeldLock>> locks;
};

// Returns the text in the lock file, which the process that holds the lock wrote. Returns nothing if no
// process holds the lock.
Result<std::optional<std::string>> holder_of(const std::filesystem::path& path) {
  const Fd file(retry_eintr([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!file && errno == ENOENT) return std::optional<std::string>();
  if (!file) return errno_error(errno, "cannot inspect the lock", path.string());
  // Asks whether a process holds a lock on the file, without taking one.
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(file.get(), F_OFD_GETLK, &lock) != 0)
    return errno_error(errno, "cannot inspect the lock", path.string());
  if (lock.l_type == F_UNLCK) return std::optional<std::string>();
  std::array<char, 512> text{};
  const ssize_t length = ::pread(file.get(), text.data(), text.size(), 0);
  std::string holder(text.data(), length > 0 ? size_t(length) : 0);
  while (!holder.empty() && holder.back() == '\n') holder.pop_back();
  return std::optional<std::string>(std::move(holder));
}

// Lists the locks that processes hold. Takes no lock itself, so that a process that starts meanwhile does not
// find the run busy. Returns nothing if the tier has no files on this machine.
Result<std::optional<std::vector<HeldLock>>> held_locks(const CheckpointStore& store) {
  Backend& backend = *store.tier().backend;
  std::vector<HeldLock> held;
  if (!backend.native_path("")) return std::optional<std::vector<HeldLock>>();
  std::vector<std::string> names;
  const Result<void> listed = backend.names().list(kStoreLocks, [&](const Entry& entry) {
    if (!entry.folder) names.push_back(entry.name);
    return true;
  });
  if (!listed.ok() && listed.error().code != Errc::not_found) return listed.error();
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string file(last_part(name));
    const size_t dot = file.rfind('.');
    const auto path = backend.native_path(path_in(kStoreLocks, file));
    if (dot == std::string::npos || !path) continue;
    PENSTOCK_ASSIGN(std::optional<std::string> holder, holder_of(*path));
    if (holder) held.push_back({file.substr(0, dot), file.substr(dot + 1), *std::move(holder)});
  }
  return std::optional<std::vector<HeldLock>>(std::move(held));
}

Result<uint64_t> entry_count(const CheckpointStore& store, std::string_view folder) {
  uint64_t count = 0;
  const Result<void> listed = store.tier().backend->names().list(folder, [&](const Entry&) {
    ++count;
    return true;
  });
  if (!listed.ok() && listed.error().code != Errc::not_found) return listed.error();
  return count;
}

Result<StoreStatus> inspect_store(const CheckpointStore& store) {
  StoreStatus status{.store = &store, .backlog_bytes = {}, .room_bytes = {}, .locks = {}};
  PENSTOCK_ASSIGN(status.pending, entry_count(store, "tmp"));
  PENSTOCK_ASSIGN(status.quarantined, entry_count(store, "quarantine"));
  PENSTOCK_ASSIGN(status.trash, entry_count(store, "trash"));
  PENSTOCK_ASSIGN(status.locks, held_locks(store));
  if (const Result<uint64_t> room = store.free_space(); room.ok()) status.room_bytes = *room;
  return status;
}

// Counts each checkpoint for the stores that have it. For a fast store, also adds up the bytes that no slow
// store has.
void add_checkpoints(std::vector<StoreStatus>& all, const std::vector<FoundCheckpoint>& found) {
  const bool slow_known = std::any_of(all.begin(), all.end(), [](const StoreStatus& status) {
    return status.store->role() == StoreRole::slow;
  });
  for (StoreStatus& status : all) {
    if (slow_known && status.store->role() == StoreRole::fast) status.backlog_bytes = 0;
    for (const FoundCheckpoint& each : found) {
      for (const ListedCheckpoint& copy : each.copies) {
        if (status.store != copy.store) continue;
        ++status.checkpoints;
        status.wrong += copy.manifest.ok() ? 0U : 1U;
        const uint64_t bytes = copy.manifest.ok() ? copy.manifest->bytes() : 0;
        status.bytes += bytes;
        if (status.backlog_bytes && !each.is_durable()) *status.backlog_bytes += bytes;
      }
    }
  }
}

Json locks_json(const std::optional<std::vector<HeldLock>>& locks) {
  if (!locks) return {};
  Json json = Json::array();
  for (const HeldLock& lock : *locks)
    json.push_back({{"run", lock.run}, {"what", lock.purpose}, {"holder", lock.holder}});
  return json;
}

Json to_json(const StoreStatus& status) {
  return {{"kind", "store"},
          {"tier", tier_json(status.store->tier())},
          {"role", role_name(status.store->role())},
          {"uuid", status.store->uuid()},
          {"durability", status.store->durability()},
          {"checkpoints", status.checkpoints},
          {"bytes", status.bytes},
          {"wrong", status.wrong},
          {"room_bytes", status.room_bytes ? Json(*status.room_bytes) : Json()},
          {"backlog_bytes", status.backlog_bytes ? Json(*status.backlog_bytes) : Json()},
          {"in_the_making", status.pending},
          {"quarantined", status.quarantined},
          {"trash", status.trash},
          {"locks", locks_json(status.locks)}};
}

void print_all(const std::vector<StoreStatus>& all, const Output& output) {
  Table table({{"store", Align::left},
               {"role", Align::left},
               {"durability", Align::left},
               {"checkpoints"},
               {"bytes"},
               {"room"},
               {"backlog"},
               {"pending"},
               {"quarantine"},
               {"uuid", Align::left}});
  const auto size = [&](const std::optional<uint64_t>& bytes) {
    return bytes ? format_bytes(double(*bytes), output) : std::string("-");
  };
  std::string text;
  for (const StoreStatus& status : all) {
    const CheckpointStore& store = *status.store;
    const std::string name = printable(store.tier().name);
    table.row({name, std::string(role_name(store.role())), store.durability(),
               format_count(status.checkpoints, output), size(status.bytes), size(status.room_bytes),
               size(status.backlog_bytes), format_count(status.pending, output),
               format_count(status.quarantined, output), store.uuid()});
    if (status.wrong > 0)
      text += fmt::format("{}: {} a damaged manifest; to list them: penstock checkpoint verify {}\n", name,
                          count_of(status.wrong, "checkpoint has", "checkpoints have"),
                          shell_word(store.tier().spec));
    if (!status.locks) text += fmt::format("{}: the processes that use it are unknown\n", name);
    if (status.locks)
      for (const HeldLock& lock : *status.locks)
        text += fmt::format("{}: '{}' is locked for {} by {}\n", name, printable(lock.run),
                            printable(lock.purpose), printable(lock.holder));
  }
  print_text(table.text() + text);
}

Result<int> run_status(const CommandContext& context) {
  PENSTOCK_ASSIGN(const NamedStores stores, open_stores(context, true));
  const std::vector<CheckpointStore*> existing = stores.existing();
  PENSTOCK_ASSIGN(const std::vector<std::string> runs, wanted_runs(existing, context.options));
  PENSTOCK_ASSIGN(const std::vector<FoundCheckpoint> found, find_checkpoints(existing, runs));
  std::vector<StoreStatus> all;
  for (const CheckpointStore* store : existing) {
    PENSTOCK_ASSIGN(StoreStatus status, inspect_store(*store));
    all.push_back(std::move(status));
  }
  add_checkpoints(all, found);
  if (context.output.json)
    for (const StoreStatus& status : all) print_json(to_json(status));
  else
    print_all(all, context.output);
  return 0;
}

constexpr OptionSpec kStatusOptions[] = {kRunOption};

}  // namespace

extern const CommandInfo checkpoint_status;
const CommandInfo checkpoint_status{
    .name = "checkpoint status",
    .summary = "show stores: durable checkpoints, drain backlog, free space",
    .options = kStatusOptions,
    .run = &run_status,
    .synopsis = "penstock checkpoint status STORE... [--run NAME]",
    .examples = {"penstock checkpoint status /dev/shm/bb /pfs/ckpt   # one row per store"},
    .arguments = "STORE...",
    .has_placement = true,
};

}  // namespace penstock
