// Sentences of two kinds: comparisons of jobs with different numbers of ranks, and of `read` with other
// programs on the same tier.
#include <fmt/format.h>

#include <algorithm>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/view/read_parts.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/record/statistics.hpp"

namespace penstock::verdicts {
namespace {

using namespace read_metrics;

std::string ranks_text(uint64_t ranks) {
  return ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks);
}

const std::vector<double>& rates_of(const Record& record) {
  return find_metric(record, kPayloadRate)->samples;
}

void describe_rank_curve(const ReadGroup& group, const ReadCurve& curve, std::vector<Sentence>& out) {
  std::vector<ScalingPoint> points;
  double largest_spread = 0;
  bool single_repeat = false;
  for (const auto& [ranks, record] : curve.by_count) {
    points.push_back({ranks, find_metric(*record, kPayloadRate)->value()});
    largest_spread = std::max(largest_spread, spread(rates_of(*record)));
    single_repeat |= rates_of(*record).size() < 2;
  }
  const Scaling scaling = measure_scaling(points);
  if (scaling.useful_count == 0) return;
  const std::string first = ranks_text(points.front().threads);
  const std::string last = ranks_text(points.back().threads);
  std::string text;
  if (scaling.loss_after_peak > largest_spread)
    text = fmt::format("{} is fastest with {} and loses {} of that with {}", curve.tier,
                       ranks_text(scaling.peak_count), format_percent(scaling.loss_after_peak), last);
  else if (scaling.useful_count == points.front().threads || scaling.gain - 1 <= largest_spread)
    text = fmt::format("More than {} bring nothing to {} that can be told: repeats lie up to {} apart", first,
                       curve.tier, format_percent(largest_spread));
  else if (scaling.still_gains)
    text = fmt::format("{} still gains with {}, the most that were measured: {} of {}", curve.tier, last,
                       format_ratio(scaling.gain), first);
  else
    text = fmt::format("{} stops scaling at {}, {} of {}", curve.tier, ranks_text(scaling.useful_count),
                       format_ratio(scaling.gain), first);
  add_sentence(out, single_repeat ? Tone::caution : Tone::finding, "rank_scaling", "{} ({}{}).", text,
               group.title, single_repeat ? "; from one repeat" : "");
}

}  // namespace

void describe_rank_scaling(const std::vector<ReadGroup>& groups, std::vector<Sentence>& out) {
  describe_each("ranks", groups, out, [&](const ReadGroup& group) {
    for (const ReadCurve& curve : group.curves) describe_rank_curve(group, curve, out);
  });
}

void describe_peers(const std::vector<PeerCurve>& peers, const std::vector<ReadGroup>& groups,
                    std::vector<Sentence>& out) {
  const size_t sentences_before = out.size();
  for (const PeerCurve& peer : peers)
    for (const ReadGroup& group : groups) {
      const ReadCurve* const own_curve = group.find(peer.tier);
      if (!is_comparable(peer, group)) continue;
      for (auto at = peer.by_count.rbegin(); at != peer.by_count.rend(); ++at) {
        const auto own_row = own_curve->by_count.find(at->first);
        const auto peer_rate = metric_value(*at->second, kPayloadRate);
        const auto own_rate = own_row == own_curve->by_count.end()
                                  ? std::nullopt
                                  : metric_value(*own_row->second, kPayloadRate);
        if (!peer_rate || !own_rate || *own_rate <= 0) continue;
        add_sentence(out, Tone::caution, "peers",
                     "{} moved {} of what read moved at {} ({}); it did work of its own: {}.", peer.name,
                     format_percent(*peer_rate / *own_rate), threads_text(at->first), group.title,
                     peer_work(*at->second));
        break;
      }
    }
  link_sentences("peers", sentences_before, out);
}

}  // namespace penstock::verdicts
