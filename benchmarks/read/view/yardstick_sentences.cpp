// The sentences that compare read records with their baseline and their ceiling, and the texts that they have
// in common with the other sentences about reading.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/read_report.hpp"
#include "benchmarks/read/view/read_parts.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/cells.hpp"
#include "results/record/statistics.hpp"

namespace penstock::verdicts {
namespace {

using namespace read_metrics;

// If the ceiling is at least this many times the decoded rate, a sentence says that decoding is the limit.
constexpr double kCeilingRatioIfDecodingLimits = 2;

bool has_single_repeat(const ReadCurve& curve) {
  return std::any_of(curve.by_count.begin(), curve.by_count.end(), [](const auto& row) {
    const Metric* const rate = throughput(*row.second);
    return rate == nullptr || rate->samples.size() < 2;
  });
}

double largest_spread(const ReadCurve& curve, uint64_t first, uint64_t last) {
  double largest = 0;
  for (const auto& [count, record] : curve.by_count)
    if (const Metric* const rate = throughput(*record); rate != nullptr && count >= first && count <= last)
      largest = std::max(largest, spread(rate->samples));
  return largest;
}

}  // namespace

bool any_has_single_repeat(const std::vector<const ReadCurve*>& curves) {
  return std::any_of(curves.begin(), curves.end(),
                     [](const ReadCurve* curve) { return has_single_repeat(*curve); });
}

bool is_as_requested(const Record& record) {
  return cache_state(record) == requested_cache_state(record);
}

bool decodes(const ReadGroup& group) {
  const std::string decode =
      group.curves.empty() ? "" : parameter_text(*group.curves[0].by_count.begin()->second, "decode");
  return !decode.empty() && decode != "none";
}

std::string group_note(const ReadGroup& group, const std::vector<const ReadCurve*>& curves,
                       const std::string& more) {
  std::vector<std::string> states;  // cache states other than the requested one
  std::string exceptions;
  bool any_as_requested = false;
  for (const ReadCurve* curve : curves) {
    const std::string state = cache_state(*curve->by_count.begin()->second);
    if (is_as_requested(*curve->by_count.begin()->second)) {
      any_as_requested = true;
      continue;
    }
    if (std::find(states.begin(), states.end(), state) == states.end()) states.push_back(state);
    exceptions += fmt::format("; {} {}", curve->tier,
                              state == "in memory"         ? "is in memory"
                              : state == "cache bypassed"  ? "bypasses the cache"
                              : state == "no client cache" ? "has no client cache"
                                                           : "is " + state);
  }
  std::string text = group.title;
  if (!any_as_requested && states.size() == 1) {
    text = states[0] + text.substr(std::min(text.size(), group.cache.size()));
  } else if (!any_as_requested && !states.empty()) {
    const std::string title_rest = text.substr(std::min(text.size(), group.cache.size() + 2));
    text = title_rest.empty() ? exceptions.substr(2) : title_rest + exceptions;
  } else {
    text += exceptions;
  }
  if (decodes(group)) text += "; decoding included";
  if (!more.empty()) text += "; " + more;
  if (any_has_single_repeat(curves)) text += "; from one repeat";
  return " (" + text + ")";
}

std::string ratio_text(double ratio) {
  if (ratio < 1.05) return fmt::format("{:.2f}x", ratio);
  return ratio < 9.95 ? fmt::format("{:.1f}x", ratio)
                      : fmt::format("{}x", format_count(uint64_t(std::llround(std::min(ratio, 1e15)))));
}

ValueRange inverse(const ValueRange& ratio) {
  return {1 / ratio.most, 1 / ratio.middle, 1 / ratio.least};
}

std::string range_text(const ValueRange& ratio, std::string (*format)(double)) {
  const std::string least = format(ratio.least);
  const std::string most = format(ratio.most);
  const bool differ = ratio.most - ratio.least >= kLeastScalingGain * ratio.middle;
  return differ && least != most ? least + " to " + most : format(ratio.middle);
}

bool is_faster(const ValueRange& ratio, double largest_spread) {
  constexpr double kLeastRatio = 1.005;  // it would be printed as 1.00x
  return ratio.middle - 1 > largest_spread && ratio.least >= kLeastRatio;
}

std::string scaling_text(const ReadCurve& curve, const std::string& subject,
                         std::string (*count_text)(uint64_t),
                         std::optional<ValueRange> (*ratio)(const Record& record, const Record& base)) {
  const auto between = [&](uint64_t count, uint64_t base) {
    return ratio(*curve.by_count.at(count), *curve.by_count.at(base)).value_or(ValueRange{});
  };
  std::vector<ScalingPoint> points;
  for (const auto& [count, record] : curve.by_count)
    if (const auto rate = ratio(*record, *curve.by_count.begin()->second))
      points.push_back({count, rate->middle});
  const Scaling scaling = measure_scaling(points);
  if (scaling.useful_count == 0) return "";
  const uint64_t first = points.front().threads;
  const uint64_t last = points.back().threads;
  // The sentence says how the rate changes from `from` to the last count, and how it changed from the first
  // count to `from`, if the repeats of the rows prove that.
  const uint64_t from = scaling.loss_after_peak > 0 ? scaling.peak_count
                        : scaling.still_gains       ? points[points.size() - 2].threads
                                                    : scaling.useful_count;
  const double noise = largest_spread(curve, from, last);
  const double noise_before =
      std::max(largest_spread(curve, first, first), largest_spread(curve, from, from));
  const ValueRange gain_before = between(from, first);
  ValueRange change = between(last, from);
  if (scaling.still_gains)  // as the table's ratios to the first count show it, if they show less
    change.middle = std::min(change.middle, points.back().rate / points[points.size() - 2].rate);
  const bool gained_before = from != first && is_faster(gain_before, noise_before);
  const bool is_known = scaling.loss_after_peak > 0 ? scaling.loss_after_peak >= noise && change.most > 0 &&
                                                          is_faster(inverse(change), 0)
                        : scaling.still_gains ? is_faster(change, noise)
                                              : kLeastScalingGain >= noise;
  const std::string gain = range_text(gain_before, format_ratio);
  if (!is_known && gained_before)
    return fmt::format(
        "{0} gains up to {1}, {2} of {3}; more than {1} may or may not help: repeats differ by up to {4}",
        subject, count_text(from), gain, count_text(first), format_percent(noise));
  if (!is_known || (!gained_before && from != first && !scaling.still_gains))
    return fmt::format("More than {} may or may not help {}: repeats differ by up to {}", count_text(first),
                       subject, format_percent(std::max(noise, noise_before)));
  if (scaling.loss_after_peak > 0) {
    const std::string loss = format_percent(scaling.loss_after_peak);
    const bool is_fastest = std::all_of(points.begin(), points.end(), [&](const ScalingPoint& other) {
      const uint64_t count = other.threads;
      return count == from || is_faster(between(from, count), std::max(largest_spread(curve, from, from),
                                                                       largest_spread(curve, count, count)));
    });
    return is_fastest
               ? fmt::format("{} is fastest at {} and loses {} of that at {}", subject, count_text(from),
                             loss, count_text(last))
               : fmt::format("{} loses {} from {} to {}", subject, loss, count_text(from), count_text(last));
  }
  if (scaling.still_gains) {
    const ValueRange whole_gain = between(last, first);
    const std::string text =
        fmt::format("{} still gains at {}, the most that were measured", subject, count_text(last));
    return is_faster(whole_gain, std::max(noise, noise_before))
               ? fmt::format("{}: {} of {}", text, range_text(whole_gain, format_ratio), count_text(first))
               : text;
  }
  return from == first ? fmt::format("{} stops scaling at {}", subject, count_text(from))
                       : fmt::format("{} stops scaling at {}, {} of {}", subject, count_text(from), gain,
                                     count_text(first));
}

void describe_baseline(const ReadGroup& group, std::vector<Sentence>& out) {
  std::vector<std::string> parts;
  std::vector<const ReadCurve*> curves;
  for (const ReadCurve& curve : group.curves) {
    std::vector<double> ratios;
    for (const auto& [threads, record] : curve.by_count) {
      const auto ratio = baseline_ratio(*record);
      if (!ratio) continue;
      if (*ratio <= kImpossibleBaselineRatio)
        ratios.push_back(*ratio);
      else
        add_sentence(
            out, Tone::caution, "baseline_invalid",
            "{} of the baseline on {} at {} is impossible: the baseline is the simplest loop on the same "
            "work, so something else differed, for example what was cached{}.",
            format_percent(*ratio), curve.tier, threads_text(threads), group_note(group, {&curve}));
    }
    if (ratios.empty()) continue;
    curves.push_back(&curve);
    const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    const std::string lowest = format_percent(*low);
    const std::string highest = format_percent(*high);
    parts.push_back(fmt::format("{} of the baseline on {}",
                                lowest == highest ? lowest : fmt::format("{} to {}", lowest, highest),
                                curve.tier));
  }
  if (!parts.empty())
    add_sentence(out, Tone::finding, "baseline", "The client reached {}{}.", enumerate(parts),
                 group_note(group, curves));
}

void describe_ceiling(const ReadGroup& group, const ReadCurve& curve, const Output& output,
                      std::vector<Sentence>& out) {
  std::vector<std::string> invalid_rows;
  uint64_t fastest_threads = 0;
  double peak_rate = 0;
  uint64_t ceiling_threads = 0;
  double ceiling = 0;
  for (const auto& [threads, record] : curve.by_count) {
    if (const auto of_row = metric_value(*record, kCeilingRate); of_row.value_or(0) > ceiling) {
      ceiling = *of_row;
      ceiling_threads = threads;
    }
    const auto rate = metric_value(*record, kPayloadRate).value_or(0);
    if (rate > peak_rate) {
      peak_rate = rate;
      fastest_threads = threads;
    }
    const auto fraction = metric_value(*record, kCeilingFraction);
    if (fraction && *fraction > kCeilingTolerance && record->verdict != Verdict::ceiling_invalid)
      // Records with the verdict ceiling_invalid are left out here, because the sentence about that verdict
      // names them.
      invalid_rows.push_back(threads_text(threads));
  }
  if (!invalid_rows.empty())
    add_sentence(out, Tone::caution, "ceiling_invalid",
                 "The ceiling of {} is invalid at {}: reading was faster than the best probe{}.", curve.tier,
                 enumerate(invalid_rows), group_note(group, {&curve}));
  if (peak_rate <= 0 || ceiling <= 0 || peak_rate > kCeilingTolerance * ceiling) return;
  const std::string ceiling_text = format_rate(ceiling, output) + " " + std::string(rate_unit(output));
  // A rate may be above the ceiling by kCeilingTolerance, because both are measured.
  const double share = std::min(peak_rate / ceiling, 1.0);
  std::string text = fmt::format("{} reaches {} of its ceiling of {} at {}", curve.tier,
                                 format_percent(share), ceiling_text, threads_text(fastest_threads));
  if (ceiling_threads != fastest_threads)
    text += fmt::format("; the ceiling is that of {}", threads_text(ceiling_threads));
  if (decodes(group))
    text = fmt::format("Reading {} and decoding come to {} {} at {}; its ceiling of {} is {} that",
                       curve.tier, format_rate(peak_rate, output), rate_unit(output),
                       threads_text(fastest_threads), ceiling_text, ratio_text(ceiling / peak_rate));
  if (decodes(group) && ceiling >= kCeilingRatioIfDecodingLimits * peak_rate)
    text = fmt::format("Decoding limits, not {}: {} {} at {}; the tier's ceiling of {} is {} that",
                       curve.tier, format_rate(peak_rate, output), rate_unit(output),
                       threads_text(fastest_threads), ceiling_text, ratio_text(ceiling / peak_rate));
  out.push_back({Tone::finding, "ceiling", text + group_note(group, {&curve}) + "."});
}

}  // namespace penstock::verdicts
