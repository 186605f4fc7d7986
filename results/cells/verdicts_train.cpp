// What train records say: what prefetching hid, how busy the accelerator was, which stage limits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/verdicts_parts.hpp"

namespace penstock::verdicts {
namespace {

void describe_prefetch(const TrainGroup& group, std::vector<Sentence>& out) {
  const auto none = group.at.find(0);
  const auto without = none == group.at.end() ? std::nullopt : input_wait_per_step(*none->second);
  for (const auto& [prefetch, record] : group.at) {
    if (prefetch == 0) continue;
    const auto with = input_wait_per_step(*record);
    bool busy = record->verdict == Verdict::client_bound;
    if (const auto hidden = hidden_by_prefetch(group, prefetch)) {
      const std::string waited =
          fmt::format("{}, {} ahead: the accelerator waited {} a step instead of {}", group.title,
                      prefetch == 1 ? "1 batch" : fmt::format("{} batches", prefetch), format_seconds(*with),
                      format_seconds(*without));
      busy |= none->second->verdict == Verdict::client_bound;
      out.push_back(
          {busy ? Tone::caution : Tone::finding, "prefetch",
           fmt::format("Prefetching took away {} of the waiting ({}){}.",
                       *hidden >= 0 ? format_percent(*hidden) : "none", waited,
                       busy ? ", in cells where this machine was too busy to emulate the accelerator" : "")});
    } else if (const auto overlap = metric_value(*record, "input_overlap"); overlap && *overlap >= 0) {
      out.push_back(
          {busy ? Tone::caution : Tone::finding, "prefetch",
           fmt::format(
               "Prefetching hid {} of the input's own time behind the steps ({}, prefetch {}; its own "
               "time is that of the same pipeline without an accelerator){}.",
               format_percent(*overlap), group.title, prefetch,
               busy ? ", where this machine was too busy to emulate the accelerator" : "")});
    }
  }
}

void describe_utilization(const TrainGroup& group, std::vector<Sentence>& out) {
  std::vector<std::string> parts;
  for (const auto& [prefetch, record] : group.at)
    if (const auto busy = metric_value(*record, "accelerator_utilization"))
      parts.push_back(fmt::format("{}{} with prefetch {}", format_percent(*busy),
                                  parts.empty() ? " of the time" : "", prefetch));
  if (!parts.empty())
    out.push_back({Tone::finding, "utilization",
                   fmt::format("The accelerator of {} was busy {}.", group.title, enumerate(parts))});
}

// "lost_s.decode" -> what the accelerator lost to decoding, the most first.
std::vector<std::pair<double, std::string>> lost_parts(const Record& record) {
  constexpr std::string_view kLost = "lost_s.";
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [name, metric] : record.metrics)
    if (name.starts_with(kLost))
      parts.emplace_back(metric_value(record, name).value_or(0), name.substr(kLost.size()));
  std::sort(parts.rbegin(), parts.rend());
  return parts;
}

// The rank that the others waited for, if it was one.
std::string slowest_rank(const Record& record) {
  constexpr double kMostly = 0.8;
  constexpr double kStepsThatTell = 10;
  const auto rank = metric_value(record, "straggler_rank");
  const auto last = metric_value(record, "straggler_steps");
  const auto steps = metric_value(record, "steps");
  const auto ranks = parameter_number(record, "ranks");
  if (!rank || !last || steps.value_or(0) < kStepsThatTell || *last < kMostly * *steps ||
      ranks.value_or(0) < 2)
    return "";
  return fmt::format(" The others waited for rank {:.0f}, which was the last at {} of its steps.", *rank,
                     format_percent(*last / *steps));
}

// What is lost at the barrier by steps that burn processors is lost to what else they are wanted for.
std::string lost_to(const std::string& place, const Record& record) {
  if (place != "barrier" || !burns_processors(record)) return place;
  return several_accelerators(record) ? "barrier and longer steps" : "longer steps";
}

// Where utilization went: only of accelerators that have a step, and only what is worth a word.
void describe_lost(const TrainGroup& group, std::vector<Sentence>& out) {
  constexpr double kWorthAWord = 0.01;
  for (const auto& [prefetch, record] : group.at) {
    const auto wall = metric_value(*record, "wall_s");
    if (!metric_value(*record, "accelerator_utilization") || !wall || *wall <= 0) continue;
    double sum_s = 0;
    bool straggled = false;
    std::vector<std::string> parts;
    for (const auto& [lost_s, to] : lost_parts(*record)) {
      sum_s += lost_s;
      if (lost_s < kWorthAWord * *wall) continue;
      straggled |= to == "straggler";
      parts.push_back(fmt::format("{} to {}", format_percent(lost_s / *wall), lost_to(to, *record)));
    }
    if (sum_s < kWorthAWord * *wall || parts.empty()) continue;
    out.push_back(
        {Tone::finding, "lost",
         fmt::format(
             "With prefetch {}, the accelerator of {} lost {} of its time, the first batch included: {}.{}{}",
             prefetch, group.title, format_percent(sum_s / *wall), enumerate(parts),
             straggled ? slowest_rank(*record) : "",
             burns_processors(*record)
                 ? " Its steps and the workers share this machine's processors (burn=), "
                   "so that either makes the other slower."
                 : "")});
  }
}

// What a further accelerator came to.
std::string with_one_more(const Record& record) {
  if (parameter_number(record, "accelerators_at_most"))
    return " (a step of more would need more samples than an epoch has)";
  const std::string by = parameter_text(record, "one_more_missed_by");
  if (by == "client") return "; with one more this machine was too busy to emulate them";
  if (by == "memory") return "; this machine has no memory for the batches of one more";
  const auto more = metric_value(record, "utilization_with_one_more");
  return more ? fmt::format("; with one more it was {}", format_percent(*more)) : "";
}

// How many accelerators were fed, of which only a search knows.
void describe_fed(const TrainGroup& group, std::vector<Sentence>& out) {
  for (const auto& [prefetch, record] : group.at) {
    const auto fed = metric_value(*record, "accelerators_fed");
    const auto threshold = parameter_number(*record, "au");
    const auto step = parameter_number(*record, "step_s");
    const Metric* const busy = find_metric(*record, "accelerator_utilization");
    if (!fed || !threshold || !step || busy == nullptr) continue;
    if (*fed < 1) {
      const bool client = parameter_text(*record, "one_more_missed_by") == "client";
      const double least = *std::min_element(busy->samples.begin(), busy->samples.end());
      out.push_back(
          {Tone::caution, "fed",
           fmt::format(
               "With prefetch {}, not even one accelerator with steps of {} is known to be fed by {}: {}.",
               prefetch, format_seconds(*step), group.title,
               client ? "this machine was too busy to emulate it"
                      : fmt::format("it was busy {} of the time where {} was asked for",
                                    format_percent(least), format_percent(*threshold)))});
      continue;
    }
    const std::string by = parameter_text(*record, "one_more_missed_by");
    const bool by_machine =
        by == "client" || by == "memory" || parameter_number(*record, "accelerators_at_most");
    out.push_back(
        {Tone::finding, "fed",
         fmt::format("With prefetch {}, {} feeds {}{:.0f} accelerator{} with steps of {}: all were busy at "
                     "least {} of the time, in {} runs in a row{}.",
                     prefetch, group.title, by_machine ? "at least " : "", *fed, *fed == 1 ? "" : "s",
                     format_seconds(*step), format_percent(*threshold), busy->samples.size(),
                     with_one_more(*record))});
  }
}

// Where the two are apart: how they can be.
std::string dlio_next_to_ours(const Record& record, double reckoned) {
  constexpr double kWorthAWord = 0.02;
  const auto own = metric_value(record, "accelerator_utilization");
  if (!own || std::abs(*own - reckoned) < kWorthAWord) return "";
  return fmt::format(
      " Its steps begin when the training's thread has taken their batch, and its epochs count alike, "
      "however "
      "short they are; for an accelerator that has a batch as soon as it is ready it is {}.",
      format_percent(*own));
}

// What DLIO would say of the same steps.
void describe_dlio(const TrainGroup& group, std::vector<Sentence>& out) {
  for (const auto& [prefetch, record] : group.at) {
    const auto reckoned = metric_value(*record, "au_dlio");
    const auto asked = parameter_number(*record, "au");
    if (parameter_text(*record, "app") != "dlio" || !reckoned || !asked) continue;
    if (*reckoned <= 0) {
      out.push_back(
          {Tone::caution, "dlio",
           fmt::format(
               "DLIO's own arithmetic has no AU for {}, whose epochs have one step; this is not an MLPerf "
               "Storage result.",
               group.title)});
      continue;
    }
    out.push_back(
        {Tone::caution, "dlio",
         fmt::format(
             "DLIO's own arithmetic makes AU {} of these steps, {} than the {} that {} asks for; this is "
             "not an MLPerf Storage result.{}",
             format_percent(*reckoned), *reckoned < *asked ? "less" : "no less", format_percent(*asked),
             group.title, dlio_next_to_ours(*record, *reckoned))});
  }
}

// Samples that fill no step are left out, epoch by epoch: to be said where they are many.
void describe_tail(const TrainGroup& group, std::vector<Sentence>& out) {
  constexpr double kMany = 0.1;
  for (const auto& [prefetch, record] : group.at) {
    const auto dropped = metric_value(*record, "dropped_tail_samples");
    const auto rate = metric_value(*record, "samples_per_s");
    const auto wall = metric_value(*record, "wall_s");
    if (!dropped || !rate || !wall) continue;
    const double share = *dropped / std::max(*dropped + *rate * *wall, 1.0);
    if (share < kMany) continue;
    const bool skipped = metric_value(*record, "skipped_samples").value_or(0) > 0;
    out.push_back(
        {Tone::caution, "tail",
         fmt::format("With prefetch {}, {} of the samples of {} filled no step at the ends of "
                     "epochs, and were left out: {}.",
                     prefetch, format_percent(share), group.title,
                     skipped ? "batches with bad samples are completed by such as no batch ahead has "
                               "yet, of which a smaller --prefetch leaves more"
                             : "choose a --batch that divides an epoch")});
  }
}

// "1", "2 and 3", "2 to 5": numbers that rise.
std::string runs_of(const std::vector<std::size_t>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i > 2) {
      parts.push_back(fmt::format("{} to {}", numbers[i], numbers[end - 1]));
    } else {
      for (std::size_t at = i; at < end; ++at) parts.push_back(std::to_string(numbers[at]));
    }
    i = end;
  }
  return enumerate(parts);
}

// Epochs for which no device moved anything measured this machine's memory, unless the request was warm.
void describe_cached_epochs(const TrainGroup& group, std::vector<Sentence>& out) {
  constexpr double kServedFromMemory = 0.01;
  for (const auto& [prefetch, record] : group.at) {
    const Metric* const fractions = find_metric(*record, "epoch_device_bytes_fraction");
    if (fractions == nullptr || parameter_text(*record, "cache") == "warm") continue;
    std::vector<std::size_t> cached;
    for (std::size_t i = 0; i < fractions->samples.size(); ++i)
      if (fractions->samples[i] < kServedFromMemory) cached.push_back(i + 1);
    if (cached.empty()) continue;
    out.push_back(
        {Tone::caution, "cached_epochs",
         fmt::format("Epoch{} {} of {} (prefetch {}) came from this machine's memory: devices and "
                     "servers moved less than {} of the bytes, so {} nothing about the tier.",
                     cached.size() == 1 ? "" : "s", runs_of(cached), group.title, prefetch,
                     format_percent(kServedFromMemory), cached.size() == 1 ? "it says" : "they say")});
  }
}

// The stage that was busy most is what the others wait for, if it was busy more than half of the time.
void describe_bottleneck(const TrainGroup& group, std::vector<Sentence>& out) {
  if (group.at.empty()) return;
  const auto& [prefetch, record] = *group.at.rbegin();
  const std::vector<StageTimes> stages = stage_times(*record);
  if (prefetch == 0 || stages.size() < 2) return;
  const auto share = [](const StageTimes& stage) {
    return stage.total_s() > 0 ? stage.busy_s / stage.total_s() : 0;
  };
  const auto most = std::max_element(stages.begin(), stages.end(),
                                     [&](const auto& a, const auto& b) { return share(a) < share(b); });
  // Of an accelerator the utilization tells, which leaves out the wait for the first batch and what is no
  // step.
  constexpr double kNearlyAlways = 0.9;
  if (share(*most) <= 0.5 || (most->stage == "accelerator" &&
                              metric_value(*record, "accelerator_utilization").value_or(1) < kNearlyAlways))
    return;
  out.push_back(
      {Tone::finding, "bottleneck",
       most->stage == "accelerator"
           ? fmt::format("With prefetch {}, the accelerator is the bottleneck of {}.", prefetch, group.title)
           : fmt::format("With prefetch {}, {} is the bottleneck of {}: its threads were busy {} of "
                         "their time.",
                         prefetch, most->stage, group.title, format_percent(share(*most)))});
}

std::string size_of(double bytes) {
  return format_size(static_cast<std::uint64_t>(std::max(0.0, bytes)));
}

// What went by between steps.
void describe_validation(const TrainGroup& group, std::vector<Sentence>& out) {
  for (const auto& [prefetch, record] : group.at) {
    const double wall = metric_value(*record, "wall_s").value_or(0);
    const auto passes = metric_value(*record, "validation_passes");
    const auto seconds = metric_value(*record, "validation_s");
    if (!passes || !seconds || wall <= 0) continue;
    out.push_back(
        {Tone::finding, "validation",
         fmt::format("With prefetch {}, {} was validated {}, on {} samples in all: {} between its "
                     "steps ({} of the wall).",
                     prefetch, group.title, *passes == 1 ? "once" : fmt::format("{} times", *passes),
                     metric_value(*record, "validation_samples").value_or(0), format_seconds(*seconds),
                     format_percent(*seconds / wall))});
  }
}

void describe_checkpoints(const TrainGroup& group, std::vector<Sentence>& out) {
  for (const auto& [prefetch, record] : group.at) {
    const double wall = metric_value(*record, "wall_s").value_or(0);
    const Metric* const saves = find_metric(*record, "checkpoint_s");
    if (saves == nullptr || wall <= 0) continue;
    const double all_s = std::accumulate(saves->samples.begin(), saves->samples.end(), 0.0);
    const double bytes = metric_value(*record, "checkpoint_bytes").value_or(0);
    out.push_back(
        {Tone::finding, "checkpoints",
         fmt::format(
             "With prefetch {}, {} stood still for {} checkpoints: {} ({} of the wall), {} "
             "each. It wrote {} and "
             "read {}{}.",
             prefetch, group.title, saves->samples.size(), format_seconds(all_s),
             format_percent(all_s / wall), format_seconds(saves->value()), size_of(bytes),
             size_of(metric_value(*record, "tier_bytes_read").value_or(0)),
             metric_value(*record, "input_alone_s") ? ", the runs without an accelerator included" : "")});
  }
}

// Of apps that load whole files: their rates next to those of the study that they reproduce.
void describe_files(const TrainGroup& group, std::vector<Sentence>& out) {
  for (const auto& [prefetch, record] : group.at) {
    const auto files = metric_value(*record, "file_reads");
    const auto corrected = metric_value(*record, "read_corrected_bytes_per_s");
    const auto published = metric_value(*record, "read_published_bytes_per_s");
    if (!files || !corrected || !published || *corrected <= 0) continue;
    out.push_back(
        {Tone::finding, "file_reads",
         fmt::format("With prefetch {}, {} loaded {} files, {} of them to validate, at {}/s while it read; "
                     "as the published study counts bytes that is {}/s.",
                     prefetch, group.title, *files,
                     metric_value(*record, "file_reads.validation").value_or(0), size_of(*corrected),
                     size_of(*published))});
  }
}

void describe_loss(const TrainGroup& group, std::vector<Sentence>& out) {
  for (const auto& [prefetch, record] : group.at) {
    const auto first = metric_value(*record, "loss_first");
    const auto last = metric_value(*record, "loss_last");
    if (!first || !last) continue;
    out.push_back({Tone::finding, "loss",
                   fmt::format("With prefetch {}, the loss of {} went from {:.3g} to {:.3g}.", prefetch,
                               group.title, *first, *last)});
  }
}

// How long reading went on, and under steps; or why a timeline does not tell. Whoever waits for a processor
// in the middle of a read is reading.
void describe_timeline(const TrainGroup& group, std::vector<Sentence>& out) {
  for (const auto& [prefetch, record] : group.at) {
    const auto spans = metric_value(*record, "timeline_spans");
    const auto dropped = metric_value(*record, "timeline_dropped_spans");
    if (spans && dropped && *dropped > 0)
      out.push_back(
          {Tone::caution, "timeline",
           fmt::format(
               "With prefetch {}, the timeline of {} lacks {} of its spans, for which it had no memory: "
               "merged times are left out (--timeline-memory).",
               prefetch, group.title, format_percent(*dropped / (*spans + *dropped)))});
    const auto read = metric_value(*record, "read_merged_s");
    const auto share = metric_value(*record, "read_share");
    const auto both = metric_value(*record, "read_train_overlap_s");
    if (!read || !share || !both || *read <= 0) continue;
    const std::string under =
        metric_value(*record, "train_merged_s").value_or(0) > 0
            ? fmt::format(", {} of it while the accelerator computed", format_percent(*both / *read))
            : "";
    out.push_back(
        {Tone::finding, "timeline",
         fmt::format(
             "With prefetch {}, at least one worker of {} was reading {} of the time ({}){}; that is not how "
             "long the device was busy, because a read that waits for a processor counts as one.",
             prefetch, group.title, format_percent(*share), format_seconds(*read), under)});
  }
}

}  // namespace

void describe_train(const std::vector<TrainGroup>& groups, std::vector<Sentence>& out) {
  for (const auto say : {describe_prefetch, describe_utilization, describe_fed, describe_dlio, describe_lost,
                         describe_validation, describe_checkpoints, describe_files, describe_loss,
                         describe_cached_epochs, describe_timeline, describe_tail, describe_bottleneck})
    describe_each("training", groups, out, [&](const TrainGroup& group) { say(group, out); });
}

}  // namespace penstock::verdicts

namespace penstock {

std::optional<double> hidden_by_prefetch(const TrainGroup& group, std::uint64_t prefetch) {
  const auto none = group.at.find(0);
  const auto some = group.at.find(prefetch);
  if (prefetch == 0 || none == group.at.end() || some == group.at.end()) return std::nullopt;
  const auto without = input_wait_per_step(*none->second);
  const auto with = input_wait_per_step(*some->second);
  if (!without || !with || *without <= 0) return std::nullopt;
  return 1 - *with / *without;
}

}  // namespace penstock
