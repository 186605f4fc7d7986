// The conclusion from the records of `read` in three sentences, about the fastest rows of the page: what
// limits the slowest tier, how much it delivers, and what to do.
//
// What limits is concluded from the fastest row of the tier, in this order:
// - The verdict client_bound: the processors of this machine limit.
// - A decoded rate whose ceiling is at least twice as high: decoding limits.
// - Data from the page cache: they do not measure the device.
// - A rate that still rises at the highest number of ranks: that number limits.
// - A rate of at least 95% of a ceiling that is the same at every number of threads: the tier limits.
// - A rate that still rises at the highest number of threads: that number limits. The ceiling is of as many
//   clients, and may rise with them.
// - A rate of at least 80% of the ceiling: the tier limits.
// Otherwise the sentence says that the limit cannot be told, and what to run.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/view/read_parts.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/record/statistics.hpp"

namespace penstock::verdicts {
namespace {

using namespace read_metrics;

constexpr double kNearCeiling = 0.8;
constexpr double kAtCeiling = 0.95;
constexpr double kSameCeiling = 0.9;   // the lowest ceiling as a part of the highest
constexpr double kDecodingLimits = 2;  // the ceiling divided by the decoded rate

enum class Limit { page_cache, processors, decoding, tier, threads, no_ceiling, unknown };

double byte_rate(const Record& record) {
  return metric_value(record, kPayloadRate).value_or(0);
}

const ReadGroup& group_of(const std::vector<ReadGroup>& groups, const Record& record) {
  return *std::find_if(groups.begin(), groups.end(), [&](const ReadGroup& group) {
    const ReadCurve* const curve = group.find(tier_name(record));
    return curve != nullptr && std::any_of(curve->by_count.begin(), curve->by_count.end(),
                                           [&](const auto& row) { return row.second == &record; });
  });
}

double ceiling_of(const ReadCurve& curve) {
  double ceiling = 0;
  for (const auto& [threads, record] : curve.by_count)
    ceiling = std::max(ceiling, metric_value(*record, kCeilingRate).value_or(0));
  return ceiling;
}

// Whether the tier's ceiling was measured at several numbers of threads and does not depend on them.
bool ceiling_is_flat(const ReadCurve& curve) {
  const auto is_high = [highest = ceiling_of(curve)](const auto& row) {
    return metric_value(*row.second, kCeilingRate).value_or(0) >= kSameCeiling * highest;
  };
  return curve.by_count.size() > 1 && std::all_of(curve.by_count.begin(), curve.by_count.end(), is_high);
}

// Whether the last count of the curve is proven to be at least 10% faster than the one before it.
bool rises_to_the_end(const ReadCurve& curve) {
  if (curve.by_count.size() < 2) return false;
  const Record& last = *curve.by_count.rbegin()->second;
  const Record& before = *std::prev(curve.by_count.end(), 2)->second;
  const auto ratio = rate_ratio(last, before);
  const Metric* const last_rate = throughput(last);
  const Metric* const rate_before = throughput(before);
  return ratio && ratio->middle >= 1 + kLeastScalingGain && last_rate->samples.size() > 1 &&
         is_faster(*ratio, std::max(spread(last_rate->samples), spread(rate_before->samples)));
}

// Whether `record` has the most threads, or ranks, of a curve that still rises there.
bool needs_more_of(const std::vector<ReadGroup>& groups, const Record& record) {
  return std::any_of(groups.begin(), groups.end(), [&](const ReadGroup& group) {
    return std::any_of(group.curves.begin(), group.curves.end(), [&](const ReadCurve& curve) {
      return curve.by_count.rbegin()->second == &record && rises_to_the_end(curve);
    });
  });
}

// Whether the data can have come from this machine's page cache instead of the tier.
bool is_from_page_cache(const Record& record) {
  const std::string state = cache_state(record);
  return state == "warm" || state == "asis" || state == "warm unverified" || state.empty();
}

Limit limit_of(const Record& best, const std::vector<ReadGroup>& groups,
               const std::vector<ReadGroup>& ranks) {
  const ReadGroup& group = group_of(groups, best);
  const ReadCurve& curve = *group.find(tier_name(best));
  const double ceiling = ceiling_of(curve);
  const double share = ceiling > 0 ? byte_rate(best) / ceiling : 0;
  const std::string decode = parameter_text(best, "decode");
  const bool is_decoded = !decode.empty() && decode != "none";
  if (best.verdict == Verdict::client_bound) return Limit::processors;
  if (is_decoded && ceiling >= kDecodingLimits * byte_rate(best)) return Limit::decoding;
  if (is_from_page_cache(best)) return Limit::page_cache;
  if (needs_more_of(ranks, best)) return Limit::threads;
  const bool is_near = !is_decoded && share >= kNearCeiling && share <= kCeilingTolerance;
  if (is_near && share >= kAtCeiling && ceiling_is_flat(curve)) return Limit::tier;
  if (parameter_number(best, "ranks").value_or(1) <= 1 && needs_more_of(groups, best)) return Limit::threads;
  if (is_near) return Limit::tier;
  return ceiling > 0 ? Limit::unknown : Limit::no_ceiling;
}

// "8 threads, cold"; "4 ranks of 2 threads, cold, depth 8".
std::string where(const Record& record) {
  std::string text = threads_text(*read_threads(record));
  if (const auto ranks = whole_number(record, "ranks", 2)) text = fmt::format("{} ranks of {}", *ranks, text);
  if (const std::string state = cache_state(record); !state.empty()) text += ", " + state;
  if (const auto depth = whole_number(record, "depth", 2)) text += fmt::format(", depth {}", *depth);
  return text;
}

std::string limit_text(Limit limit, const Record& best, const ReadGroup& group, bool more_ranks) {
  const std::string tier = tier_name(best);
  const double ceiling = ceiling_of(*group.find(tier));
  switch (limit) {
    case Limit::page_cache:
      return fmt::format(
          "What limits {} itself is unknown, because its data may have come from this machine's page "
          "cache.",
          tier);
    case Limit::processors:
      return fmt::format("This machine's processors limit reading from {}, not the tier.", tier);
    case Limit::decoding:
      return fmt::format("Decoding limits reading from {}, not the tier: its ceiling is {} of the rate.",
                         tier, ratio_text(ceiling / byte_rate(best)));
    case Limit::tier:
      return fmt::format("{} itself limits reading: {} of the highest rate of any probe was reached.", tier,
                         format_percent(std::min(1.0, byte_rate(best) / ceiling)));
    case Limit::threads:
      return fmt::format(
          "The number of {0} limits reading from {1}: the rate still rises at the most {0} that were "
          "measured.",
          more_ranks ? "ranks" : "threads", tier);
    case Limit::no_ceiling:
      return fmt::format("What limits reading from {} is unknown, because its ceiling was not measured.",
                         tier);
    case Limit::unknown:
      break;
  }
  return fmt::format(
      "What limits reading from {} is unknown: it reached {} of the ceiling, and more threads were not "
      "proven to help.",
      tier, format_percent(std::min(1.0, byte_rate(best) / ceiling)));
}

// The fastest other tier that is proven to be faster with the same data and in a comparable cache state.
const Record* faster_tier(const Record& slowest, const std::vector<const Record*>& best) {
  const Record* fastest = nullptr;
  for (const Record* const other : best) {
    if (other == &slowest || read_data(*other) != read_data(slowest) ||
        (is_from_page_cache(*other) != is_from_page_cache(slowest)))
      continue;
    const Metric& rate = *find_metric(*other, kPayloadRate);
    const Metric& slow_rate = *find_metric(slowest, kPayloadRate);
    if (rate.samples.size() < 2 || slow_rate.samples.size() < 2 ||
        !is_faster(*ratio_of_any(&rate, &slow_rate),
                   std::max(spread(rate.samples), spread(slow_rate.samples))))
      continue;
    if (fastest == nullptr || byte_rate(*other) > byte_rate(*fastest)) fastest = other;
  }
  return fastest;
}

std::string amount_text(const Record& best, const Record* faster, const ReadGroup& group,
                        const Output& output) {
  const Metric& rate = *find_metric(best, kPayloadRate);
  const size_t repeats = rate.samples.size();
  std::string text = fmt::format("{} delivers at most {} {} ({}; {})", tier_name(best),
                                 format_rate(rate.value(), output), rate_unit(output), where(best),
                                 repeats < 2 ? "a single repeat"
                                             : fmt::format("median of {} repeats, which differ by up to {}",
                                                           repeats, format_percent(spread(rate.samples))));
  if (faster != nullptr)
    return text +
           fmt::format("; {} delivers {} that rate ({}).", tier_name(*faster),
                       range_text(*ratio_of_any(find_metric(*faster, kPayloadRate), &rate), ratio_text),
                       where(*faster));
  const std::string accelerators = accelerators_clause(best, group);
  return text + (accelerators.empty() ? "" : "; ") + accelerators + ".";
}

std::string more_threads_text(const ReadCurve& curve) {
  const uint64_t most = curve.by_count.rbegin()->first;
  return fmt::format("{},{}", 2 * most, 4 * most);
}

std::string advice_text(Limit limit, const Record& best, const Record* faster, const ReadGroup& group,
                        bool more_ranks) {
  const std::string tier = tier_name(best);
  const ReadCurve& curve = *group.find(tier);
  const Metric& rate = *find_metric(best, kPayloadRate);
  switch (limit) {
    case Limit::page_cache:
      return "Run the same command with --cache cold to measure the device.";
    case Limit::processors:
      return "Use a machine with more processors; a faster tier would not help.";
    case Limit::decoding:
      return "Give decoding more processors, or store smaller pictures; a faster tier would not help.";
    case Limit::no_ceiling:
      return "Run the same command without --no-ceiling.";
    default:
      break;
  }
  if (rate.samples.size() < 2)
    return "Run the same command with --repeat 5, because one repeat does not show how much results vary.";
  if (spread(rate.samples) > kNoisySpread)
    return fmt::format(
        "Run the same command on a quiet machine with --repeat 9, because repeats differ by {}.",
        format_percent(spread(rate.samples)));
  if (limit == Limit::threads)
    return more_ranks
               ? "Measure more ranks to find where the rate stops rising."
               : fmt::format("Run the same command with --threads {} to find where the rate stops rising.",
                             more_threads_text(curve));
  if (faster != nullptr)
    return fmt::format("Put the data on {} if it has room for them.", tier_name(*faster));
  if (limit == Limit::tier)
    return "Only a faster tier reads faster: copy the data there with 'penstock copy', and add --tier.";
  const std::string decode = parameter_text(best, "decode");
  if ((!decode.empty() && decode != "none") || whole_number(best, "depth", 2))
    return fmt::format("Run the same command with --threads {}.", more_threads_text(curve));
  return "Run the same command with --depth 8: more reads in flight may come closer to the ceiling.";
}

}  // namespace

std::vector<const Record*> best_records(const std::vector<ReadGroup>& groups) {
  std::vector<const Record*> best;
  std::set<std::string> cold_tiers;
  for (const bool cold : {true, false})
    for (const ReadGroup& group : groups) {
      if (group.open_loop || (group.cache == "cold") != cold) continue;
      for (const ReadCurve& curve : group.curves)
        for (const auto& [threads, record] : curve.by_count) {
          if (byte_rate(*record) <= 0 || (!cold && cold_tiers.contains(curve.tier))) continue;
          if (cold) cold_tiers.insert(curve.tier);
          const auto at = std::find_if(best.begin(), best.end(),
                                       [&](const Record* other) { return tier_name(*other) == curve.tier; });
          if (at == best.end())
            best.push_back(record);
          else if (byte_rate(*record) > byte_rate(**at))
            *at = record;
        }
    }
  return best;
}

std::vector<std::string> read_bottom_line(std::span<const Record> records, const Output& output) {
  const std::vector<ReadGroup> groups = read_groups(records);
  const std::vector<const Record*> best = best_records(groups);
  if (best.empty()) return {};
  const std::vector<ReadGroup> ranks = rank_groups(records);
  const Record& slowest = **std::min_element(best.begin(), best.end(), [](const Record* a, const Record* b) {
    return byte_rate(*a) < byte_rate(*b);
  });
  const Limit limit = limit_of(slowest, groups, ranks);
  const bool more_ranks = needs_more_of(ranks, slowest);
  const Record* const faster = faster_tier(slowest, best);
  const ReadGroup& group = group_of(groups, slowest);
  return {limit_text(limit, slowest, group, more_ranks), amount_text(slowest, faster, group, output),
          advice_text(limit, slowest, faster, group, more_ranks)};
}

}  // namespace penstock::verdicts
