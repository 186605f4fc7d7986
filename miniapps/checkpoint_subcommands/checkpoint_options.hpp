// Options that several subcommands of `penstock checkpoint` share.
#pragma once

#include "io_backends/core/options.hpp"

namespace penstock {

inline constexpr std::string_view kWhichCheckpointsGroup = "Which checkpoints";
inline constexpr std::string_view kWhatIsSavedGroup = "What is saved";
inline constexpr std::string_view kFastTierFullGroup = "When the fast tier is full";
inline constexpr std::string_view kDrainingGroup = "Drain to the slow tier";
inline constexpr std::string_view kRetentionGroup = "Retention";

inline constexpr OptionSpec kRunOption{.name = "run",
                                       .role = OptionRole::target,
                                       .value = "NAME",
                                       .help = "only checkpoints of this run (default: all runs)",
                                       .group = kWhichCheckpointsGroup};
inline constexpr OptionSpec kOneRunOption{.name = "run",
                                          .role = OptionRole::target,
                                          .value = "NAME",
                                          .help = "checkpoints of this run (default: the only one)",
                                          .group = kWhichCheckpointsGroup};
inline constexpr OptionSpec kPayloadOption{.name = "payload",
                                           .role = OptionRole::work,
                                           .value = "NAME|SIZE",
                                           .help =
                                               "save a synthetic state of that model or size, generated from "
                                               "--seed, so that restore and verify can check every byte",
                                           .group = kWhatIsSavedGroup};
inline constexpr OptionSpec kBurstBufferOption{
    .name = "burst-buffer",
    .role = OptionRole::target,
    .value = "TIER",
    .help = "the fast tier: save there, and drain to the slow STORE in the background",
    .group = kWhatIsSavedGroup};
inline constexpr OptionSpec kOnFullOption{
    .name = "on-full",
    .role = OptionRole::work,
    .type = OptionType::choice,
    .value = "block|skip|writethrough",
    .fallback = "block",
    .help = "wait for the drain, skip this checkpoint, or write it to the slow tier",
    .group = kFastTierFullGroup};
inline constexpr OptionSpec kOnFullTimeoutOption{
    .name = "on-full-timeout",
    .role = OptionRole::work,
    .type = OptionType::duration,
    .value = "TIME",
    .fallback = "10m",
    .help =
        "fail after a save waited this long for space, or when at the end nothing was drained for this long",
    .group = kFastTierFullGroup};
inline constexpr OptionSpec kOversizeOption{
    .name = "oversize",
    .role = OptionRole::work,
    .type = OptionType::choice,
    .value = "writethrough|fail",
    .fallback = "writethrough",
    .help = "a checkpoint larger than the fast tier: write it to the slow tier, or fail",
    .group = kFastTierFullGroup};
inline constexpr OptionSpec kHeadroomOption{.name = "headroom",
                                            .role = OptionRole::work,
                                            .type = OptionType::size,
                                            .value = "SIZE",
                                            .fallback = "0",
                                            .help = "space to leave free on the fast tier",
                                            .group = kFastTierFullGroup};
inline constexpr OptionSpec kReadBackOption{
    .name = "read-back",
    .role = OptionRole::work,
    .type = OptionType::flag,
    .help =
        "read back and check each copy before it counts as durable (drain always checks existing slow "
        "copies, unless the fast copy stays)",
    .group = kDrainingGroup};
inline constexpr OptionSpec kTimeoutOption{
    .name = "timeout",
    .role = OptionRole::work,
    .type = OptionType::duration,
    .value = "TIME",
    .help =
        "stop waiting for the drain after TIME since the start, and exit with 3 if not all checkpoints are "
        "durable; these stay on the fast tier. The time includes the save itself, which it does not "
        "interrupt (see --on-full-timeout)",
    .group = kDrainingGroup};

constexpr OptionSpec keep_option(std::string_view help) {
  return {.name = "keep",
          .role = OptionRole::work,
          .type = OptionType::integer,
          .value = "N",
          .help = help,
          .group = kRetentionGroup,
          .at_least = 1};
}
constexpr OptionSpec keep_fast_option(std::string_view help) {
  return {.name = "keep-fast",
          .role = OptionRole::work,
          .type = OptionType::integer,
          .value = "N",
          .help = help,
          .group = kRetentionGroup,
          .at_least = 0};
}
constexpr OptionSpec step_option(std::string_view help) {
  return {.name = "step",
          .role = OptionRole::target,
          .type = OptionType::integer,
          .value = "N",
          .help = help,
          .group = kWhichCheckpointsGroup,
          .at_least = 0};
}

}  // namespace penstock
