// Makes a staging plan from what a session read and how fast two tiers are. The advice says what to stage,
// what is gained and when the copy pays off; or why staging does not help.
#pragma once

#include <cstdint>
#include <optional>
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

// The smallest gain for which staging is worth it.
inline constexpr double kLeastGain = 0.01;
// A plan uses at most this part of the fast tier's free bytes, since file systems round file sizes up.
inline constexpr double kUsableShare = 0.98;

struct AdviceRequest {
  std::string policy = "density";
  uint64_t capacity = 0;
  uint64_t epochs = 0;   // epochs still to come; 0: unknown
  unsigned threads = 0;  // threads of the program; 0: as many as in the session
  unsigned copy_threads = 1;
  uint64_t seed = 0;
};

// The files that one policy chooses, and how long an epoch then takes.
struct PolicyOutcome {
  std::string policy;
  Chosen chosen;
  uint64_t bytes = 0;
  double after_s = 0;  // seconds of one epoch when these files are staged
  double gain = 0;
};

struct Advice {
  StagingPlan plan;                     // the same input gives the same plan, except `made_at` and `id`
  std::vector<PolicyOutcome> outcomes;  // the requested policy first, then the others
  // Bytes that may be used: the requested ones or, if less, kUsableShare of the free ones.
  uint64_t capacity = 0;
  LineFit slow;  // latency and bandwidth for the program's number of threads
  LineFit fast;
};

// Makes the advice. `free_bytes`: the free bytes of the fast tier; UINT64_MAX if unknown. The same arguments
// give the same advice, except `made_at` and `id` of the plan.
Result<Advice> advise(const SessionWork& work, const TierSpeeds& speeds, const AdviceRequest& request,
                      uint64_t free_bytes);

// How many times as long as the model's epoch without staging the epoch of the session took. Absent if the
// session does not tell how long it took, or if the advice is for other threads than those of the session.
std::optional<double> observed_over_model(const Advice& advice, const SessionWork& work);

// A fraction as text, such as "+3.1%" for 0.031.
std::string signed_percent(double part);
// `assumes_cold`: as --cache cold, all bytes count as read from the tiers.
std::string advice_text(const Advice& advice, const SessionWork& work, bool assumes_cold,
                        const Output& output);
Json advice_json(const Advice& advice, const SessionWork& work);

}  // namespace penstock
