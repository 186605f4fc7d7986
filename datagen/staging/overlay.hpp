// A corpus whose objects are on two tiers: those of a staging plan on the fast tier, all others on the slow
// one. `read` and `train` use it with --overlay PLAN, instead of the corpus's own tier.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "datagen/corpus/corpus.hpp"
#include "datagen/staging/staging_plan.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/trial.hpp"

namespace penstock {

inline constexpr OptionSpec kOverlayOption{
    .name = "overlay",
    .role = OptionRole::target,
    .value = "PLAN",
    .help =
        "each object from its tier, as `penstock stage apply PLAN` has laid them out: in place of the "
        "corpus's own",
    .group = "Corpus"};

// The root folder of the tier, if it does not exist. Nothing if it exists, or if the tier needs no folder.
std::optional<std::filesystem::path> missing_folder(const Tier& tier);

// Opens a tier of a plan under its name in the plan. No other open tier may have this name.
// `invalid_argument` if its path leads to another folder than when the plan was made. `not_found` if the
// folder is missing.
Result<Tier> open_planned_tier(const PlannedTier& planned);

// Describes how the file differs from the one in the plan; "" if it does not. Compares the modification time
// too if the tier has native paths.
std::string describe_change(Tier& slow, const PlannedFile& file);

// The tiers of an overlay, from which make_overlay() makes a back end. It reads objects of the plan from the
// fast tier and all others from the slow one. Puts "prefix/" before each name in both. It is read-only:
// creating, renaming and removing are `unsupported`. Listings come from the slow tier. Its queues use
// threads.
struct OverlayTiers {
  Tier slow;
  Tier fast;
  std::string prefix;                            // "" or a folder without a final slash
  std::unordered_set<std::string> staged_names;  // objects on the fast tier, with the prefix
};
std::unique_ptr<Backend> make_overlay(OverlayTiers tiers);

// Replaces the corpus's tier by the overlay of the plan's two tiers. `invalid_argument` if the corpus is not
// in the plan's slow tier, or if the plan stages nothing. `not_found`, with the remedy, if a copy is missing.
// `corrupt` if a copy has another size, or its original was changed later.
Result<void> apply_overlay(Corpus& corpus, const std::filesystem::path& plan_file);

inline constexpr MetricInfo kOverlayBytesRead{"tier_bytes_read.*", "B"};  // "slow", "fast"

// For a tier that apply_overlay() made: writes both tiers (roles `slow` and `fast`) and the bytes read from
// each into the record (tier_bytes_read.slow and .fast). Does nothing for other tiers. `sum` returns the sum
// of a number over all ranks, so every rank must call it equally often.
Result<void> record_overlay(const Tier& tier, const std::function<Result<uint64_t>(uint64_t)>& sum,
                            Trial& trial);

}  // namespace penstock
