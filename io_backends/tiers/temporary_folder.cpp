#include "io_backends/tiers/temporary_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "io_backends/files/posix_root.hpp"

namespace penstock {
namespace {

constexpr int kMostNameTries = 8;
constexpr size_t kIdDigits = 8;

std::string lock_name(std::string_view folder) {
  return fmt::format("{}/lock", folder);
}

// Removes the folder with everything in it. If something cannot be removed, it continues with the rest, and
// returns the last error.
Result<void> remove_folder(Backend& backend, const std::string& folder) {
  Namespace& names = backend.names();
  remove_temporary_files(backend, folder);  // from killed writes; list() does not show these files
  std::vector<std::string> objects;
  std::vector<std::string> folders;
  const Result<void> listed = names.list(folder, [&](const Entry& entry) {
    (entry.folder && !entry.link ? folders : objects).push_back(entry.name);
    return true;
  });
  if (!listed.ok() && listed.error().code == Errc::not_found) return success();
  Result<void> removed = listed;
  for (const std::string& below : folders)
    if (Result<void> one = remove_folder(backend, below); !one.ok()) removed = std::move(one);
  // The lock is removed last. So a folder whose removal was interrupted still has it.
  std::stable_partition(objects.begin(), objects.end(),
                        [&](const std::string& object) { return object != lock_name(folder); });
  for (const std::string& object : objects)
    if (Result<void> one = names.remove(object); !one.ok()) removed = std::move(one);
  if (Result<void> last = names.remove(folder); !last.ok() && last.error().code != Errc::not_found)
    removed = std::move(last);
  return removed;
}

std::string draw_name(std::string_view prefix) {
  std::random_device entropy;
  return fmt::format("{}{:08x}", prefix, entropy());
}

}  // namespace

void sweep_dead_folders(Tier& tier, std::string_view prefix, const std::function<void(std::string_view)>& log,
                        const std::function<void(std::string_view)>& log_warning) {
  if (tier.facts.network) return;
  Namespace& names = tier.backend->names();
  std::vector<std::string> folders;
  const Result<void> listed = names.list("", [&](const Entry& entry) {
    const std::string_view id =
        std::string_view(entry.name).substr(std::min(prefix.size(), entry.name.size()));
    const bool has_our_name = entry.folder && !entry.link && entry.name.starts_with(prefix) &&
                              id.size() == kIdDigits &&
                              id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (has_our_name) folders.push_back(entry.name);
    return true;
  });
  if (!listed.ok()) return;
  for (const std::string& folder : folders) {
    // A folder without the file of a lock is kept by the user, and lock() would make the file. Or its removal
    // was interrupted at the end: then it is empty.
    if (!names.stat(lock_name(folder)).ok()) {
      static_cast<void>(names.remove(folder));
      continue;
    }
    const auto lock = names.lock(lock_name(folder));
    if (!lock.ok()) continue;
    if (const Result<void> removed = remove_folder(*tier.backend, folder); removed.ok())
      log(fmt::format("removed '{}' from '{}': a killed process left it", folder, tier.name));
    else
      log_warning(fmt::format("could not remove '{}' from '{}', left by a killed process: {}", folder,
                              tier.name, removed.error().message()));
  }
}

TemporaryFolder::TemporaryFolder(Tier& tier, std::string_view prefix,
                                 std::function<void(std::string_view)> log_warning)
    : tier_(tier), prefix_(prefix), log_warning_(std::move(log_warning)), name_(draw_name(prefix)) {}

TemporaryFolder::~TemporaryFolder() {
  Result<void> removed =
      is_kept_ ? tier_.backend->names().remove(lock_name(name_)) : remove_folder(*tier_.backend, name_);
  if (removed.ok() || (is_kept_ && removed.error().code == Errc::not_found)) return;
  log_warning_(
      fmt::format("could not remove '{}' from '{}': {}", name_, tier_.name, removed.error().message()));
}

void TemporaryFolder::occupy() {
  if (tier_.facts.network) return;
  for (int tries = 0; tries < kMostNameTries; ++tries) {
    auto lock = tier_.backend->names().lock(lock_name(name_));
    if (lock.ok()) {
      lock_ = *std::move(lock);
      return;
    }
    if (lock.error().code != Errc::busy) return;
    name_ = draw_name(prefix_);
  }
}

std::string TemporaryFolder::object(std::string_view kind, uint64_t n) const {
  return fmt::format("{}/{}-{:05}", name_, kind, n);
}

}  // namespace penstock
