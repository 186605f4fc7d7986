#include "datagen/target_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "io_backends/base/posix_root.hpp"

namespace penstock {

Result<bool> folder_is_there(Tier& tier, std::string_view flag) {
  const Result<Entry> root = tier.backend->names().stat("");
  if (root.ok() && root->folder) return true;
  if (root.ok() || root.error().sys_errno == ENOTDIR)
    return make_error(Errc::invalid_argument,
                      fmt::format("'{}' is a file or below one; {} takes a folder", tier.root, flag));
  if (root.error().code == Errc::not_found) return false;
  return root.error();
}

Result<std::string> first_foreign_entry(Tier& tier, std::span<const std::string_view> ours) {
  Namespace& names = tier.backend->names();
  std::string found;
  const auto look_for = [&found](auto is_ours) {
    return [&found, is_ours](const Entry& entry) {
      if (is_ours(std::string_view(entry.name))) return true;
      found = entry.name;
      return false;
    };
  };
  Result<void> listed = names.list(
      "", look_for([](std::string_view name) { return name == ".penstock" || name == "lost+found"; }));
  if (listed.ok() && found.empty())
    listed = names.list(".penstock", look_for([ours](std::string_view name) {
                          return std::ranges::find(ours, name) != ours.end() ||
                                 name.substr(name.rfind('/') + 1).starts_with(kTemporaryPrefix);
                        }));
  if (!listed.ok() && listed.error().code != Errc::not_found) return std::move(listed).error();
  return found;
}

}  // namespace penstock
