// From what a session read and what two tiers can do to a plan: what to stage, what it brings, when it has
// paid, or why not to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/staging/staging_plan.hpp"
#include "io_backends/core/cli/command.hpp"
#include "miniapps/staging/choose_files.hpp"
#include "miniapps/staging/probe_speed.hpp"
#include "miniapps/staging/session_work.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Below this gain nothing is worth its place.
inline constexpr double kLeastGain = 0.01;
// What part of the fast tier's free room a plan takes at most: file systems round up.
inline constexpr double kRoomTaken = 0.98;

struct AdviceRequest {
  std::string policy = "density";
  std::uint64_t capacity = 0;
  std::uint64_t epochs = 0;  // that are to come; 0: not known
  unsigned threads = 0;      // 0: as the session saw
  unsigned copy_threads = 1;
  std::uint64_t seed = 0;
};

// What one policy comes to.
struct PolicyOutcome {
  std::string policy;
  Chosen chosen;
  std::uint64_t bytes = 0;
  double after_s = 0;  // of an epoch
  double gain = 0;
};

struct Advice {
  StagingPlan plan;                     // but for `made` and `id`, which it has, all comes from the input
  std::vector<PolicyOutcome> outcomes;  // the wanted policy first, then others besides it
  std::uint64_t capacity = 0;           // that was used: what was given, or what is free
  LineFit slow;                         // with the program's threads
  LineFit fast;
};

// `free_bytes`: of the fast tier; UINT64_MAX where unknown. Deterministic for a seed.
Result<Advice> advise(const SessionWork& work, const TierSpeeds& speeds, const AdviceRequest& request,
                      std::uint64_t free_bytes);

// "+3.1%".
std::string signed_percent(double part);
std::string advice_text(const Advice& advice, const SessionWork& work, const Output& output);
Json advice_json(const Advice& advice, const SessionWork& work);

}  // namespace penstock
