// The sentences about checkpoints: those that compare the arms of `checkpoint bench`, and those about
// trainings and single saves.
#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"
#include "miniapps/checkpoint_subcommands/view/saving_parts.hpp"
#include "results/cells/cells.hpp"
#include "results/record/shared_metrics.hpp"

namespace penstock::verdicts {
namespace {

using namespace saving_metrics;
using namespace bench_metrics;

constexpr double kSlowerSteps = 0.05;  // a smaller inflation of the steps is not mentioned

std::string shorter_or_longer(double ratio) {
  return ratio >= 1 ? fmt::format("{} shorter", format_ratio(ratio))
                    : fmt::format("{} longer", format_ratio(1 / ratio));
}

// Returns the text "from one pair", or a text with the number of pairs and the range of their ratios.
std::string spread_of(const BlockTimeRatio& shorter) {
  return shorter.ratio.pairs == 1
             ? "from one pair"
             : fmt::format("median of {} pairs, from {} to {}", shorter.ratio.pairs,
                           format_ratio(shorter.least_ratio), format_ratio(shorter.most_ratio));
}

// Says how much shorter the ceilings would allow the saves to be; or, if the saves were even shorter, that a
// ceiling was too low. "" if a ceiling is unknown or invalid, or if the saves do not pass through a fast
// tier.
std::string allowed_text(const BlockTimeRatio& shorter, const SavingRuns& arm, const Output& output) {
  const std::string ceilings_text =
      fmt::format("he ceilings of the tiers ({} and {} {})",
                  format_rate(arm.median_of(kCeilingOf.with("fast")).value_or(0), output),
                  format_rate(arm.median_of(kCeilingOf.with("slow")).value_or(0), output), rate_unit(output));
  if (shorter.ceiling_too_low)
    return fmt::format(
        " That is more than t{} would allow: a ceiling was measured too low, or the tier was slower during "
        "direct saves.",
        ceilings_text);
  return shorter.allowed
             ? fmt::format(" T{} would allow {}.", ceilings_text, shorter_or_longer(*shorter.allowed))
             : "";
}

void describe_block(const SavingGroup& group, const Output& output, std::vector<Sentence>& out) {
  for (const SavingRuns& arm : group.arms) {
    const auto shorter = block_time_against_direct(group, arm);
    const auto block_s = arm.median_of(kBlockTime);
    if (!shorter || !block_s) continue;
    const SavingRuns& direct = *group.find("direct");
    const std::string times_text = fmt::format("{} instead of {}", format_seconds(*block_s),
                                               format_seconds(*direct.median_of(kBlockTime)));
    const std::string how = saved_how(arm.first(), arm.arm);
    const std::string direct_way = saved_how(direct.first(), "direct");
    const std::string allowed = allowed_text(*shorter, arm, output);
    const std::string skipped = skipped_text(arm);
    const bool is_certain = shorter->ratio.pairs > 1 && skipped.empty() && !shorter->ceiling_too_low;
    const Tone tone = is_certain ? Tone::finding : Tone::caution;
    if (shorter->ratio.pairs > 1 && !shorter->is_significant())
      add_sentence(out, tone, "saving.block",
                   "It makes no clear difference whether {} is saved {} or {}: "
                   "{}, {}{}.{}",
                   group.name, how, direct_way, times_text, spread_of(*shorter), skipped, allowed);
    else
      add_sentence(out, tone, "saving.block", "Saving {} {} blocks the training {} than {}: {}, {}{}.{}",
                   group.name, how, shorter_or_longer(shorter->ratio.median), direct_way, times_text,
                   spread_of(*shorter), skipped, allowed);
  }
}

void describe_drain(const SavingRuns& subject, const Output& output, std::vector<Sentence>& out) {
  const auto rate = subject.median_of(kDrainRate);
  if (!rate) return;
  const auto share = subject.median_of(kDrainOfCeiling);
  const auto overlap = subject.median_of(kDrainOverlap);
  add_sentence(
      out, Tone::finding, "saving.drain", "Checkpoints of {} drained to {} at {} {}{}{}.", subject.name,
      role_name(subject.first(), "checkpoint"), format_rate(*rate, output), rate_unit(output),
      share && ceilings_hold(subject.runs) ? fmt::format(", {} of its ceiling", format_percent(*share)) : "",
      overlap ? fmt::format("; for {} of that time no save blocked the training", format_percent(*overlap))
              : "");
}

void describe_inflation(const SavingRuns& subject, std::vector<Sentence>& out) {
  const auto inflation = subject.median_of(kStepInflation);
  if (!inflation || *inflation <= 1 + kSlowerSteps) return;
  add_sentence(out, Tone::finding, "saving.inflation",
               "While a checkpoint of {} drained, a step took {} longer.", subject.name,
               format_percent(*inflation - 1));
}

void describe_misses(const SavingRuns& subject, std::vector<Sentence>& out) {
  if (const double skips = subject.sum(kSkips); skips > 0)
    add_sentence(out, Tone::caution, "saving.skips",
                 "{:.0f} of {:.0f} saves of {} were skipped: their steps are in no checkpoint.", skips,
                 std::max(skips, subject.sum(kSaves)), subject.name);
  if (const double past = subject.sum(kWrittenThrough); past > 0)
    add_sentence(
        out, Tone::caution, "saving.written_through",
        "{:.0f} of {:.0f} saves of {} went past the burst buffer to the slow tier, because they did not "
        "fit: their times are those of the slow tier.",
        past, std::max(past, subject.sum(kSaves)), subject.name);
  if (const double failures = subject.sum(kDrainFailures); failures > 0)
    add_sentence(out, Tone::caution, "saving.drain_failures", "{} of {} failed.",
                 count_of(uint64_t(failures), "drain"), subject.name);
}

// Adds a caution if a save or a drain was faster than its ceiling. Adds none if a record has the verdict
// ceiling_invalid, which is shown anyway.
void describe_ceilings(const SavingRuns& subject, std::vector<Sentence>& out) {
  const bool is_reported = std::any_of(subject.runs.begin(), subject.runs.end(), [](const Record* record) {
    return record->verdict == Verdict::ceiling_invalid;
  });
  if (is_reported || ceilings_hold(subject.runs)) return;
  add_sentence(out, Tone::caution, "saving.ceiling",
               "Checkpoints of {} were saved or drained faster than the measured ceiling of their tier, so "
               "ceilings are left out.",
               subject.name);
}

// Whether a kind of failure at the end of a run would have lost all of its work, and no more. Then the
// figures are limited by the length of the run, not by its checkpoints. A resumed run can lose more than its
// own work.
bool is_limited_by_its_length(const SavingRuns& subject) {
  for (const Record* const run : subject.runs) {
    const auto wall_s = metric_value(*run, shared_metrics::kWall);
    for (const char* const failure : {"process", "node", "power"}) {
      const auto most_s = metric_value(*run, kMostLostWork.with(failure));
      // The wall time may also include what came after the last step.
      if (wall_s && most_s && *most_s >= 0.98 * *wall_s && *most_s > 0 && *most_s <= 1.001 * *wall_s)
        return true;
    }
  }
  return false;
}

void describe_losses(const SavingRuns& subject, std::vector<Sentence>& out) {
  const auto process = subject.median_of(kLostWork.with("process"));
  const auto node = subject.median_of(kLostWork.with("node"));
  const auto power = subject.median_of(kLostWork.with("power"));
  if (!process || !node || !power) return;
  std::string lost = format_seconds(*process);
  if (*process == *node && *node == *power)
    lost += ", whether processes end, the node is lost or power fails";
  else if (*node == *power)
    lost +=
        fmt::format(" when processes end, {} when the node is lost or power fails", format_seconds(*node));
  else
    lost += fmt::format(" when processes end, {} when the node is lost, {} when power fails",
                        format_seconds(*node), format_seconds(*power));
  const std::vector<double> largest = samples_of(subject.runs, kMostLostWork.with("power"));
  add_sentence(
      out, Tone::finding, "saving.lost",
      "With saves of {}, a failure loses this much work on average: {}{}{}.", subject.name, lost,
      largest.empty()
          ? ""
          : fmt::format(" (at most {})", format_seconds(*std::max_element(largest.begin(), largest.end()))),
      is_limited_by_its_length(subject)
          ? "; a longer run can lose more, because this run ended before any checkpoint was safe"
          : "");
}

void describe_advice(const SavingRuns& subject, std::vector<Sentence>& out) {
  const auto young = subject.median_of(kIntervalYoung);
  const auto daly = subject.median_of(kIntervalDaly);
  const auto mtbf = parameter_number(subject.first(), "mtbf_s");
  if (!young || !daly || !mtbf) return;
  add_sentence(out, Tone::finding, "saving.advice",
               "With one failure in {}, the best interval between saves of {} is {} (Young) or {} (Daly).",
               format_seconds(*mtbf), subject.name, format_seconds(*young), format_seconds(*daly));
}

void describe_all(const SavingRuns& subject, const Output& output, std::vector<Sentence>& out) {
  describe_drain(subject, output, out);
  describe_inflation(subject, out);
  describe_losses(subject, out);
  describe_advice(subject, out);
  describe_misses(subject, out);
  describe_ceilings(subject, out);
}

// Says how long the saves blocked a training.
void describe_blocking(const SavingRuns& subject, std::vector<Sentence>& out) {
  const std::vector<double> blocks = samples_of(subject.runs, kBlockTime);
  const double wall_s = metric_value(subject.first(), shared_metrics::kWall).value_or(0);
  const double blocked_s = subject.sum(kBlockTime);
  add_sentence(out, Tone::finding, "saving.held", "Saving {} blocked {} for {}{}: {}, median {}, longest {}.",
               saved_how(subject.first(), ""), subject.name, format_seconds(blocked_s),
               wall_s > 0 ? fmt::format(" ({} of the wall)", format_percent(blocked_s / wall_s)) : "",
               count_of(blocks.size(), "save"), format_seconds(*subject.median_of(kBlockTime)),
               format_seconds(*std::max_element(blocks.begin(), blocks.end())));
}

// Says how long one save took: the median if it was repeated.
void describe_single_save(const SavingRuns& save, const Output& output, std::vector<Sentence>& out) {
  const std::optional<double> durable_s = save.median_of(kTimeToDurable);
  const std::optional<double> bytes = save.median_of(kBytes);
  if (!durable_s || !bytes || *durable_s <= 0) return;
  add_sentence(out, Tone::finding, "saving.once", "Saving {} took {} until it was durable: {} {}.", save.name,
               format_seconds(*durable_s), format_rate(*bytes / *durable_s, output), rate_unit(output));
}

}  // namespace

void describe_saving(const std::vector<SavingGroup>& groups, const std::vector<SavingRuns>& save_runs,
                     const std::vector<TrainGroup>& trained, const Output& output,
                     std::vector<Sentence>& out) {
  describe_each("checkpoints", groups, out, [&](const SavingGroup& group) {
    describe_block(group, output, out);
    for (const SavingRuns& arm : group.arms)
      describe_all({arm.arm, arm.runs, group.name + " " + arm.name}, output, out);
  });
  const size_t first_single = out.size();
  for (const SavingRuns& save : save_runs) {
    describe_single_save(save, output, out);
    describe_misses(save, out);
  }
  link_sentences("checkpoints-saves", first_single, out);
  const size_t first_training = out.size();
  for (const TrainGroup& group : trained)
    for (const auto& [prefetch, record] : group.at) {
      if (find_metric(*record, kBlockTime) == nullptr) continue;
      const SavingRuns subject{"", {record}, fmt::format("{} with prefetch {}", group.title, prefetch)};
      describe_blocking(subject, out);
      describe_all(subject, output, out);
    }
  link_sentences("checkpoints-trainings", first_training, out);
}

namespace {

std::string advice_of(const SavingGroup& group, const SavingRuns& best, bool is_proven) {
  if (group.arms.size() < 2)
    return "Add --burst-buffer with a faster tier to compare saves through it with direct ones.";
  const bool direct_is_best =
      best.arm == "direct" && std::all_of(group.arms.begin(), group.arms.end(), [&](const SavingRuns& arm) {
        const auto shorter = block_time_against_direct(group, arm);
        return arm.arm == "direct" || (shorter && shorter->most_ratio < 1);
      });
  if (direct_is_best) return fmt::format("Save {}.", saved_how(best.first(), best.arm));
  if (!is_proven && best.runs.size() < 2)
    return "Run the same command with --repeat 9, because one pair does not show how much results vary.";
  if (!is_proven) return "Run the same command with --repeat 9, because its pairs contradict each other.";
  const auto young = best.median_of(kIntervalYoung);
  const std::string how = saved_how(best.first(), best.arm);
  return young ? fmt::format("Save {}, about every {} (Young's formula).", how, format_seconds(*young))
               : fmt::format("Save {}.", how);
}

}  // namespace

std::vector<std::string> saving_bottom_line(std::span<const Record> records, const Output& output) {
  const std::vector<SavingGroup> groups = saving_groups(records);
  if (groups.empty()) {
    const std::vector<SavingRuns> saves = single_saves(records);
    if (saves.empty() || !saves.front().median_of(kBlockTime)) return {};
    return {"What limits the saves is unknown, because they were not compared with other ways to save.",
            fmt::format("A save of {} took {}.", saves.front().name,
                        format_seconds(*saves.front().median_of(kBlockTime))),
            "Run 'penstock checkpoint bench' with a --burst-buffer to compare."};
  }
  const SavingGroup& group = groups.front();
  const SavingRuns* best = nullptr;
  for (const SavingRuns& arm : group.arms)
    if (arm.median_of(kBlockTime) &&
        (best == nullptr || *arm.median_of(kBlockTime) < *best->median_of(kBlockTime)))
      best = &arm;
  if (best == nullptr) return {};
  const auto shorter = block_time_against_direct(group, *best);
  const bool is_proven = shorter && shorter->ratio.pairs > 1 && shorter->least_ratio > 1;
  const std::string held = format_seconds(*best->median_of(kBlockTime));
  const std::string amount =
      is_proven ? fmt::format(
                      "Saving {} blocks the training for {} instead of {}: {} shorter (median of {} pairs).",
                      saved_how(best->first(), best->arm), held,
                      format_seconds(*group.find("direct")->median_of(kBlockTime)),
                      format_ratio(shorter->ratio.median), shorter->ratio.pairs)
                : fmt::format("Saving {} {} blocks the training for {}.", group.name,
                              saved_how(best->first(), best->arm), held);
  if (is_proven && !shorter->ceiling_too_low)
    return {fmt::format("{} limits the checkpoints of {} when they are saved straight to it.",
                        role_name(best->first(), "checkpoint"), group.name),
            amount, advice_of(group, *best, is_proven)};
  const auto drain = best->median_of(kDrainRate);
  return {
      group.arms.size() < 2
          ? fmt::format("What limits the checkpoints of {} is unknown: only one way to save was measured.",
                        group.name)
          : fmt::format(
                "What limits the checkpoints of {} is unknown: no way to save is proven to be "
                "shorter than a direct save{}.",
                group.name,
                drain ? fmt::format(" (drains: {} {})", format_rate(*drain, output), rate_unit(output)) : ""),
      amount, advice_of(group, *best, is_proven)};
}

}  // namespace penstock::verdicts
