#include "io_backends/tiers/probe_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "io_backends/files/posix_root.hpp"

namespace penstock {
namespace {

constexpr int kMostNameTries = 8;
constexpr std::string_view kProbePrefix = "penstock-probe-";

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
  for (const std::string& object : objects)
    if (Result<void> one = names.remove(object); !one.ok()) removed = std::move(one);
  if (Result<void> last = names.remove(folder); !last.ok() && last.error().code != Errc::not_found)
    removed = std::move(last);
  return removed;
}

std::string lock_name(std::string_view folder) {
  return fmt::format("{}/lock", folder);
}

std::string draw_name() {
  std::random_device entropy;
  return fmt::format("{}{:08x}", kProbePrefix, entropy());
}

}  // namespace

void sweep_dead_probes(Tier& tier, const std::function<void(std::string_view)>& log,
                       const std::function<void(std::string_view)>& log_warning) {
  if (tier.facts.network) return;
  Namespace& names = tier.backend->names();
  std::vector<std::string> folders;
  const Result<void> listed = names.list("", [&](const Entry& entry) {
    const std::string_view id =
        std::string_view(entry.name).substr(std::min(kProbePrefix.size(), entry.name.size()));
    const bool is_probe = entry.folder && !entry.link && entry.name.starts_with(kProbePrefix) &&
                          id.size() == 8 &&
                          id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (is_probe) folders.push_back(entry.name);
    return true;
  });
  if (!listed.ok()) return;
  for (const std::string& folder : folders) {
    const auto lock = names.lock(lock_name(folder));
    if (!lock.ok()) continue;
    if (const Result<void> removed = remove_folder(*tier.backend, folder); removed.ok())
      log(fmt::format("removed '{}' from '{}': a killed probe left it", folder, tier.name));
    else
      log_warning(fmt::format("could not remove '{}' from '{}', left by a killed probe: {}", folder,
                              tier.name, removed.error().message()));
  }
}

ProbeFolder::ProbeFolder(Tier& tier, std::function<void(std::string_view)> log_warning)
    : tier_(tier), log_warning_(std::move(log_warning)), name_(draw_name()) {}

ProbeFolder::~ProbeFolder() {
  if (const Result<void> removed = remove_folder(*tier_.backend, name_); !removed.ok())
    log_warning_(
        fmt::format("could not remove '{}' from '{}': {}", name_, tier_.name, removed.error().message()));
}

void ProbeFolder::occupy() {
  if (tier_.facts.network) return;
  for (int tries = 0; tries < kMostNameTries; ++tries) {
    auto lock = tier_.backend->names().lock(lock_name(name_));
    if (lock.ok()) {
      lock_ = *std::move(lock);
      return;
    }
    if (lock.error().code != Errc::busy) return;
    name_ = draw_name();
  }
}

std::string ProbeFolder::object(std::string_view kind, uint64_t n) const {
  return fmt::format("{}/{}-{:05}", name_, kind, n);
}

}  // namespace penstock
