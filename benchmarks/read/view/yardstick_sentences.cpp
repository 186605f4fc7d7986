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
  return ratio < 9.95 ? fmt::format("{:.1f}x", ratio)
                      : fmt::format("{}x", format_count(uint64_t(std::llround(std::min(ratio, 1e15)))));
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
  double ceiling = 0;
  for (const auto& [threads, record] : curve.by_count) {
    ceiling = std::max(ceiling, metric_value(*record, kCeilingRate).value_or(0));
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
