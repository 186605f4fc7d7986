// Writes an advice as text for people and as JSON for programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/staging/advice.hpp"
#include "results/cells/cells.hpp"

namespace penstock {
namespace {

std::string session_text(const SessionWork& work, const Output& output) {
  std::string text =
      fmt::format("the program read {} ({}) {:.3g} time{} with {} ({})", count_of(work.files.size(), "file"),
                  format_bytes(double(work.bytes()), output), work.epochs, work.epochs == 1 ? "" : "s",
                  count_of(work.threads, "thread"),
                  work.by_spans ? "reported by the program" : "inferred from its calls");
  if (work.observed_s > 0) {
    text += fmt::format("; {} per epoch", format_seconds(work.observed_s));
    const double thread_s = work.observed_s * work.threads;
    if (work.think_s > 0.01 * thread_s)
      text += fmt::format(", {} of the thread time outside reads", format_percent(work.think_s / thread_s));
  }
  text += "\n";
  const auto left_out = [&](uint64_t count, const char* why) {
    if (count != 0) text += fmt::format("skipped: {} {}\n", format_count(count), why);
  };
  left_out(work.gone_files, "that no longer exist");
  left_out(work.shrunk_files, "that are shorter than in the session");
  left_out(work.written_files, "that the program writes itself");
  left_out(work.odd_names, "whose names are not UTF-8, or too long");
  if (const double cached = work.cached_bytes(); cached > 0)
    text +=
        fmt::format("page cache: {} of it are in this machine's page cache and count as reads from memory\n",
                    format_bytes(cached, output));
  return text;
}

std::string tier_text(const PlannedTier& tier, const LineFit& fit, unsigned threads, const Output& output) {
  if (fit.only_size > 0)
    return fmt::format("{}: {} per file of {} ({})\n", tier.name,
                       format_seconds(fit.only_size / fit.bytes_per_s), format_bytes(fit.only_size, output),
                       count_of(threads, "thread"));
  const std::string rate = std::isfinite(fit.bytes_per_s)
                               ? fmt::format("{} {}", format_rate(fit.bytes_per_s, output), rate_unit(output))
                               : std::string("any rate");
  return fmt::format("{}: {} per file, plus the bytes at {} ({})\n", tier.name, format_seconds(fit.latency_s),
                     rate, count_of(threads, "thread"));
}

std::string policies_table(const Advice& advice, const SessionWork& work, const Output& output) {
  Table table({{"policy", Align::left}, {"files"}, {"staged"}, {"of all bytes"}, {"epoch"}, {"gain"}});
  const double total_bytes = double(std::max<uint64_t>(work.bytes(), 1));
  for (const PolicyOutcome& outcome : advice.outcomes)
    table.row({outcome.policy, format_count(outcome.chosen.size(), output),
               format_bytes(double(outcome.bytes), output),
               format_percent(double(outcome.bytes) / total_bytes), format_seconds(outcome.after_s),
               signed_percent(outcome.gain)});
  return table.text();
}

std::string verdict_text(const StagingPlan& plan, const SessionWork& work, const Output& output) {
  if (!plan.should_stage) return fmt::format("don't stage: {}\n", plan.reason);
  uint64_t largest = 0;
  for (const PlannedFile& file : plan.files) largest = std::max(largest, file.bytes);
  const PredictedGain& gain = plan.predicted;
  return fmt::format(
      "stage {} of {}, {} (up to {} each): an epoch takes {} instead of {}, {} ({} to {})\ncopying "
      "takes up to {} and pays off after {:.3g} epochs\n",
      format_count(plan.files.size()), count_of(work.files.size(), "file"),
      format_bytes(double(plan.bytes()), output), format_bytes(double(largest), output),
      format_seconds(gain.after_s), format_seconds(gain.before_s), signed_percent(gain.gain),
      signed_percent(gain.low), signed_percent(gain.high), format_seconds(gain.copy_s),
      gain.break_even_epochs);
}

// Why the program may have read the tier faster than the measured speeds, and what to do about it.
std::string faster_reason(const PlannedTier& slow, bool assumes_cold) {
  if (const std::string emulated = emulation(Json{{"spec", slow.spec}}); !emulated.empty())
    return fmt::format(" than the emulated tier ({}) delivers, so it did not read through the emulation",
                       emulated);
  if (assumes_cold)
    return ", perhaps from the page cache. Pass --cache asis if the files are cached in each run";
  return ". Run this on the machine of the program, with the same limits and the same cache state";
}

// A caution if the session and the measured speeds contradict each other, and one if another policy is
// better.
std::string cautions_text(const Advice& advice, const SessionWork& work, bool assumes_cold) {
  constexpr double kContradiction = 1.5;
  constexpr double kBetter = 0.995;
  std::string text;
  const PredictedGain& gain = advice.plan.predicted;
  const auto ratio = observed_over_model(advice, work);
  if (ratio && *ratio >= kContradiction)
    text += fmt::format(
        "caution: an epoch of the program took {}, but the speeds measured now predict {}: the program read "
        "{} far slower. Run this on the machine of the program, with the same limits and the same cache "
        "state.\n",
        format_seconds(work.observed_s), format_seconds(gain.before_s), advice.plan.slow.name);
  if (ratio && *ratio <= 1 / kContradiction)
    text += fmt::format(
        "caution: an epoch of the program took {}, but the speeds measured now predict {}: the program read "
        "{} far faster{}.\n",
        format_seconds(work.observed_s), format_seconds(gain.before_s), advice.plan.slow.name,
        faster_reason(advice.plan.slow, assumes_cold));
  const auto best =
      std::min_element(advice.outcomes.begin(), advice.outcomes.end(),
                       [](const PolicyOutcome& a, const PolicyOutcome& b) { return a.after_s < b.after_s; });
  if (advice.plan.should_stage && best->after_s < kBetter * advice.outcomes.front().after_s)
    text += fmt::format("caution: with --policy {}, an epoch takes {} instead of {}\n", best->policy,
                        format_seconds(best->after_s), format_seconds(advice.outcomes.front().after_s));
  return text;
}

Json tier_json_of(const PlannedTier& tier, const LineFit& fit) {
  return {{"name", tier.name},
          {"spec", tier.spec},
          {"root", tier.root},
          {"latency_s", fit.latency_s},
          {"bytes_per_s", std::isfinite(fit.bytes_per_s) ? Json(fit.bytes_per_s) : Json()}};
}

}  // namespace

std::string advice_text(const Advice& advice, const SessionWork& work, bool assumes_cold,
                        const Output& output) {
  const StagingPlan& plan = advice.plan;
  return session_text(work, output) + tier_text(plan.slow, advice.slow, plan.threads, output) +
         tier_text(plan.fast, advice.fast, plan.threads, output) + "\n" +
         policies_table(advice, work, output) + "\n" + verdict_text(plan, work, output) +
         cautions_text(advice, work, assumes_cold);
}

Json advice_json(const Advice& advice, const SessionWork& work) {
  const StagingPlan& plan = advice.plan;
  Json policies = Json::array();
  for (const PolicyOutcome& outcome : advice.outcomes)
    policies.push_back({{"policy", outcome.policy},
                        {"files", outcome.chosen.size()},
                        {"bytes", outcome.bytes},
                        {"epoch_s", outcome.after_s},
                        {"gain", outcome.gain}});
  const auto ratio = observed_over_model(advice, work);
  return {{"kind", "staging_advice"},
          {"observed_over_model", ratio ? Json(*ratio) : Json()},
          {"id", plan.id},
          {"verdict", plan.should_stage ? "stage" : "don't stage"},
          {"reason", plan.reason},
          {"policy", plan.policy},
          {"capacity", plan.capacity_bytes},
          {"threads", plan.threads},
          {"session",
           {{"files", work.files.size()},
            {"bytes", work.bytes()},
            {"cached_bytes", work.cached_bytes()},
            {"epochs", work.epochs},
            {"epoch_bytes", work.epoch_bytes},
            {"threads", work.threads},
            {"observed_s", work.observed_s},
            {"think_s", work.think_s},
            {"by_spans", work.by_spans},
            {"gone", work.gone_files},
            {"changed", work.shrunk_files},
            {"written", work.written_files},
            {"odd_names", work.odd_names}}},
          {"slow", tier_json_of(plan.slow, advice.slow)},
          {"fast", tier_json_of(plan.fast, advice.fast)},
          {"policies", std::move(policies)},
          {"predicted", predicted_json(plan.predicted)},
          {"files", plan.files.size()},
          {"bytes", plan.bytes()}};
}

}  // namespace penstock
