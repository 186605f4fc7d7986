// The sentences about read records: scaling, tiers and cache states compared, baseline and ceiling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/view/read_parts.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/statistics.hpp"

namespace penstock::verdicts {
namespace {

using namespace read_metrics;

// How many samples per second one accelerator is assumed to use, for "at most N accelerators".
constexpr double kAcceleratorImagesPerS = 200;

std::optional<double> rate_of(const Record& record) {
  const Metric* const rate = throughput(record);
  return rate != nullptr && rate->value() > 0 ? std::optional(rate->value()) : std::nullopt;
}

double spread_of(const Record& record) {
  const Metric* const rate = throughput(record);
  return rate == nullptr ? 0 : spread(rate->samples);
}

double largest_spread(const ReadCurve& curve, uint64_t first, uint64_t last) {
  double largest = 0;
  for (const auto& [threads, record] : curve.by_count)
    if (threads >= first && threads <= last) largest = std::max(largest, spread_of(*record));
  return largest;
}

double rate_at(const std::vector<ScalingPoint>& points, uint64_t threads) {
  for (const ScalingPoint& point : points)
    if (point.threads == threads) return point.rate;
  return 0;
}

// The tone of a sentence about these curves. It is a caution if a result has a single repeat, because its
// spread is unknown.
Tone tone_of(const std::vector<const ReadCurve*>& curves) {
  return any_has_single_repeat(curves) ? Tone::caution : Tone::finding;
}

void describe_scaling(const ReadGroup& group, const ReadCurve& curve, std::vector<Sentence>& out) {
  std::vector<ScalingPoint> points;
  for (const auto& [threads, record] : curve.by_count)
    if (const auto ratio = scaling_ratio(curve, *record)) points.push_back({threads, *ratio});
  const Scaling scaling = measure_scaling(points);
  if (scaling.useful_count == 0) return;
  const std::string first = threads_text(points.front().threads);
  const std::string last = threads_text(points.back().threads);
  const std::string subject = decodes(group) ? "decoding from " + curve.tier : curve.tier;
  // The sentence will say how the rate changes from `from_threads` to the highest thread count. `difference`
  // is the change that it would report, or the smallest gain that counts if there is no such change. If the
  // noise is larger than `difference`, the sentence says that the effect is unknown.
  const ScalingPoint& previous = points[points.size() - 2];
  const uint64_t from_threads = scaling.loss_after_peak > 0 ? scaling.peak_count
                                : scaling.still_gains       ? previous.threads
                                                            : scaling.useful_count;
  const double difference = scaling.loss_after_peak > 0 ? scaling.loss_after_peak
                            : scaling.still_gains       ? points.back().rate / previous.rate - 1
                                                        : kLeastScalingGain;
  const double noise = largest_spread(curve, from_threads, points.back().threads);
  const double noise_before =
      std::max(spread_of(*curve.by_count.begin()->second), spread_of(*curve.by_count.at(from_threads)));
  const double gain_before = rate_at(points, from_threads) / points.front().rate;
  const bool gained_before = gain_before - 1 > noise_before;
  std::string text;
  if (difference < noise && gained_before && from_threads != points.front().threads) {
    text = fmt::format(
        "{} gains up to {}, {} of {}; what more bring cannot be told: repeats lie up to {} apart", subject,
        threads_text(from_threads), format_ratio(gain_before), first, format_percent(noise));
  } else if (difference < noise ||
             (!gained_before && from_threads != points.front().threads && !scaling.still_gains)) {
    text = fmt::format("What more than {} {} {} cannot be told: repeats lie up to {} apart", first,
                       points.front().threads == 1 ? "brings" : "bring", subject,
                       format_percent(std::max(noise, noise_before)));
  } else if (scaling.loss_after_peak > 0) {
    text = fmt::format("{} is fastest at {} and loses {} of that at {}", subject,
                       threads_text(scaling.peak_count), format_percent(scaling.loss_after_peak), last);
  } else if (scaling.still_gains) {
    text = fmt::format("{} still gains at {}, the most that were measured: {} of {}", subject, last,
                       format_ratio(scaling.gain), first);
  } else {
    text = fmt::format("{} stops scaling at {}", subject, threads_text(scaling.useful_count));
    if (scaling.useful_count != points.front().threads)
      text += fmt::format(", {} of {}", format_ratio(scaling.gain), first);
  }
  out.push_back({tone_of({&curve}), "scaling", text + group_note(group, {&curve}) + "."});
}

// Two records of two curves.
struct RowPair {
  const Record* first = nullptr;
  const Record* second = nullptr;
  std::string threads;         // the thread count as text: "4 threads"; that of the second if they differ
  double ratio = 0;            // rate of the second record divided by that of the first
  double larger_spread = 0;    // the larger spread of the two records' repeats
  bool single_repeat = false;  // whether one of the two curves has a record of a single repeat
  double faster_ratio() const { return std::max(ratio, 1 / ratio); }
  bool is_noise() const { return faster_ratio() - 1 <= larger_spread && larger_spread > kSameRateTolerance; }
  bool is_same() const { return faster_ratio() < 1 + kSameRateTolerance; }
};

// Compares two rows that both have a rate.
RowPair compared_rows(const ReadCurve& a, const Record* first, const ReadCurve& b, const Record* second,
                      uint64_t threads) {
  return {first,
          second,
          threads_text(threads),
          *rate_of(*second) / *rate_of(*first),
          std::max(spread_of(*first), spread_of(*second)),
          any_has_single_repeat({&a, &b})};
}

// The rows at each thread count at which both curves have a rate.
std::map<uint64_t, RowPair> common_rows(const ReadCurve& a, const ReadCurve& b) {
  std::map<uint64_t, RowPair> common;
  for (const auto& [threads, record] : a.by_count)
    if (const auto other = b.by_count.find(threads);
        other != b.by_count.end() && rate_of(*record) && rate_of(*other->second))
      common.emplace(threads, compared_rows(a, record, b, other->second, threads));
  return common;
}

std::optional<RowPair> last_common_rows(const ReadCurve& a, const ReadCurve* b) {
  if (b == nullptr) return std::nullopt;
  const std::map<uint64_t, RowPair> common = common_rows(a, *b);
  return common.empty() ? std::nullopt : std::optional(common.rbegin()->second);
}

// The row with the highest rate; the end of the map if no row has a rate.
std::map<uint64_t, const Record*>::const_iterator best_row(const ReadCurve& curve) {
  auto best = curve.by_count.end();
  for (auto at = curve.by_count.begin(); at != curve.by_count.end(); ++at)
    if (rate_of(*at->second) &&
        (best == curve.by_count.end() || *rate_of(*at->second) > *rate_of(*best->second)))
      best = at;
  return best;
}

std::string rate_text(const Record& record, const Output& output) {
  const Metric& rate = *throughput(record);
  return rate.unit == "B/s" ? fmt::format("{} {}", format_rate(rate.value(), output), rate_unit(output))
                            : format_number(rate.value()) + " samples/s";
}

std::string cannot_be_distinguished(const std::string& what, const RowPair& rows) {
  return fmt::format("{} cannot be told apart at {}: repeats lie up to {} apart", what, rows.threads,
                     format_percent(rows.larger_spread));
}

// Adds a sentence about one tier in two groups, for example cold and warm. `note` follows in brackets.
void describe_pair(const RowPair& rows, const std::string& text, const std::string& note, std::string key,
                   size_t group, std::vector<Sentence>& out) {
  std::string brackets = note;
  if (rows.single_repeat) brackets += brackets.empty() ? "from one repeat" : "; from one repeat";
  out.push_back({rows.single_repeat ? Tone::caution : Tone::finding, std::move(key),
                 text + (brackets.empty() ? "" : " (" + brackets + ")") + ".",
                 group_anchor("reading", group)});
}

// The ratio of the rates of `fast` and `slow` at each common thread count: "; at equal threads 5.0x at 1 and
// the same at 8". "" if the best rows already are those of the only such count.
std::string equal_threads_text(const ReadCurve& slow, const ReadCurve& fast, bool best_at_equal_threads) {
  const std::map<uint64_t, RowPair> common = common_rows(slow, fast);
  if (common.size() < (best_at_equal_threads ? 2U : 1U)) return "";
  constexpr size_t kMostCounts = 12;
  std::vector<std::string> parts;
  for (const auto& [threads, rows] : common)
    parts.push_back(fmt::format("{} at {}",
                                rows.is_noise()  ? "no clear difference"
                                : rows.is_same() ? "the same"
                                : rows.ratio < 1 ? fmt::format("{:.2g}x", rows.ratio)
                                                 : ratio_text(rows.ratio),
                                threads));
  return "; at equal threads " + enumerate(parts, kMostCounts);
}

// Compares two tiers: the best row of each, and the rows at equal thread counts.
std::string tiers_text(const ReadCurve& a, const ReadCurve& b, const Output& output) {
  const auto best_a = best_row(a);
  const auto best_b = best_row(b);
  if (best_a == a.by_count.end() || best_b == b.by_count.end()) return "";
  const bool b_is_faster = *rate_of(*best_b->second) > *rate_of(*best_a->second);
  const ReadCurve& slow = b_is_faster ? a : b;
  const ReadCurve& fast = b_is_faster ? b : a;
  const auto slow_row = b_is_faster ? best_a : best_b;
  const auto fast_row = b_is_faster ? best_b : best_a;
  const RowPair rows = compared_rows(slow, slow_row->second, fast, fast_row->second, fast_row->first);
  const bool equal_threads = slow_row->first == fast_row->first;
  // Only one thread count was measured, so "best" would tell nothing more.
  const bool only_row = equal_threads && slow.by_count.size() == 1 && fast.by_count.size() == 1;
  const std::string where = only_row
                                ? "at " + rows.threads
                                : fmt::format("at their best ({} at {}, {} at {})",
                                              rate_text(*rows.second, output), threads_text(fast_row->first),
                                              rate_text(*rows.first, output), threads_text(slow_row->first));
  std::string text = fmt::format("{} feeds {} of {} {}", fast.tier, ratio_text(rows.ratio), slow.tier, where);
  if (rows.is_noise())
    text = fmt::format("{} and {} cannot be told apart {}: repeats lie up to {} apart", fast.tier, slow.tier,
                       where, format_percent(rows.larger_spread));
  else if (rows.is_same())
    text = fmt::format("{} and {} feed the same {}, within {}", fast.tier, slow.tier, where,
                       format_percent(kSameRateTolerance));
  return text + equal_threads_text(slow, fast, equal_threads);
}

void describe_tiers(const ReadGroup& group, const Output& output, std::vector<Sentence>& out) {
  for (size_t i = 0; i < group.curves.size(); ++i)
    for (size_t j = i + 1; j < group.curves.size(); ++j) {
      const std::vector<const ReadCurve*> curves{&group.curves[i], &group.curves[j]};
      if (const std::string text = tiers_text(*curves[0], *curves[1], output); !text.empty())
        out.push_back({tone_of(curves), "tiers", text + group_note(group, curves) + "."});
    }
}

// Compares groups that differ only in their labels. This shows the effect of a change that the user marked
// with a label.
void describe_labels(const std::vector<ReadGroup>& groups, std::vector<Sentence>& out) {
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t j = i + 1; j < groups.size(); ++j) {
      const ReadGroup& a = groups[i];
      const ReadGroup& b = groups[j];
      if (a.work != b.work || a.cache != b.cache || a.open_loop) continue;
      for (const ReadCurve& curve : a.curves) {
        const auto rows = last_common_rows(curve, b.find(curve.tier));
        if (!rows) continue;
        const auto or_none = [](const std::string& label) { return label.empty() ? "no label" : label; };
        std::string text = fmt::format(
            "{} is {} {} with {} than with {} at {}", curve.tier, ratio_text(rows->faster_ratio()),
            rows->ratio > 1 ? "faster" : "slower", or_none(b.label), or_none(a.label), rows->threads);
        if (rows->faster_ratio() - 1 <= std::max(rows->larger_spread, kSameRateTolerance))
          text = cannot_be_distinguished(
              fmt::format("{} with {} and with {}", curve.tier, or_none(a.label), or_none(b.label)), *rows);
        describe_pair(*rows, text, cache_state(*rows->first), "labels", i, out);
      }
    }
}

// Reports that ranks read at different rates, and whether they had equal amounts of data.
void describe_ranks(const ReadGroup& group, const ReadCurve& curve, const Output& output,
                    std::vector<Sentence>& out) {
  for (const auto& [threads, record] : curve.by_count) {
    std::string text = rank_difference_text(
        fmt::format("At {} the ranks on {}", threads_text(threads), curve.tier), rank_rates(*record), output);
    if (text.empty()) continue;
    const auto least = parameter_number(*record, "rank_bytes_least");
    const auto most = parameter_number(*record, "rank_bytes_most");
    constexpr double kSameWork = 1.1;
    if (least && most && *most > kSameWork * *least)
      text += fmt::format(
          ". Penstock's own split may explain some of it: ranks get equal numbers of samples, but {} to {} "
          "a pass",
          format_bytes(*least, output), format_bytes(*most, output));
    out.push_back({Tone::caution, "ranks", text + group_note(group, {&curve}) + "."});
  }
}

void describe_accelerators(const ReadGroup& group, std::vector<Sentence>& out) {
  std::vector<std::string> parts;
  std::vector<const ReadCurve*> curves;
  for (const ReadCurve& curve : group.curves) {
    double best_rate = 0;
    for (const auto& [threads, record] : curve.by_count)
      if (parameter_text(*record, "block").empty() && record->verdict != Verdict::degraded)
        best_rate = std::max(best_rate, metric_value(*record, kSampleRate).value_or(0));
    if (best_rate <= 0) continue;
    curves.push_back(&curve);
    const double count = std::floor(best_rate / kAcceleratorImagesPerS);
    const std::string count_text = count < 1      ? "less than one"
                                   : count < 1000 ? fmt::format("{:.0f}", count)
                                                  : format_number(count);
    parts.push_back(parts.empty() ? fmt::format("{} feeds {}{} accelerator{} of an assumed {:.0f} images/s",
                                                curve.tier, count < 1 ? "" : "at most ", count_text,
                                                count <= 1 ? "" : "s", kAcceleratorImagesPerS)
                                  : curve.tier + " " + count_text);
  }
  if (!parts.empty())
    out.push_back({Tone::finding, "accelerators",
                   enumerate(parts) + group_note(group, curves, "computed from its rate, not tried") + "."});
}

void describe_cold_warm(const std::vector<ReadGroup>& groups, std::vector<Sentence>& out) {
  for (size_t i = 0; i < groups.size(); ++i) {
    const ReadGroup& cold = groups[i];
    if (cold.cache != "cold" || cold.open_loop) continue;
    for (const ReadGroup& warm : groups) {
      if (warm.cache != "warm" || warm.work_and_labels != cold.work_and_labels) continue;
      for (const ReadCurve& curve : cold.curves) {
        const auto rows = last_common_rows(curve, warm.find(curve.tier));
        if (!rows || !is_as_requested(*rows->first) || !is_as_requested(*rows->second)) continue;
        std::string text =
            fmt::format("{} is {} {} warm than cold at {}", curve.tier, ratio_text(rows->faster_ratio()),
                        rows->ratio > 1 ? "faster" : "slower", rows->threads);
        if (rows->is_noise())
          text = cannot_be_distinguished(curve.tier + " cold and warm", *rows);
        else if (rows->is_same())
          text = fmt::format("{} is as fast cold as warm at {}", curve.tier, rows->threads);
        // cold.title starts with "cold, ". The rest says how this work differs from other work.
        const std::string work = cold.title.size() > 6 ? cold.title.substr(6) : "";
        describe_pair(*rows, text, work, "cold_warm", i, out);
      }
    }
  }
}

// Reports whether a tier kept up with the offered rate of an open loop, and its latency at that rate.
void describe_offered(const ReadGroup& group, const ReadCurve& curve, std::vector<Sentence>& out) {
  constexpr double kKeptUpIfAtLeast = 0.98;
  for (const auto& [threads, record] : curve.by_count) {
    const auto offered = metric_value(*record, kOfferedRate);
    const auto rate = metric_value(*record, kSampleRate);
    const auto median = metric_value(*record, kLatencyP50);
    const auto tail = metric_value(*record, kLatencyP99);
    const auto kept_up = metric_value(*record, kKeptUpFraction);
    if (!offered || !rate || !median || !tail || !kept_up) continue;
    const std::string note = group_note(group, {&curve});
    if (*kept_up >= kKeptUpIfAtLeast)
      add_sentence(out, Tone::finding, "offered",
                   "At {} samples/s {} kept up with {}: {} from when they were due to the end "
                   "in the median, {} at "
                   "the 99th percentile{}.",
                   format_number(*offered), curve.tier, threads_text(threads), format_seconds(*median * 1e-9),
                   format_seconds(*tail * 1e-9), note);
    else
      add_sentence(
          out, Tone::caution, "offered",
          "At {} samples/s {} did not keep up with {}: {} samples/s came, and latencies grow as long as "
          "that lasts{}.",
          format_number(*offered), curve.tier, threads_text(threads), format_number(*rate), note);
  }
}

}  // namespace

void describe_read(const std::vector<ReadGroup>& groups, const Output& output, std::vector<Sentence>& out) {
  describe_each("reading", groups, out, [&](const ReadGroup& group) {
    for (const ReadCurve& curve : group.curves) describe_offered(group, curve, out);
  });
  const auto for_each_group = [&](const auto& describe) {
    describe_each("reading", groups, out, [&](const ReadGroup& group) {
      if (!group.open_loop) describe(group);
    });
  };
  const auto for_each_curve = [&](const auto& describe) {
    for_each_group([&](const ReadGroup& group) {
      for (const ReadCurve& curve : group.curves) describe(group, curve);
    });
  };
  for_each_group([&](const ReadGroup& group) { describe_tiers(group, output, out); });
  describe_labels(groups, out);
  describe_cold_warm(groups, out);
  for_each_curve(
      [&](const ReadGroup& group, const ReadCurve& curve) { describe_scaling(group, curve, out); });
  for_each_curve(
      [&](const ReadGroup& group, const ReadCurve& curve) { describe_ceiling(group, curve, output, out); });
  for_each_curve(
      [&](const ReadGroup& group, const ReadCurve& curve) { describe_ranks(group, curve, output, out); });
  for_each_group([&](const ReadGroup& group) { describe_baseline(group, out); });
  for_each_group([&](const ReadGroup& group) { describe_accelerators(group, out); });
}

}  // namespace penstock::verdicts
