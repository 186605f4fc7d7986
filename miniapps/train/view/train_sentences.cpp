// Writes all sentences about train records, such as how much of the wait for input prefetching removed, how
// busy the accelerator was, and which stage is the bottleneck.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/stage_times.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/view/train_parts.hpp"
#include "results/cells/cells.hpp"

namespace penstock::verdicts {
namespace {

using namespace train_metrics;

void describe_prefetch(const TrainGroup& group, std::vector<Sentence>& out) {
  const auto without = group.at.find(0);
  const auto wait_without = without == group.at.end() ? std::nullopt : input_wait_per_step(*without->second);
  for (const auto& [prefetch, record] : group.at) {
    if (prefetch == 0) continue;
    const auto wait_with = input_wait_per_step(*record);
    bool too_busy = record->verdict == Verdict::client_bound;
    if (const auto hidden = hidden_by_prefetch(group, prefetch)) {
      const std::string waited = fmt::format("{}, {} ahead: the accelerator waited {} a step instead of {}",
                                             group.title, count_of(prefetch, "batch", "batches"),
                                             format_seconds(*wait_with), format_seconds(*wait_without));
      too_busy |= without->second->verdict == Verdict::client_bound;
      add_sentence(out, too_busy ? Tone::caution : Tone::finding, "prefetch",
                   "Prefetching removed {} of the waiting ({}){}.",
                   *hidden >= 0 ? format_percent(*hidden) : "none", waited,
                   too_busy ? ", in cells with the verdict client_bound" : "");
    } else if (const auto overlap = metric_value(*record, kInputOverlap); overlap && *overlap >= 0) {
      add_sentence(out, too_busy ? Tone::caution : Tone::finding, "prefetch",
                   "Prefetching hid {} of the input's own time during the steps ({}, prefetch {}; its own "
                   "time is that of the same pipeline without an accelerator){}.",
                   format_percent(*overlap), group.title, prefetch,
                   too_busy ? "; the cell's verdict is client_bound" : "");
    }
  }
}

void describe_utilization(const TrainGroup& group, std::vector<Sentence>& out) {
  std::vector<std::string> parts;
  for (const auto& [prefetch, record] : group.at)
    if (const auto busy = metric_value(*record, kUtilization))
      parts.push_back(fmt::format("{} with prefetch {}", format_percent(*busy), prefetch));
  if (!parts.empty())
    add_sentence(
        out, Tone::finding, "utilization",
        "The accelerator utilization (AU) of {} was {}; AU leaves out the first step, checkpoints and "
        "validation.",
        group.title, enumerate(parts));
}

// A sentence that names the rank for which the others waited; "" if no rank was the last in at least 80% of
// the steps, or if there are fewer than 10 steps.
std::string slowest_rank(const Record& record) {
  constexpr double kLeastShare = 0.8;
  constexpr double kLeastSteps = 10;
  const auto rank = metric_value(record, kStragglerRank);
  const auto last_steps = metric_value(record, kStragglerSteps);
  const auto steps = metric_value(record, kSteps);
  const auto ranks = parameter_number(record, "ranks");
  if (!rank || !last_steps || steps.value_or(0) < kLeastSteps || *last_steps < kLeastShare * *steps ||
      ranks.value_or(0) < 2)
    return "";
  return fmt::format(" The others waited for rank {:.0f}, which was the last at {} of its steps.", *rank,
                     format_percent(*last_steps / *steps));
}

// The name of a cause of lost time, for the user. With burn=, steps get longer if other programs use the
// processors. The additional time is recorded as lost at the "barrier", so this cause gets another name.
std::string loss_name(const std::string& cause, const Record& record) {
  if (cause != "barrier" || !burns_processors(record)) return cause;
  return several_accelerators(record) ? "barrier and longer steps" : "longer steps";
}

// Says to which causes utilization was lost. Only for accelerators with a nominal step time. Losses below 1%
// of the wall time are left out.
void describe_lost(const TrainGroup& group, uint64_t prefetch, const Record& record,
                   std::vector<Sentence>& out) {
  constexpr double kLeastLostShare = 0.01;
  const auto wall = metric_value(record, shared_metrics::kWall);
  if (!metric_value(record, kUtilization) || !wall || *wall <= 0) return;
  double sum_s = 0;
  bool straggled = false;
  std::vector<std::string> parts;
  for (const auto& [cause, lost_s] : lost_parts(record)) {
    sum_s += lost_s;
    if (lost_s < kLeastLostShare * *wall) continue;
    straggled |= cause == "straggler";
    parts.push_back(fmt::format("{} to {}", format_percent(lost_s / *wall), loss_name(cause, record)));
  }
  if (sum_s < kLeastLostShare * *wall || parts.empty()) return;
  add_sentence(out, Tone::finding, "lost",
               "With prefetch {}, the accelerator of {} lost {} of the wall time, the first batch included: "
               "{}.{}{}",
               prefetch, group.title, format_percent(sum_s / *wall), enumerate(parts),
               straggled ? slowest_rank(record) : "",
               burns_processors(record)
                   ? " Its steps and the workers share this machine's processors (burn=), "
                     "so that either makes the other slower."
                   : "");
}

// Describes the run with one accelerator more than could be fed. Its AU is below `threshold`.
std::string with_one_more(const Record& record, double threshold) {
  if (parameter_number(record, "accelerators_at_most"))
    return " (a step of more would need more samples than an epoch has)";
  const std::string missed_by = parameter_text(record, "one_more_missed_by");
  if (missed_by == "client") return "; with one more this machine was too busy to emulate them";
  if (missed_by == "memory") return "; this machine has no memory for the batches of one more";
  const auto utilization = metric_value(record, kWithOneMore);
  return utilization ? fmt::format("; with one more it was {}", format_percent_apart(*utilization, threshold))
                     : "";
}

// Describes how many accelerators were fed. Only a record of --find-accelerators has this number.
void describe_fed(const TrainGroup& group, uint64_t prefetch, const Record& record,
                  std::vector<Sentence>& out) {
  const auto fed_number = metric_value(record, kAcceleratorsFed);
  const auto threshold = parameter_number(record, "au");
  const auto step = parameter_number(record, "step_s");
  const Metric* const utilization = find_metric(record, kUtilization);
  if (!fed_number || !threshold || !step || utilization == nullptr) return;
  if (*fed_number < 1) {
    const bool missed_by_machine = parameter_text(record, "one_more_missed_by") == "client";
    const double least = *std::min_element(utilization->samples.begin(), utilization->samples.end());
    add_sentence(out, Tone::caution, "fed",
                 "With prefetch {}, not even one accelerator with steps of {} is known to be fed by {}: {}.",
                 prefetch, format_seconds(*step), group.title,
                 missed_by_machine ? "this machine was too busy to emulate it"
                                   : fmt::format("its AU was {} where {} was asked for",
                                                 format_percent_apart(least, *threshold),
                                                 format_percent_apart(*threshold, least)));
    return;
  }
  const std::string limited_by = parameter_text(record, "one_more_missed_by");
  const bool limited_by_machine =
      limited_by == "client" || limited_by == "memory" || parameter_number(record, "accelerators_at_most");
  add_sentence(out, Tone::finding, "fed",
               "With prefetch {}, {} feeds {}{} with steps of {}: AU was at least {} in {} "
               "runs in a row{}.",
               prefetch, group.title, limited_by_machine ? "at least " : "",
               count_of(uint64_t(*fed_number), "accelerator"), format_seconds(*step),
               format_percent_apart(*threshold, metric_value(record, kWithOneMore).value_or(*threshold)),
               utilization->samples.size(), with_one_more(record, *threshold));
}

// Explains why Penstock's AU and DLIO's differ.
std::string au_difference_text(const Record& record, double dlio_utilization) {
  constexpr double kLeastDifference = 0.02;
  const auto utilization = metric_value(record, kUtilization);
  if (!utilization || std::abs(*utilization - dlio_utilization) < kLeastDifference) return "";
  return fmt::format(
      " DLIO starts a step when the training's thread takes its batch, and averages over epochs of any "
      "length; "
      "counted from when a batch was ready, AU is {}.",
      format_percent(*utilization));
}

// Describes the AU (accelerator utilization) that DLIO would calculate from the same steps.
void describe_dlio(const TrainGroup& group, uint64_t prefetch, const Record& record,
                   std::vector<Sentence>& out) {
  const auto dlio_utilization = metric_value(record, kUtilizationDlio);
  const auto required_au = parameter_number(record, "au");
  if (parameter_text(record, "app") != "dlio" || !required_au) return;
  if (!dlio_utilization) {
    if (metric_value(record, kUtilization))
      add_sentence(
          out, Tone::caution, "dlio",
          "With prefetch {}, DLIO's own arithmetic has no AU for {}: no epoch has a step that it does not "
          "exclude. This is not an MLPerf Storage result.",
          prefetch, group.title);
    return;
  }
  add_sentence(out, Tone::caution, "dlio",
               "With prefetch {}, DLIO's own arithmetic makes AU {} of these steps, {} than the {} that {} "
               "asks for; this is not an MLPerf Storage result.{}",
               prefetch, format_percent_apart(*dlio_utilization, *required_au),
               *dlio_utilization < *required_au ? "less" : "no less",
               format_percent_apart(*required_au, *dlio_utilization), group.title,
               au_difference_text(record, *dlio_utilization));
}

// The reason why samples filled no batch, and the remedy. A smaller --prefetch is one only if more samples
// were left out than a division by the batch leaves: then bad samples left gaps in several batches at once.
std::string tail_cause(const Record& record, uint64_t prefetch, double dropped, double used) {
  const double epochs = parameter_number(record, "epochs").value_or(0);
  const double batch = parameter_number(record, "batch").value_or(0);
  const bool has_skipped = metric_value(record, kSkippedSamples).value_or(0) > 0;
  if (epochs < 1 || batch < 1) return "choose a --batch that divides an epoch";
  const double ranks = parameter_number(record, "ranks").value_or(1);
  const double good = std::round((dropped + used) / epochs);
  const bool is_exact = ranks <= 1 && std::abs(good * epochs - dropped - used) < 0.5;
  const double division_rest = epochs * (is_exact ? std::fmod(good, batch) : ranks * (batch - 1));
  if (has_skipped && prefetch > 0 && dropped > division_rest + 0.5)
    return "bad samples left gaps in several batches at once; a smaller --prefetch leaves fewer such batches";
  if (!is_exact || dropped > division_rest + 0.5) return "choose a --batch that divides an epoch";
  const auto batches = uint64_t(good / batch);
  return fmt::format("{} make {} of {:.0f}; choose a --batch that divides them",
                     count_of(uint64_t(good), has_skipped ? "good sample" : "sample"),
                     count_of(batches, "batch", "batches"), batch);
}

// Says which share of the samples was left out at the ends of epochs, because they were too few for a step.
// Says nothing if the share is small.
void describe_tail(const TrainGroup& group, uint64_t prefetch, const Record& record,
                   std::vector<Sentence>& out) {
  constexpr double kLeastTailShare = 0.1;
  const auto dropped_samples = metric_value(record, kDroppedTail);
  const auto sample_rate = metric_value(record, kSampleRate);
  const auto wall = metric_value(record, shared_metrics::kWall);
  if (!dropped_samples || !sample_rate || !wall) return;
  const double share = *dropped_samples / std::max(*dropped_samples + *sample_rate * *wall, 1.0);
  if (share < kLeastTailShare) return;
  add_sentence(
      out, Tone::caution, "tail",
      "With prefetch {}, {} of the samples of {} were left out, since they filled no batch at the end "
      "of an epoch: {}.",
      prefetch, format_percent(share), group.title,
      tail_cause(record, prefetch, *dropped_samples, *sample_rate * *wall));
}

// Writes rising numbers as text; three or more in a row become a range: "1", "2 and 3", "2 to 5".
std::string number_ranges(const std::vector<size_t>& numbers) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i > 2) {
      parts.push_back(fmt::format("{} to {}", numbers[i], numbers[end - 1]));
    } else {
      for (size_t at = i; at < end; ++at) parts.push_back(std::to_string(numbers[at]));
    }
    i = end;
  }
  return enumerate(parts);
}

// Warns if devices delivered almost no bytes in some epochs: such an epoch measured only this machine's
// memory. Says nothing if the user asked for a warm cache.
void describe_cached_epochs(const TrainGroup& group, uint64_t prefetch, const Record& record,
                            std::vector<Sentence>& out) {
  constexpr double kServedFromMemory = 0.01;
  const Metric* const fractions = find_metric(record, kEpochDeviceBytes);
  if (fractions == nullptr || parameter_text(record, "cache") == "warm") return;
  std::vector<size_t> cached_epochs;
  for (size_t i = 0; i < fractions->samples.size(); ++i)
    if (fractions->samples[i] < kServedFromMemory) cached_epochs.push_back(i + 1);
  if (cached_epochs.empty()) return;
  add_sentence(out, Tone::caution, "cached_epochs",
               "Epoch{} {} of {} (prefetch {}) {} served from the page cache: less than {} of the bytes came "
               "from a device or server. {} not measure the tier.",
               cached_epochs.size() == 1 ? "" : "s", number_ranges(cached_epochs), group.title, prefetch,
               cached_epochs.size() == 1 ? "was" : "were", format_percent(kServedFromMemory),
               cached_epochs.size() == 1 ? "It does" : "They do");
}

// Whether the accelerator waited for this stage more than for anything else. `causes` is sorted, the largest
// loss first; empty in records that do not have the causes.
bool caused_most_waiting(std::string_view stage, const std::vector<LostTime>& causes) {
  if (causes.empty()) return true;
  const std::string_view cause = stage == "list" || stage == "open" ? "read"
                                 : stage == "batch"                 ? "collate"
                                                                    : stage;
  return causes.front().seconds > 0 && causes.front().cause == cause;
}

// Names the bottleneck: the stage that was busy for the largest share of its time, if that is more than half,
// and if the accelerator waited for it. Names none if it is unknown whether the accelerator waited.
void describe_bottleneck(const TrainGroup& group, std::vector<Sentence>& out) {
  if (group.at.empty()) return;
  const auto& [prefetch, record] = *group.at.rbegin();
  const std::vector<StageTally> stages = stage_times(*record);
  if (prefetch == 0 || stages.size() < 2) return;
  const auto share = [record = record](const StageTally& stage) { return busy_share(*record, stage); };
  const auto busiest = std::max_element(stages.begin(), stages.end(),
                                        [&](const auto& a, const auto& b) { return share(a) < share(b); });
  // For the accelerator, its utilization decides. Its busy share is no good measure: the wait for the first
  // batch and the work between steps lower it.
  const bool is_accelerator = busiest->stage == "accelerator";
  const auto utilization = metric_value(*record, kUtilization);
  // A stage before the accelerator limits nothing if the accelerator does not wait. Its busy share may be
  // high all the same: a stage that has read all that the run needs is neither starved nor blocked.
  const auto computed = std::find_if(stages.begin(), stages.end(), [](const StageTally& stage) {
    return stage.stage == "accelerator" && stage.busy_s > 0;
  });
  // Without steps that compute there is no utilization, and the accelerator takes each batch at once.
  const double always_waiting = computed == stages.end() ? 0 : 1;
  if (share(*busiest) <= 0.5) return;
  if (is_accelerator ? utilization.value_or(0) < kAcceleratorLimits
                     : utilization.value_or(always_waiting) >= kAcceleratorLimits ||
                           !caused_most_waiting(busiest->stage, lost_parts(*record)))
    return;
  out.push_back(
      {record->verdict == Verdict::client_bound ? Tone::caution : Tone::finding, "bottleneck",
       busiest->stage == "accelerator"
           ? fmt::format("With prefetch {}, the accelerator is the bottleneck of {}.", prefetch, group.title)
           : fmt::format("With prefetch {}, {} is the bottleneck of {}: its threads were busy {} of "
                         "their time.",
                         prefetch, busiest->stage, group.title, format_percent(share(*busiest)))});
}

std::string size_text(double bytes) {
  return format_size(uint64_t(std::max(0.0, bytes)));
}

// Describes how much time validation took between steps.
void describe_validation(const TrainGroup& group, uint64_t prefetch, const Record& record,
                         std::vector<Sentence>& out) {
  const double wall = metric_value(record, shared_metrics::kWall).value_or(0);
  const auto passes = metric_value(record, kValidationPasses);
  const auto validation_s = metric_value(record, kValidation);
  if (!passes || !validation_s || wall <= 0) return;
  add_sentence(out, Tone::finding, "validation",
               "With prefetch {}, {} was validated {}, on {} in all: {} between its "
               "steps ({} of the wall).",
               prefetch, group.title, *passes == 1 ? "once" : fmt::format("{} times", *passes),
               count_of(uint64_t(metric_value(record, kValidationSamples).value_or(0)), "sample"),
               format_seconds(*validation_s), format_percent(*validation_s / wall));
}

void describe_checkpoints(const TrainGroup& group, uint64_t prefetch, const Record& record,
                          std::vector<Sentence>& out) {
  const double wall = metric_value(record, shared_metrics::kWall).value_or(0);
  const Metric* const saves = find_metric(record, kModelSave);
  if (saves == nullptr || wall <= 0) return;
  const double all_s = std::accumulate(saves->samples.begin(), saves->samples.end(), 0.0);
  const double bytes = metric_value(record, kModelBytes).value_or(0);
  add_sentence(out, Tone::finding, "checkpoints",
               "With prefetch {}, {} made no steps for {}: {} ({} of the wall), {} "
               "each. It wrote {} and "
               "read {}{}.",
               prefetch, group.title, count_of(saves->samples.size(), "checkpoint"), format_seconds(all_s),
               format_percent(all_s / wall), format_seconds(saves->value()), size_text(bytes),
               size_text(metric_value(record, shared_metrics::kTierBytesRead).value_or(0)),
               metric_value(record, kInputAlone) ? ", the runs without an accelerator included" : "");
}

// Says how fast an app that loads whole files read them, and how fast by the calculation of the study that
// the app reproduces.
void describe_files(const TrainGroup& group, uint64_t prefetch, const Record& record,
                    std::vector<Sentence>& out) {
  const auto files = metric_value(record, kFileReads);
  const auto corrected_rate = metric_value(record, kCorrectedRate);
  const auto published_rate = metric_value(record, kPublishedRate);
  if (!files || !corrected_rate || !published_rate || *corrected_rate <= 0) return;
  add_sentence(out, Tone::finding, "file_reads",
               "With prefetch {}, {} loaded {}, {} of them to validate, at {}/s while it read; "
               "as the published study counts bytes that is {}/s.",
               prefetch, group.title, count_of(uint64_t(*files), "file"),
               metric_value(record, kFileReadsOf.with("validation")).value_or(0), size_text(*corrected_rate),
               size_text(*published_rate));
}

void describe_loss(const TrainGroup& group, uint64_t prefetch, const Record& record,
                   std::vector<Sentence>& out) {
  const auto first_loss = metric_value(record, accelerator_metrics::kLossFirst);
  const auto last_loss = metric_value(record, accelerator_metrics::kLossLast);
  if (!first_loss || !last_loss) return;
  add_sentence(out, Tone::finding, "loss", "With prefetch {}, the loss of {} went from {:.3g} to {:.3g}.",
               prefetch, group.title, *first_loss, *last_loss);
}

// Describes how long reading took, in total and during steps. If the timeline is incomplete, says why
// instead. The time in which a read waits for a processor counts as reading.
void describe_timeline(const TrainGroup& group, uint64_t prefetch, const Record& record,
                       std::vector<Sentence>& out) {
  const auto spans = metric_value(record, kSpans);
  const auto dropped_spans = metric_value(record, kDroppedSpans);
  if (spans && dropped_spans && *dropped_spans > 0)
    add_sentence(out, Tone::caution, "timeline",
                 "With prefetch {}, the timeline of {} lacks {} of its spans, for which it had no memory: "
                 "merged times are left out (--timeline-memory).",
                 prefetch, group.title, format_percent(*dropped_spans / (*spans + *dropped_spans)));
  const auto read_s = metric_value(record, kReadMerged);
  const auto read_share = metric_value(record, kReadShare);
  const auto overlap_s = metric_value(record, kReadTrainOverlap);
  if (!read_s || !read_share || !overlap_s || *read_s <= 0) return;
  const std::string under_steps =
      metric_value(record, kTrainMerged).value_or(0) > 0
          ? fmt::format(", {} of it while the accelerator computed", format_percent(*overlap_s / *read_s))
          : "";
  add_sentence(
      out, Tone::finding, "timeline",
      "With prefetch {}, at least one worker of {} was reading {} of the time ({}){}; that is not how "
      "long the device was busy, because a read that waits for a processor counts as one.",
      prefetch, group.title, format_percent(*read_share), format_seconds(*read_s), under_steps);
}

}  // namespace

std::vector<LostTime> lost_parts(const Record& record) {
  const std::string lost = kLost.with("");
  std::vector<LostTime> parts;
  for (const auto& [name, metric] : record.metrics)
    if (name.starts_with(lost))
      parts.push_back({name.substr(lost.size()), metric_value(record, name).value_or(0)});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const LostTime& a, const LostTime& b) { return a.seconds > b.seconds; });
  return parts;
}

void describe_train(const std::vector<TrainGroup>& groups, std::vector<Sentence>& out) {
  const auto each = [&](const auto& describe) { describe_each("training", groups, out, describe); };
  each([&](const TrainGroup& group) { describe_prefetch(group, out); });
  each([&](const TrainGroup& group) { describe_utilization(group, out); });
  for (const auto describe :
       {describe_fed, describe_dlio, describe_lost, describe_validation, describe_checkpoints, describe_files,
        describe_loss, describe_cached_epochs, describe_timeline, describe_tail})
    each([&](const TrainGroup& group) {
      for (const auto& [prefetch, record] : group.at) describe(group, prefetch, *record, out);
    });
  each([&](const TrainGroup& group) { describe_bottleneck(group, out); });
}

}  // namespace penstock::verdicts
