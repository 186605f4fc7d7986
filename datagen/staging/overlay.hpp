// A corpus whose objects lie on two tiers: those of a staging plan on the fast one, all others where they
// were. `read` and `train` take it by --overlay PLAN, in place of the corpus's own tier.
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

// The tier's own folder, where it should have one and there is none.
std::optional<std::filesystem::path> missing_folder(const Tier& tier);

// Opens a tier of a plan under its name there, which no other open tier may have. invalid_argument where its
// path means another folder than when the plan was made; not_found where the folder is missing.
Result<Tier> open_planned_tier(const PlannedTier& planned);

// Describes how the file differs from the one that the plan was made for; "" where it does not. The time of
// its last change counts where the tier has native paths.
std::string changed_since(Tier& slow, const PlannedFile& file);

// Reads an object of the plan from the fast tier, any other from the slow one; "prefix/" stands before the
// names that it is given in both. It only reads: creating, renaming and removing are `unsupported`. Listings
// are the slow tier's. Its queues are threads'.
struct OverlayHow {
  Tier slow;
  Tier fast;
  std::string prefix;                     // "" or a folder without its slash
  std::unordered_set<std::string> names;  // on the fast tier, with the prefix
};
std::unique_ptr<Backend> overlay(OverlayHow how);

// Puts the two tiers in the place of the corpus's own. invalid_argument where the corpus is not in the
// plan's slow tier, or where nothing was to be staged; not_found with the remedy where a copy is missing;
// corrupt where a copy has another size, or its original was changed since.
Result<void> lay_over(Corpus& corpus, const std::filesystem::path& plan_file);

inline constexpr MetricInfo kOverlayBytesRead{"tier_bytes_read.*", "B"};  // "slow", "fast"

// Of a tier that lay_over() made: both sides into the record (roles `slow` and `fast`), with the bytes read
// from each, tier_bytes_read.slow and .fast; of any other tier nothing. `sum` adds over ranks, and is called
// alike on all of them.
Result<void> record_overlay(const Tier& tier, const std::function<Result<std::uint64_t>(std::uint64_t)>& sum,
                            Trial& trial);

}  // namespace penstock
