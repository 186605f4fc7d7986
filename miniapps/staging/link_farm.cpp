#include "miniapps/staging/link_farm.hpp"

#include <fmt/format.h>

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
  const fs::path below = fs::weakly_canonical(inner, failed);
  const fs::path above = fs::weakly_canonical(outer, failed);
  return !failed && std::ranges::mismatch(above, below).in1 == above.end();
}

// Where a farm is in the making, and where the one before it waits for its end.
fs::path new_farm(const fs::path& farm) {
  return farm.native() + ".penstock-new";
}
fs::path old_farm(const fs::path& farm) {
  return farm.native() + ".penstock-old";
}

class Farmer {
 public:
  Farmer(fs::path farm, const StagingPlan& plan, const std::set<std::string>& out_of_date, const Tier& slow,
         const Tier& fast, bool progress)
      : farm_(std::move(farm)), slow_(slow.root), fast_(fast.root), progress_(progress, "links", 0, "files") {
    for (const PlannedFile& file : plan.files)
      if (!out_of_date.contains(file.name)) names_.insert(file.name);
  }

  Result<FarmOutcome> run() {
    PENSTOCK_TRY(folder(""));
    return outcome_;
  }

 private:
  bool something_staged_below(const std::string& folder) const {
    const auto next = names_.lower_bound(folder + "/");
    return next != names_.end() && next->starts_with(folder + "/");
  }

  Result<void> folder(const std::string& name) {
    PENSTOCK_TRY(check_interrupt());
    std::error_code failed;
    fs::create_directories(farm_ / name, failed);
    if (failed) return failed_at(failed, "cannot make the folder", farm_ / name);
    fs::directory_iterator entries(slow_ / name, failed);
    if (failed) return failed_at(failed, "cannot list", slow_ / name);
    for (; entries != fs::directory_iterator(); entries.increment(failed)) {
      if (failed) return failed_at(failed, "cannot list", slow_ / name);
      PENSTOCK_TRY(entry(*entries, name.empty() ? entries->path().filename().string()
                                                : name + "/" + entries->path().filename().string()));
    }
    return success();
  }

  Result<void> entry(const fs::directory_entry& there, const std::string& name) {
    std::error_code failed;
    const bool folder_here = there.is_directory(failed);
    if (folder_here && (!there.is_symlink(failed) || something_staged_below(name))) return folder(name);
    const bool staged = !folder_here && names_.contains(name) && fs::is_regular_file(fast_ / name, failed);
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
  std::set<std::string> names_;
  Progress progress_;
  FarmOutcome outcome_;
};

class Remover {
 public:
  Remover(const Tier& slow, const Tier& fast) : tiers_{slow.root, fast.root} {}

  // True where nothing is left of it.
  bool remove(const fs::path& path) {
    std::error_code failed;
    const fs::file_status what = fs::symlink_status(path, failed);
    if (what.type() == fs::file_type::not_found) return true;
    if (what.type() == fs::file_type::symlink && is_ours(fs::read_symlink(path, failed))) {
      fs::remove(path, failed);
      return !failed || keep(path);
    }
    if (what.type() != fs::file_type::directory) return keep(path);
    std::vector<fs::path> below;
    for (fs::directory_iterator entries(path, failed); !failed && entries != fs::directory_iterator();
         entries.increment(failed))
      below.push_back(entries->path());
    bool empty = true;
    for (const fs::path& one : below) empty = remove(one) && empty;
    if (!empty) return false;
    fs::remove(path, failed);
    return !failed || keep(path);
  }

  std::vector<std::string> take() {
    std::sort(kept_.begin(), kept_.end());
    return std::move(kept_);
  }

 private:
  bool is_ours(const fs::path& target) const {
    return std::any_of(tiers_.begin(), tiers_.end(), [&](const fs::path& tier) {
      return std::ranges::mismatch(tier, target).in1 == tier.end();
    });
  }
  bool keep(const fs::path& path) {
    kept_.push_back(path.string());
    return false;
  }

  const std::vector<fs::path> tiers_;
  std::vector<std::string> kept_;
};

}  // namespace

Result<void> check_farm(const fs::path& farm, const Tier& slow, const Tier& fast, bool ours) {
  for (const Tier* tier : {&slow, &fast}) {
    if (!tier->backend->native_path(""))
      return make_error(
          Errc::invalid_argument,
          fmt::format("links lead to files, and tier '{}' is no folder of this machine", tier->name));
    if (is_inside(farm, tier->root))
      return make_error(
          Errc::invalid_argument,
          fmt::format("'{}' is inside tier '{}': put the links somewhere else", farm.native(), tier->name));
  }
  std::error_code failed;
  if (ours || !fs::exists(fs::symlink_status(farm, failed))) return success();
  if (fs::is_directory(fs::symlink_status(farm, failed)) && fs::is_empty(farm, failed) && !failed)
    return success();
  return make_error(
      Errc::already_exists,
      fmt::format("'{}' is there already, and was not made by this plan: name a new folder for the links",
                  farm.native()));
}

Result<FarmOutcome> make_farm(const fs::path& farm, const StagingPlan& plan,
                              const std::set<std::string>& out_of_date, const Tier& slow, const Tier& fast,
                              bool progress) {
  const fs::path made = new_farm(farm);
  const fs::path before = old_farm(farm);
  const auto clear = [&](const fs::path& path) -> Result<void> {
    Remover remover(slow, fast);
    if (remover.remove(path)) return success();
    return make_error(Errc::already_exists, fmt::format("'{}' holds what is no link of ours: '{}'",
                                                        path.native(), remover.take().front()));
  };
  PENSTOCK_TRY(clear(made));
  PENSTOCK_TRY(clear(before));
  Result<FarmOutcome> done = Farmer(made, plan, out_of_date, slow, fast, progress).run();
  if (!done.ok()) {
    static_cast<void>(clear(made));
    return done;
  }
  std::error_code failed;
  if (fs::exists(fs::symlink_status(farm, failed))) {
    fs::rename(farm, before, failed);
    if (failed) return failed_at(failed, "cannot replace", farm);
  }
  fs::rename(made, farm, failed);
  if (failed) return failed_at(failed, "cannot make the folder", farm);
  PENSTOCK_TRY(clear(before));
  return done;
}

bool farm_is_there(const fs::path& farm) {
  return std::ranges::any_of(std::array{new_farm(farm), old_farm(farm), farm}, [](const fs::path& path) {
    std::error_code failed;
    return fs::exists(fs::symlink_status(path, failed));
  });
}

Result<std::vector<std::string>> remove_farm(const fs::path& farm, const Tier& slow, const Tier& fast) {
  Remover remover(slow, fast);
  for (const fs::path& path : {new_farm(farm), old_farm(farm), farm}) {
    PENSTOCK_TRY(check_interrupt());
    remover.remove(path);
  }
  return remover.take();
}

}  // namespace penstock
