#include "miniapps/staging/link_farm.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <system_error>
#include <utility>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

Error failed_at(const std::error_code& code, std::string_view operation, const fs::path& path) {
  return errno_error(code.value(), operation, path.native());
}

bool is_inside(const fs::path& inner, const fs::path& outer) {
  std::error_code failed;
  const fs::path inner_path = fs::weakly_canonical(inner, failed);
  const fs::path outer_path = fs::weakly_canonical(outer, failed);
  return !failed && std::ranges::mismatch(outer_path, inner_path).in1 == outer_path.end();
}

// new_farm(): the path of a farm while it is being made. old_farm(): the path to which a replaced farm is
// renamed before it is removed.
fs::path new_farm(const fs::path& farm) {
  return farm.native() + ".penstock-new";
}
fs::path old_farm(const fs::path& farm) {
  return farm.native() + ".penstock-old";
}

class LinkFarmMaker {
 public:
  LinkFarmMaker(fs::path farm, const StagingPlan& plan, const std::set<std::string>& out_of_date,
                const Tier& slow, const Tier& fast, bool progress)
      : farm_(std::move(farm)), slow_(slow.root), fast_(fast.root), progress_(progress, "links", 0, "files") {
    for (const PlannedFile& file : plan.files)
      if (!out_of_date.contains(file.name)) staged_names_.insert(file.name);
  }

  Result<FarmOutcome> run() {
    PENSTOCK_TRY(link_folder(""));
    return outcome_;
  }

 private:
  bool something_staged_below(const std::string& folder) const {
    const auto next = staged_names_.lower_bound(folder + "/");
    return next != staged_names_.end() && next->starts_with(folder + "/");
  }

  Result<void> link_folder(const std::string& name) {
    PENSTOCK_TRY(check_interrupt());
    std::error_code failed;
    fs::create_directories(farm_ / name, failed);
    if (failed) return failed_at(failed, "cannot make the folder", farm_ / name);
    fs::directory_iterator entries(slow_ / name, failed);
    if (failed) return failed_at(failed, "cannot list", slow_ / name);
    for (; entries != fs::directory_iterator(); entries.increment(failed)) {
      if (failed) return failed_at(failed, "cannot list", slow_ / name);
      PENSTOCK_TRY(link_entry(*entries, name.empty() ? entries->path().filename().string()
                                                     : name + "/" + entries->path().filename().string()));
    }
    return success();
  }

  Result<void> link_entry(const fs::directory_entry& entry, const std::string& name) {
    std::error_code failed;
    const bool is_folder = entry.is_directory(failed);
    if (is_folder && (!entry.is_symlink(failed) || something_staged_below(name))) return link_folder(name);
    const bool staged =
        !is_folder && staged_names_.contains(name) && fs::is_regular_file(fast_ / name, failed);
    const fs::path target = (staged ? fast_ : slow_) / name;
    fs::create_symlink(target, farm_ / name, failed);
    if (failed) return failed_at(failed, "cannot make the link", farm_ / name);
    ++(staged ? outcome_.to_fast : outcome_.to_slow);
    progress_.advance(1);
    return success();
  }

  const fs::path farm_;
  const fs::path slow_;
  const fs::path fast_;
  std::set<std::string> staged_names_;
  Progress progress_;
  FarmOutcome outcome_;
};

bool is_link_of_ours(const fs::path& target, const Tier& slow, const Tier& fast) {
  const std::array<fs::path, 2> roots{slow.root, fast.root};
  return std::any_of(roots.begin(), roots.end(), [&](const fs::path& root) {
    return std::ranges::mismatch(root, target).in1 == root.end();
  });
}

// Removes links that lead into the two tiers, and folders that are then empty. All other files and links
// stay, and their paths are added to `kept`. So are the paths of entries that cannot be removed.
void remove_links(const fs::path& path, const Tier& slow, const Tier& fast, std::vector<std::string>& kept) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (status.type() == fs::file_type::not_found) return;
  const bool is_our_link =
      status.type() == fs::file_type::symlink && is_link_of_ours(fs::read_symlink(path, failed), slow, fast);
  if (!is_our_link && status.type() != fs::file_type::directory) {
    kept.push_back(path.string());
    return;
  }
  const size_t kept_before = kept.size();
  std::vector<fs::path> children;
  if (!is_our_link)
    for (fs::directory_iterator entries(path, failed); !failed && entries != fs::directory_iterator();
         entries.increment(failed))
      children.push_back(entries->path());
  for (const fs::path& one : children) remove_links(one, slow, fast, kept);
  if (kept.size() != kept_before) return;
  fs::remove(path, failed);
  if (failed) kept.push_back(path.string());
}

}  // namespace

Result<void> check_farm(const fs::path& farm, const Tier& slow, const Tier& fast, bool made_by_plan) {
  for (const Tier* tier : {&slow, &fast}) {
    if (!tier->backend->native_path(""))
      return make_error(Errc::invalid_argument,
                        "tier '{}' is not a local folder, so links cannot lead to it: leave out --link-farm",
                        tier->name);
    if (is_inside(farm, tier->root))
      return make_error(Errc::invalid_argument, "'{}' is inside tier '{}': name another folder for the links",
                        farm.native(), tier->name);
  }
  std::error_code failed;
  if (made_by_plan || !fs::exists(fs::symlink_status(farm, failed))) return success();
  if (fs::is_directory(fs::symlink_status(farm, failed)) && fs::is_empty(farm, failed) && !failed)
    return success();
  return make_error(Errc::already_exists,
                    "'{}' already exists and does not belong to this plan: name a new folder for the links",
                    farm.native());
}

Result<FarmOutcome> make_farm(const fs::path& farm, const StagingPlan& plan,
                              const std::set<std::string>& out_of_date, const Tier& slow, const Tier& fast,
                              bool progress) {
  const fs::path new_path = new_farm(farm);
  const fs::path old_path = old_farm(farm);
  const auto clear = [&](const fs::path& path) -> Result<void> {
    std::vector<std::string> kept;
    remove_links(path, slow, fast, kept);
    if (kept.empty()) return success();
    return make_error(Errc::already_exists,
                      "'{}' contains a file that is not a link of this plan: '{}'. Move it first",
                      path.native(), *std::min_element(kept.begin(), kept.end()));
  };
  PENSTOCK_TRY(clear(new_path));
  PENSTOCK_TRY(clear(old_path));
  Result<FarmOutcome> done = LinkFarmMaker(new_path, plan, out_of_date, slow, fast, progress).run();
  if (!done.ok()) {
    static_cast<void>(clear(new_path));
    return done;
  }
  std::error_code failed;
  if (fs::exists(fs::symlink_status(farm, failed))) {
    fs::rename(farm, old_path, failed);
    if (failed) return failed_at(failed, "cannot replace", farm);
  }
  fs::rename(new_path, farm, failed);
  if (failed) return failed_at(failed, "cannot make the folder", farm);
  PENSTOCK_TRY(clear(old_path));
  done->path = farm.string();
  return done;
}

bool farm_is_there(const fs::path& farm) {
  return std::ranges::any_of(std::array{new_farm(farm), old_farm(farm), farm}, [](const fs::path& path) {
    std::error_code failed;
    return fs::exists(fs::symlink_status(path, failed));
  });
}

Result<std::vector<std::string>> remove_farm(const fs::path& farm, const Tier& slow, const Tier& fast) {
  std::vector<std::string> kept;
  for (const fs::path& path : {new_farm(farm), old_farm(farm), farm}) {
    PENSTOCK_TRY(check_interrupt());
    remove_links(path, slow, fast, kept);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace penstock
