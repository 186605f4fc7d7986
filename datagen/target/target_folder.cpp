#include "datagen/target/target_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "io_backends/files/posix_root.hpp"

namespace penstock {
namespace {

// An error if the root, or a parent of it, is a link whose target does not exist: no folder can be made of
// it.
Result<void> check_no_dangling_link(Tier& tier, std::string_view flag) {
  const auto root = tier.backend->native_path("");
  if (!root) return success();
  std::error_code failed;
  std::filesystem::path path = std::filesystem::absolute(*root, failed);
  while (!failed && !std::filesystem::exists(path, failed) && path.has_relative_path()) {
    failed.clear();
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, failed)))
      return make_error(
          Errc::invalid_argument,
          fmt::format("'{}' is a link to nothing ('{}'): make that folder first, or give {} another one",
                      path.native(), std::filesystem::read_symlink(path, failed).native(), flag));
    failed.clear();
    path = path.parent_path();
  }
  return success();
}

}  // namespace

Result<bool> folder_exists(Tier& tier, std::string_view flag) {
  const Result<Entry> root = tier.backend->names().stat("");
  if (root.ok() && root->folder) return true;
  if (root.ok() || root.error().sys_errno == ENOTDIR)
    return make_error(Errc::invalid_argument,
                      fmt::format("'{}' is a file or below one; {} takes a folder", tier.root, flag));
  if (root.error().code != Errc::not_found) return root.error();
  PENSTOCK_TRY(check_no_dangling_link(tier, flag));
  return false;
}

Result<std::string> first_foreign_entry(Tier& tier, std::span<const std::string_view> own_names) {
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
    listed = names.list(".penstock", look_for([own_names](std::string_view name) {
                          return std::ranges::find(own_names, name) != own_names.end() ||
                                 name.substr(name.rfind('/') + 1).starts_with(kTemporaryPrefix);
                        }));
  if (!listed.ok() && listed.error().code != Errc::not_found) return std::move(listed).error();
  return found;
}

}  // namespace penstock
