// An overlay is a corpus whose objects are on two tiers. Those of a staging plan are on the fast tier, all
// others are on the slow one. With --overlay PLAN, `read` and `train` read from the overlay instead of from
// the corpus's own tier.
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
    .help = "read each object from the tier that PLAN assigns to it (first run: penstock stage apply PLAN)",
    .group = "Corpus"};

// Returns the root folder of the tier if that folder does not exist. Returns nothing if it exists, or if the
// tier needs no folder.
std::optional<std::filesystem::path> missing_folder(const Tier& tier);

// Opens a tier of a plan, with the name that it has in the plan. Fails with `invalid_argument` if the tier's
// path leads to a different folder than when the plan was made. Fails with `not_found` if the folder is
// missing.
Result<Tier> open_planned_tier(const PlannedTier& planned);

// Describes how a file of the slow tier differs from what the plan says. Returns "" if it does not differ.
// Compares the size and, if the tier has native paths, the modification time.
std::string describe_change(Tier& slow, const PlannedFile& file);

// The two tiers of an overlay, from which make_overlay() makes a back end. This back end reads the objects in
// `staged_names` from the fast tier and all others from the slow one. It puts "prefix/" before each name on
// either tier.
// The back end is read-only: creating, renaming and removing fail with `unsupported`. Its listings are those
// of the slow tier. Its queues use threads.
struct OverlayTiers {
  Tier slow;
  Tier fast;
  std::string prefix;                            // "" or a folder without a final slash
  std::unordered_set<std::string> staged_names;  // names of the objects on the fast tier, with the prefix
};
std::unique_ptr<Backend> make_overlay(OverlayTiers tiers);

// Makes the corpus read from the overlay: replaces its tier by one that joins the two tiers of the plan.
// Fails with `invalid_argument` if the corpus is not in the plan's slow tier, or if the plan stages nothing.
// Fails with `not_found`, and says what to do, if a copy is missing. Fails with `corrupt` if a copy does not
// have the size in the plan, or if its original was changed after the plan was made.
Result<void> apply_overlay(Corpus& corpus, const std::filesystem::path& plan_file);

inline constexpr MetricInfo kOverlayBytesRead{"tier_bytes_read.*", "B"};  // "slow", "fast"

// Writes into the record what an overlay read: its tiers (roles `slow` and `fast`), and the bytes read from
// each (tier_bytes_read.slow and tier_bytes_read.fast). Does nothing for a tier that apply_overlay() did not
// make.
// `sum` returns the sum of a number over all ranks. It is a collective call, so every rank must call
// record_overlay().
Result<void> record_overlay(const Tier& tier, const std::function<Result<uint64_t>(uint64_t)>& sum,
                            Trial& trial);

}  // namespace penstock
