// The sentences about read records: scaling, tiers and cache states compared, baseline and ceiling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
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

// The rate of one accelerator if the user gave none.
constexpr double kAssumedImagesPerS = 200;

std::optional<double> rate_of(const Record& record) {
  const Metric* const rate = throughput(record);
  return rate != nullptr && rate->value() > 0 ? std::optional(rate->value()) : std::nullopt;
}

double spread_of(const Record& record) {
  const Metric* const rate = throughput(record);
  return rate == nullptr ? 0 : spread(rate->samples);
}

// The tone of a sentence about these curves. It is a caution if a result has a single repeat, because its
// spread is unknown.
Tone tone_of(const std::vector<const ReadCurve*>& curves) {
  return any_has_single_repeat(curves) ? Tone::caution : Tone::finding;
}

void describe_scaling(const ReadGroup& group, const ReadCurve& curve, std::vector<Sentence>& out) {
  const std::string subject = decodes(group) ? "decoding from " + curve.tier : curve.tier;
  if (const std::string text = scaling_text(curve, subject, threads_text, rate_ratio); !text.empty())
    out.push_back({tone_of({&curve}), "scaling", text + group_note(group, {&curve}) + "."});
}

// Two records of two curves.
struct RowPair {
  const Record* first = nullptr;
  const Record* second = nullptr;
  std::string threads;         // the thread count as text: "4 threads"; that of the second if they differ
  ValueRange ratio;            // rate of the second record divided by that of the first
  double larger_spread = 0;    // the larger spread of the two records' repeats
  bool single_repeat = false;  // whether one of the two curves has a record of a single repeat
  ValueRange faster_ratio() const { return ratio.middle < 1 ? inverse(ratio) : ratio; }
  bool is_same() const { return faster_ratio().middle < 1 + kSameRateTolerance; }
  bool is_noise() const {
    return (larger_spread > kSameRateTolerance || !is_same()) && !is_faster(faster_ratio(), larger_spread);
  }
};

// Compares two rows that both have a rate.
RowPair compared_rows(const ReadCurve& a, const Record* first, const ReadCurve& b, const Record* second,
                      uint64_t threads) {
  return {first,
          second,
          threads_text(threads),
          *ratio_of_any(throughput(*second), throughput(*first)),
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
                            : format_number(rate.value(), output) + " samples/s";
}

std::string cannot_be_distinguished(const std::string& what, const RowPair& rows) {
  return fmt::format("{} cannot be distinguished at {}: repeats differ by up to {}", what, rows.threads,
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
  if (common.size() > 1 &&
      std::all_of(common.begin(), common.end(), [](const auto& row) { return row.second.is_noise(); }))
    return "; no clear difference at equal threads either";
  constexpr size_t kMostCounts = 12;
  std::vector<std::string> parts;
  for (const auto& [threads, rows] : common)
    parts.push_back(fmt::format("{} at {}",
                                rows.is_noise()  ? "no clear difference"
                                : rows.is_same() ? "the same"
                                                 : range_text(rows.ratio, ratio_text),
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
                                ? " at " + rows.threads
                                : fmt::format(", each at its best thread count ({} at {}, {} at {})",
                                              rate_text(*rows.second, output), threads_text(fast_row->first),
                                              rate_text(*rows.first, output), threads_text(slow_row->first));
  std::string text = fmt::format("{} delivers {} the rate of {}{}", fast.tier,
                                 range_text(rows.ratio, ratio_text), slow.tier, where);
  if (rows.is_noise())
    text = fmt::format("{} and {} cannot be distinguished{}: repeats differ by up to {}", fast.tier,
                       slow.tier, where, format_percent(rows.larger_spread));
  else if (rows.is_same())
    text = fmt::format("{} and {} deliver the same rate{}, within {}", fast.tier, slow.tier, where,
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

// How the work of each group differs from that of other groups: "ranks 2". "" if it does not.
std::vector<std::string> titles_without_labels(const std::vector<ReadGroup>& groups) {
  RecordList firsts;
  for (const ReadGroup& group : groups) firsts.push_back(group.curves.front().by_count.begin()->second);
  std::vector<std::vector<std::string>> rows = read_texts(firsts);
  for (std::vector<std::string>& row : rows) row.pop_back();  // the label
  return titles_of(rows);
}

// Compares groups that differ only in their labels. This shows the effect of a change that the user marked
// with a label.
void describe_labels(const std::vector<ReadGroup>& groups, std::vector<Sentence>& out) {
  const std::vector<std::string> titles = titles_without_labels(groups);
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t j = i + 1; j < groups.size(); ++j) {
      const ReadGroup& a = groups[i];
      const ReadGroup& b = groups[j];
      if (a.work != b.work || a.cache != b.cache || a.open_loop) continue;
      for (const ReadCurve& curve : a.curves) {
        const auto rows = last_common_rows(curve, b.find(curve.tier));
        if (!rows) continue;
        const auto or_none = [](const std::string& label) { return label.empty() ? "no label" : label; };
        std::string text = fmt::format("{} is {} {} with {} than with {} at {}", curve.tier,
                                       range_text(rows->faster_ratio(), ratio_text),
                                       rows->ratio.middle > 1 ? "faster" : "slower", or_none(b.label),
                                       or_none(a.label), rows->threads);
        if (rows->is_noise() || rows->is_same())
          text = cannot_be_distinguished(
              fmt::format("{} with {} and with {}", curve.tier, or_none(a.label), or_none(b.label)), *rows);
        const std::string state = cache_state(*rows->first);
        describe_pair(*rows, text, state + (state.empty() || titles[i].empty() ? "" : ", ") + titles[i],
                      "labels", i, out);
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

// How many accelerators the row could feed, from its slowest and its fastest repeat: "at most 5", "4 to 6".
std::string accelerators_text(const Metric& sample_rate, double images_per_s) {
  const auto [slowest, fastest] = std::minmax_element(sample_rate.samples.begin(), sample_rate.samples.end());
  const double least = std::floor(*slowest / images_per_s);
  const double most = std::floor(*fastest / images_per_s);
  const auto text = [](double count) {
    return count < 1000 ? fmt::format("{:.0f}", count) : format_number(count);
  };
  if (most < 1) return "less than one";
  const std::string most_text = text(most);
  return least < 1 || text(least) == most_text ? "at most " + most_text : text(least) + " to " + most_text;
}

// The rate of one accelerator that the user gave to the latest run of the group.
std::optional<double> accelerator_rate(const ReadGroup& group) {
  const Record* newest = nullptr;
  for (const ReadCurve& curve : group.curves)
    for (const auto& [threads, record] : curve.by_count) keep_newer(newest, *record);
  return newest == nullptr ? std::nullopt : parameter_number(*newest, kAcceleratorRate);
}

bool samples_are_pictures(const Record& record) {
  const std::string codec = corpus_text(record, "codec");
  return (codec.starts_with("jpeg") || codec.starts_with("png")) && parameter_text(record, "block").empty();
}

// Why no figure follows from an --accelerator-rate that was given.
std::string no_accelerators_reason(const ReadGroup& group) {
  if (decodes(group)) return "with --decode the client may limit the rate; leave it out";
  for (const ReadCurve& curve : group.curves)
    for (const auto& [threads, record] : curve.by_count) {
      if (!parameter_text(*record, "block").empty()) return "blocks are no pictures; leave --block out";
      if (corpus_text(*record, "codec") == "mixed")
        return "the samples are of several types and may not be pictures; choose one type with --types";
      if (!samples_are_pictures(*record)) return "the samples are not known to be pictures";
    }
  return "no run without failed reads has a rate";
}

// If samples are decoded, the client may limit the rate, and a tier could feed more.
void describe_accelerators(const ReadGroup& group, std::vector<Sentence>& out) {
  const auto given_rate = accelerator_rate(group);
  if (decodes(group) && !given_rate) return;
  const double images_per_s = given_rate.value_or(kAssumedImagesPerS);
  if (images_per_s <= 0) return;
  std::vector<std::string> parts;
  std::vector<const ReadCurve*> curves;
  for (const ReadCurve& curve : group.curves) {
    const Metric* best = nullptr;
    uint64_t best_threads = 0;
    for (const auto& [threads, record] : curve.by_count)
      if (const Metric* const rate = find_metric(*record, kSampleRate);
          rate != nullptr && rate->value() > (best == nullptr ? 0 : best->value()) && !decodes(group) &&
          samples_are_pictures(*record) && record->verdict != Verdict::degraded) {
        best = rate;
        best_threads = threads;
      }
    if (best == nullptr) continue;
    curves.push_back(&curve);
    parts.push_back(fmt::format("{}{} {} at {}", curve.tier, parts.empty() ? " could feed" : "",
                                accelerators_text(*best, images_per_s), threads_text(best_threads)));
  }
  if (parts.empty() && given_rate)
    add_sentence(out, Tone::caution, "accelerators", "No figure for --accelerator-rate {:g}: {}.",
                 images_per_s, no_accelerators_reason(group));
  if (!parts.empty())
    add_sentence(out, Tone::finding, "accelerators", "At {}{} images/s per accelerator, {}{}.",
                 given_rate ? "" : "an assumed ", fmt::format("{:g}", images_per_s), enumerate(parts),
                 group_note(group, curves, "calculated, not measured"));
}

std::string accelerators_clause_at(const Metric& rate, double images_per_s, bool is_given) {
  const std::string count = accelerators_text(rate, images_per_s);
  const bool is_one = count == "at most 1" || count == "less than one";
  return fmt::format("enough for {} accelerator{} of {}{:g} images/s{} (calculated, not measured)", count,
                     is_one ? "" : "s", is_given ? "" : "an assumed ", images_per_s, is_one ? "" : " each");
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
        std::string text = fmt::format("{} is {} {} warm than cold at {}", curve.tier,
                                       range_text(rows->faster_ratio(), ratio_text),
                                       rows->ratio.middle > 1 ? "faster" : "slower", rows->threads);
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
void describe_offered(const ReadGroup& group, const ReadCurve& curve, const Output& output,
                      std::vector<Sentence>& out) {
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
                   format_number(*offered, output), curve.tier, threads_text(threads),
                   format_seconds(*median * 1e-9), format_seconds(*tail * 1e-9), note);
    else
      add_sentence(
          out, Tone::caution, "offered",
          "At {} samples/s {} did not keep up with {}: {} samples/s came, and latencies grow as long as "
          "that lasts{}.",
          format_number(*offered, output), curve.tier, threads_text(threads), format_number(*rate, output),
          note);
  }
}

// Whether two groups differ only in options: they have the same data, cache state, labels and tiers.
bool has_same_subject(const ReadGroup& a, const ReadGroup& b) {
  if (a.cache != b.cache || a.label != b.label || a.curves.size() != b.curves.size()) return false;
  const auto any_record = [](const ReadGroup& group) {
    return group.curves.front().by_count.begin()->second;
  };
  return read_data(*any_record(a)) == read_data(*any_record(b)) &&
         std::all_of(a.curves.begin(), a.curves.end(),
                     [&](const ReadCurve& curve) { return b.find(curve.tier) != nullptr; });
}

// The indices of the groups in the order in which sentences describe them: cold ones first, because they are
// about the tier, and then those with the highest rate.
std::vector<size_t> order_of_importance(const std::vector<ReadGroup>& groups) {
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t(0));
  const auto highest_rate = [&](size_t index) {
    double highest = 0;
    for (const ReadCurve& curve : groups[index].curves)
      if (const auto best = best_row(curve); best != curve.by_count.end())
        highest = std::max(highest, *rate_of(*best->second));
    return highest;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const bool a_is_cold = groups[a].cache == "cold";
    const bool b_is_cold = groups[b].cache == "cold";
    return a_is_cold != b_is_cold ? a_is_cold : highest_rate(a) > highest_rate(b);
  });
  return order;
}

}  // namespace

std::string accelerators_clause(const Record& record, const ReadGroup& group) {
  const Metric* const rate = find_metric(record, kSampleRate);
  const auto given_rate = accelerator_rate(group);
  if (rate == nullptr || decodes(group) || !samples_are_pictures(record) ||
      record.verdict == Verdict::degraded || given_rate.value_or(kAssumedImagesPerS) <= 0)
    return "";
  return accelerators_clause_at(*rate, given_rate.value_or(kAssumedImagesPerS), given_rate.has_value());
}

void describe_read(const std::vector<ReadGroup>& groups, const Output& output, std::vector<Sentence>& out) {
  describe_each("reading", groups, out, [&](const ReadGroup& group) {
    for (const ReadCurve& curve : group.curves) describe_offered(group, curve, output, out);
  });
  const std::vector<size_t> order = order_of_importance(groups);
  // The same tiers may do more with other options or ranks. A finding is about the best of them.
  std::vector<bool> is_beaten(groups.size());
  for (size_t i = 0; i < order.size(); ++i)
    is_beaten[order[i]] = std::any_of(order.begin(), order.begin() + ptrdiff_t(i), [&](size_t better) {
      return !groups[better].open_loop && has_same_subject(groups[better], groups[order[i]]);
    });
  // The sentences about cold groups come first: they are about the tier, and others about the page cache.
  for (const bool cold : {true, false}) {
    const auto for_each_group = [&](const auto& describe) {
      for (const size_t index : order) {
        if (groups[index].open_loop || (groups[index].cache == "cold") != cold) continue;
        const size_t sentences_before = out.size();
        describe(groups[index]);
        link_sentences(group_anchor("reading", index), sentences_before, out);
        for (size_t i = sentences_before; i < out.size(); ++i) out[i].is_secondary = is_beaten[index];
      }
    };
    const auto for_each_curve = [&](const auto& describe) {
      for_each_group([&](const ReadGroup& group) {
        for (const ReadCurve& curve : group.curves) describe(group, curve);
      });
    };
    for_each_group([&](const ReadGroup& group) { describe_tiers(group, output, out); });
    for_each_curve(
        [&](const ReadGroup& group, const ReadCurve& curve) { describe_scaling(group, curve, out); });
    for_each_curve(
        [&](const ReadGroup& group, const ReadCurve& curve) { describe_ceiling(group, curve, output, out); });
    for_each_curve(
        [&](const ReadGroup& group, const ReadCurve& curve) { describe_ranks(group, curve, output, out); });
    for_each_group([&](const ReadGroup& group) { describe_baseline(group, out); });
    for_each_group([&](const ReadGroup& group) { describe_accelerators(group, out); });
  }
  describe_labels(groups, out);
  describe_cold_warm(groups, out);
}

}  // namespace penstock::verdicts
