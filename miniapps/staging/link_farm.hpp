// A folder of links for programs that know nothing of tiers: the tree of the slow tier, each file a link to
// its staged copy, or to the original where there is none.
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
  std::string path{};  // "": none was made
  std::uint64_t to_fast = 0;
  std::uint64_t to_slow = 0;
};

// Whether a farm may be made there: `farm` is not there or empty, or one of ours (`ours`), is in neither
// tier, and both tiers are folders. Without it, what to do.
Result<void> check_farm(const std::filesystem::path& farm, const Tier& slow, const Tier& fast, bool ours);

// Made next to its name and put there whole; one that is there is replaced. Folders that are links are links
// in the farm, too, unless something behind them is staged. A file of the plan that is not on the fast tier
// counts as not staged, and so do `out_of_date` ones, whose copies are not what their originals are now.
Result<FarmOutcome> make_farm(const std::filesystem::path& farm, const StagingPlan& plan,
                              const std::set<std::string>& out_of_date, const Tier& slow, const Tier& fast,
                              bool progress);

// Whether anything is there of what make_farm() made, also when it was killed.
bool farm_is_there(const std::filesystem::path& farm);

// Removes links into the two tiers, and folders that are empty then, with what a killed make_farm() left.
// Returns what else is there, and stays.
Result<std::vector<std::string>> remove_farm(const std::filesystem::path& farm, const Tier& slow,
                                             const Tier& fast);

}  // namespace penstock
