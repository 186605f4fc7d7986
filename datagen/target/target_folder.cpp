#include "datagen/target/target_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "io_backends/files/posix_root.hpp"

namespace penstock {
namespace {

// Fails if the root, or a parent of it, is a link whose target does not exist: a folder cannot be made there.
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
          "'{}' is a broken link to '{}': create that folder first, or choose another folder for {}",
          path.native(), std::filesystem::read_symlink(path, failed).native(), flag);
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
    return make_error(Errc::invalid_argument, "'{}' is a file or below one; {} needs a folder", tier.root,
                      flag);
  if (root.error().code != Errc::not_found) return root.error();
  PENSTOCK_TRY(check_no_dangling_link(tier, flag));
  return false;
}

Result<std::string> first_foreign_entry(Tier& tier, std::span<const std::string_view> own_names) {
  Namespace& names = tier.backend->names();
  std::string foreign_name;
  const auto find_foreign = [&foreign_name](auto is_own) {
    return [&foreign_name, is_own](const Entry& entry) {
      if (is_own(std::string_view(entry.name))) return true;
      foreign_name = entry.name;
      return false;
    };
  };
  Result<void> listed = names.list(
      "", find_foreign([](std::string_view name) { return name == ".penstock" || name == "lost+found"; }));
  if (listed.ok() && foreign_name.empty())
    listed = names.list(".penstock", find_foreign([own_names](std::string_view name) {
                          return std::ranges::find(own_names, name) != own_names.end() ||
                                 name.substr(name.rfind('/') + 1).starts_with(kTemporaryPrefix);
                        }));
  if (!listed.ok() && listed.error().code != Errc::not_found) return std::move(listed).error();
  return foreign_name;
}

}  // namespace penstock
