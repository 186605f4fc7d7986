// A link farm for programs that know nothing of tiers: a folder with the tree of the slow tier. Each file is
// a symbolic link to its staged copy or, without one, to the original.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "datagen/staging/staging_plan.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

struct FarmOutcome {
  std::string path{};  // "": no farm was made
  uint64_t to_fast = 0;
  uint64_t to_slow = 0;
};

// Checks that a farm may be made at `farm`: it does not exist, is empty, or was made by this plan
// (`made_by_plan`); it is inside neither tier; both tiers are folders. The error says what to do.
Result<void> check_farm(const std::filesystem::path& farm, const Tier& slow, const Tier& fast,
                        bool made_by_plan);

// Makes the farm under a temporary name and renames it when it is complete; replaces an existing farm. A
// symbolic link to a folder on the slow tier becomes one link in the farm, unless a file below it is staged.
// A file of the plan counts as not staged if it is missing on the fast tier, or if it is in `out_of_date`:
// its copy no longer matches its original.
Result<FarmOutcome> make_farm(const std::filesystem::path& farm, const StagingPlan& plan,
                              const std::set<std::string>& out_of_date, const Tier& slow, const Tier& fast,
                              bool progress);

// Whether there is a farm, or a part of one that a killed make_farm() left.
bool farm_is_there(const std::filesystem::path& farm);

// Removes links that lead into the two tiers, and folders that are then empty. Does the same in the temporary
// folders that a killed make_farm() left. Returns the paths of the files and links that stay, and of entries
// that cannot be removed.
Result<std::vector<std::string>> remove_farm(const std::filesystem::path& farm, const Tier& slow,
                                             const Tier& fast);

}  // namespace penstock
