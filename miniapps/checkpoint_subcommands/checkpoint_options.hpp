// Options that several subcommands of `penstock checkpoint` share.
#pragma once

#include "io_backends/core/options.hpp"

namespace penstock {

inline constexpr std::string_view kWhichCheckpointsGroup = "Which checkpoints";
inline constexpr std::string_view kWhatIsSavedGroup = "What is saved";
inline constexpr std::string_view kFastTierFullGroup = "Where the fast tier is full";
inline constexpr std::string_view kDrainingGroup = "On the way to the slow tier";
inline constexpr std::string_view kRetentionGroup = "What stays";

inline constexpr OptionSpec kRunOption{.name = "run",
                                       .role = OptionRole::target,
                                       .value = "NAME",
                                       .help = "of this run (all runs, if not given)",
                                       .group = kWhichCheckpointsGroup};
inline constexpr OptionSpec kOneRunOption{.name = "run",
                                          .role = OptionRole::target,
                                          .value = "NAME",
                                          .help = "of this run (the only one there is, if not given)",
                                          .group = kWhichCheckpointsGroup};
inline constexpr OptionSpec kPayloadOption{
    .name = "payload",
    .role = OptionRole::work,
    .value = "NAME|SIZE",
    .help =
        "save the state of a training of that model or size, made from --seed, so that restore and verify "
        "can prove every byte",
    .group = kWhatIsSavedGroup};
inline constexpr OptionSpec kBurstBufferOption{
    .name = "burst-buffer",
    .role = OptionRole::target,
    .value = "TIER",
    .help = "the fast tier: save there, and drain to the slow STORE while others work",
    .group = kWhatIsSavedGroup};
inline constexpr OptionSpec kOnFullOption{
    .name = "on-full",
    .role = OptionRole::work,
    .type = OptionType::choice,
    .value = "block|skip|writethrough",
    .fallback = "block",
    .help = "wait for the drain, leave this checkpoint out, or write it to the slow tier",
    .group = kFastTierFullGroup};
inline constexpr OptionSpec kOnFullTimeoutOption{
    .name = "on-full-timeout",
    .role = OptionRole::work,
    .type = OptionType::duration,
    .value = "TIME",
    .fallback = "10m",
    .help = "fail when a save waited so long for room, or when at the end nothing was drained for so long",
    .group = kFastTierFullGroup};
inline constexpr OptionSpec kOversizeOption{
    .name = "oversize",
    .role = OptionRole::work,
    .type = OptionType::choice,
    .value = "writethrough|fail",
    .fallback = "writethrough",
    .help = "what to do with a checkpoint that is larger than the fast tier",
    .group = kFastTierFullGroup};
inline constexpr OptionSpec kHeadroomOption{.name = "headroom",
                                            .role = OptionRole::work,
                                            .type = OptionType::size,
                                            .value = "SIZE",
                                            .fallback = "0",
                                            .help = "of the fast tier, to be left free",
                                            .group = kFastTierFullGroup};
inline constexpr OptionSpec kReadBackOption{
    .name = "read-back",
    .role = OptionRole::work,
    .type = OptionType::flag,
    .help =
        "read each copy again, and check it, before it counts as durable (drain reads slow copies that were "
        "there before anyway, unless the fast one stays)",
    .group = kDrainingGroup};
inline constexpr OptionSpec kTimeoutOption{
    .name = "timeout",
    .role = OptionRole::work,
    .type = OptionType::duration,
    .value = "TIME",
    .help =
        "wait for the drain until then, counted from the begin, and exit 3 if not all is durable; what is "
        "not stays on the fast tier (a save's waiting for room and its writing count, and are not cut "
        "short: see --on-full-timeout)",
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
