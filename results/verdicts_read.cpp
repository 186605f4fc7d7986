// What read records say: scaling, tiers beside each other, cold beside warm, baseline and ceiling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "results/statistics.hpp"
#include "results/table.hpp"
#include "results/verdicts_parts.hpp"

namespace penstock::verdicts {
namespace {

std::optional<double> rate_of(const Record& record) {
  auto rate = metric_value(record, "payload_bytes_per_s");
  if (!rate) rate = metric_value(record, "samples_per_s");
  return rate && *rate > 0 ? rate : std::nullopt;
}

// Nothing in memory is ever cold, whatever was asked for.
bool lies_in_memory(const ReadCurve& curve) {
  return cache_text(*curve.at.begin()->second, "client_data") == "memory";
}

std::string in_group(const ReadGroup& group, const std::vector<const ReadCurve*>& about) {
  std::string text = " (" + group.title;
  for (const ReadCurve* curve : about)
    if (group.cache == "cold" && lies_in_memory(*curve)) text += "; " + curve->tier + " lies in memory";
  return text + ")";
}

// "3.1x", "12x".
std::string times_text(double ratio) {
  return ratio < 9.95 ? fmt::format("{:.1f}x", ratio) : fmt::format("{}x", format_number(std::round(ratio)));
}

std::optional<double> ratio_of(const Metric* over, const Metric* under) {
  if (over == nullptr || under == nullptr || under->value() <= 0) return std::nullopt;
  if (over->samples.size() == under->samples.size())
    if (const auto paired = paired_ratio(over->samples, under->samples)) return paired->median;
  return over->value() / under->value();
}

void say_scaling(const ReadGroup& group, const ReadCurve& curve, std::vector<Sentence>& out) {
  std::vector<ScalingPoint> points;
  for (const auto& [threads, record] : curve.at)
    if (const auto ratio = scaling_ratio(curve, *record)) points.push_back({threads, *ratio});
  const Scaling scaling = judge_scaling(points);
  if (scaling.stops_at == 0) return;
  const std::string last = threads_text(points.back().threads);
  std::string text;
  if (scaling.lost_after > 0) {
    text = fmt::format("{} is fastest at {} and loses {} of that at {}", curve.tier,
                       threads_text(scaling.peak_at), format_percent(scaling.lost_after), last);
  } else if (scaling.still_gains) {
    text = fmt::format("{} still gains at {}, the most that were measured: {} of {}", curve.tier, last,
                       format_ratio(scaling.gain), threads_text(points.front().threads));
  } else {
    text = fmt::format("{} stops scaling at {}", curve.tier, threads_text(scaling.stops_at));
    if (scaling.stops_at != points.front().threads)
      text += fmt::format(", {} of {}", format_ratio(scaling.gain), threads_text(points.front().threads));
  }
  out.push_back({Tone::finding, "scaling", text + in_group(group, {&curve}) + "."});
}

// The highest thread count that both were measured at.
const Record* common_last(const ReadCurve& a, const ReadCurve& b, std::uint64_t& threads,
                          const Record*& other) {
  for (auto at = a.at.rbegin(); at != a.at.rend(); ++at) {
    const auto there = b.at.find(at->first);
    if (there == b.at.end() || !rate_of(*at->second) || !rate_of(*there->second)) continue;
    threads = at->first;
    other = there->second;
    return at->second;
  }
  return nullptr;
}

void say_tiers(const ReadGroup& group, std::vector<Sentence>& out) {
  for (std::size_t i = 0; i < group.curves.size(); ++i)
    for (std::size_t j = i + 1; j < group.curves.size(); ++j) {
      std::uint64_t threads = 0;
      const Record* second = nullptr;
      const Record* first = common_last(group.curves[i], group.curves[j], threads, second);
      if (first == nullptr) continue;
      double ratio = *rate_of(*first) / *rate_of(*second);
      std::string fast = group.curves[i].tier;
      std::string slow = group.curves[j].tier;
      if (ratio < 1) {
        ratio = 1 / ratio;
        std::swap(fast, slow);
      }
      const std::string text =
          ratio < 1 + kSameRate
              ? fmt::format("{} and {} feed the same at {}, within {}", fast, slow, threads_text(threads),
                            format_percent(kSameRate))
              : fmt::format("{} feeds {} of {} at {}", fast, times_text(ratio), slow, threads_text(threads));
      out.push_back(
          {Tone::finding, "tiers", text + in_group(group, {&group.curves[i], &group.curves[j]}) + "."});
    }
}

void say_accelerators(const ReadGroup& group, std::vector<Sentence>& out) {
  std::vector<std::string> parts;
  std::vector<const ReadCurve*> about;
  for (const ReadCurve& curve : group.curves) {
    double best = 0;
    for (const auto& [threads, record] : curve.at)
      best = std::max(best, metric_value(*record, "samples_per_s").value_or(0));
    if (best <= 0) continue;
    about.push_back(&curve);
    const double count = std::floor(best / kAcceleratorImages);
    parts.push_back(parts.empty()
                        ? fmt::format("{} feeds at most {} accelerator{} of {:.0f} images/s", curve.tier,
                                      count < 1000 ? fmt::format("{:.0f}", count) : format_number(count),
                                      count == 1 ? "" : "s", kAcceleratorImages)
                        : fmt::format("{} {}", curve.tier,
                                      count < 1000 ? fmt::format("{:.0f}", count) : format_number(count)));
  }
  if (!parts.empty())
    out.push_back(
        {Tone::finding, "accelerators", enumerate(parts) + ", not measured" + in_group(group, about) + "."});
}

void say_baseline(const ReadGroup& group, std::vector<Sentence>& out) {
  std::vector<std::string> parts;
  std::vector<const ReadCurve*> about;
  for (const ReadCurve& curve : group.curves) {
    std::vector<double> ratios;
    for (const auto& [threads, record] : curve.at)
      if (const auto ratio = baseline_ratio(*record)) ratios.push_back(*ratio);
    if (ratios.empty()) continue;
    about.push_back(&curve);
    const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    const std::string from = format_percent(*low);
    const std::string to = format_percent(*high);
    parts.push_back(fmt::format("{} of the plain loop on {}",
                                from == to ? from : fmt::format("{} to {}", from, to), curve.tier));
  }
  if (!parts.empty())
    out.push_back({Tone::finding, "baseline",
                   fmt::format("The client reached {}{}.", enumerate(parts), in_group(group, about))});
}

void say_ceiling(const ReadGroup& group, const ReadCurve& curve, const Output& output,
                 std::vector<Sentence>& out) {
  const Record* best = nullptr;
  std::vector<std::string> invalid;
  std::uint64_t best_threads = 0;
  for (const auto& [threads, record] : curve.at) {
    const auto fraction = metric_value(*record, "ceiling_fraction");
    if (!fraction) continue;
    if (record->verdict == Verdict::ceiling_invalid) continue;  // said with the other verdicts
    if (*fraction > kCeilingTolerance) {
      invalid.push_back(threads_text(threads));
    } else if (best == nullptr || *fraction > *metric_value(*best, "ceiling_fraction")) {
      best = record;
      best_threads = threads;
    }
  }
  if (!invalid.empty())
    out.push_back(
        {Tone::caution, "ceiling_invalid",
         fmt::format("The ceiling of {} is invalid at {}: reading was faster than the best probe{}.",
                     curve.tier, enumerate(invalid), in_group(group, {&curve}))});
  if (best == nullptr) return;
  const auto ceiling = metric_value(*best, "ceiling_bytes_per_s");
  const std::string of =
      ceiling ? fmt::format(" of {} {}", format_rate(*ceiling, output), rate_unit(output)) : "";
  out.push_back({Tone::finding, "ceiling",
                 fmt::format("{} reaches {} of its ceiling{} at {}{}.", curve.tier,
                             format_percent(*metric_value(*best, "ceiling_fraction")), of,
                             threads_text(best_threads), in_group(group, {&curve}))});
}

void say_cold_warm(const std::vector<ReadGroup>& groups, std::vector<Sentence>& out) {
  for (const ReadGroup& cold : groups) {
    if (cold.cache != "cold") continue;
    for (const ReadGroup& warm : groups) {
      if (warm.cache != "warm" || warm.rest != cold.rest) continue;
      for (const ReadCurve& curve : cold.curves) {
        if (lies_in_memory(curve)) continue;  // the two are the same measurement
        const ReadCurve* other = warm.find(curve.tier);
        std::uint64_t threads = 0;
        const Record* warm_cell = nullptr;
        const Record* cold_cell = other ? common_last(curve, *other, threads, warm_cell) : nullptr;
        if (cold_cell == nullptr) continue;
        const double ratio = *rate_of(*warm_cell) / *rate_of(*cold_cell);
        const std::string text =
            std::abs(ratio - 1) < kSameRate
                ? fmt::format("{} is as fast cold as warm at {}", curve.tier, threads_text(threads))
                : fmt::format("{} is {} {} warm than cold at {}", curve.tier,
                              times_text(ratio > 1 ? ratio : 1 / ratio), ratio > 1 ? "faster" : "slower",
                              threads_text(threads));
        // The title without its "cold": what tells this work from other work in these records.
        const std::string work = cold.title.size() > 6 ? " (" + cold.title.substr(6) + ")" : "";
        out.push_back({Tone::finding, "cold_warm", text + work + "."});
      }
    }
  }
}

}  // namespace

void say_read(const std::vector<ReadGroup>& groups, const Output& output, std::vector<Sentence>& out) {
  for (const ReadGroup& group : groups) say_tiers(group, out);
  say_cold_warm(groups, out);
  for (const ReadGroup& group : groups)
    for (const ReadCurve& curve : group.curves) say_scaling(group, curve, out);
  for (const ReadGroup& group : groups)
    for (const ReadCurve& curve : group.curves) say_ceiling(group, curve, output, out);
  for (const ReadGroup& group : groups) say_baseline(group, out);
  for (const ReadGroup& group : groups) say_accelerators(group, out);
}

}  // namespace penstock::verdicts

namespace penstock {

std::optional<double> baseline_ratio(const Record& record) {
  return verdicts::ratio_of(find_metric(record, "samples_per_s"),
                            find_metric(record, "baseline_samples_per_s"));
}

std::optional<double> scaling_ratio(const ReadCurve& curve, const Record& record) {
  const Record& first = *curve.at.begin()->second;
  for (const char* rate : {"samples_per_s", "payload_bytes_per_s"})
    if (const auto ratio = verdicts::ratio_of(find_metric(record, rate), find_metric(first, rate)))
      return ratio;
  return std::nullopt;
}

}  // namespace penstock
