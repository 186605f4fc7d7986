// Sentences that compare jobs with different numbers of ranks, and other programs on the same tier.
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

std::string ranks_text(std::uint64_t ranks) {
  return ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks);
}

const std::vector<double>& rates_of(const Record& record) {
  return find_metric(record, kPayloadRate)->samples;
}

void describe_rank_curve(const ReadGroup& group, const ReadCurve& curve, std::vector<Sentence>& out) {
  std::vector<ScalingPoint> points;
  double apart = 0;
  bool once = false;
  for (const auto& [ranks, record] : curve.at) {
    points.push_back({ranks, find_metric(*record, kPayloadRate)->value()});
    apart = std::max(apart, spread(rates_of(*record)));
    once |= rates_of(*record).size() < 2;
  }
  const Scaling scaling = measure_scaling(points);
  if (scaling.useful_threads == 0) return;
  const std::string first = ranks_text(points.front().threads);
  const std::string last = ranks_text(points.back().threads);
  std::string text;
  if (scaling.loss_after_peak > apart)
    text = fmt::format("{} is fastest with {} and loses {} of that with {}", curve.tier,
                       ranks_text(scaling.peak_threads), format_percent(scaling.loss_after_peak), last);
  else if (scaling.useful_threads == points.front().threads || scaling.gain - 1 <= apart)
    text = fmt::format("More than {} bring nothing to {} that can be told: repeats lie up to {} apart", first,
                       curve.tier, format_percent(apart));
  else if (scaling.still_gains)
    text = fmt::format("{} still gains with {}, the most that were measured: {} of {}", curve.tier, last,
                       format_ratio(scaling.gain), first);
  else
    text = fmt::format("{} stops scaling at {}, {} of {}", curve.tier, ranks_text(scaling.useful_threads),
                       format_ratio(scaling.gain), first);
  add_sentence(out, once ? Tone::caution : Tone::finding, "rank_scaling", "{} ({}{}).", text, group.title,
               once ? "; from one repeat" : "");
}

}  // namespace

void describe_rank_scaling(const std::vector<ReadGroup>& groups, std::vector<Sentence>& out) {
  describe_each("ranks", groups, out, [&](const ReadGroup& group) {
    for (const ReadCurve& curve : group.curves) describe_rank_curve(group, curve, out);
  });
}

void describe_peers(const std::vector<PeerCurve>& peers, const std::vector<ReadGroup>& groups,
                    std::vector<Sentence>& out) {
  const std::size_t before = out.size();
  for (const PeerCurve& peer : peers)
    for (const ReadGroup& group : groups) {
      const ReadCurve* const ours = group.find(peer.tier);
      if (!is_comparable(peer, group)) continue;
      for (auto at = peer.at.rbegin(); at != peer.at.rend(); ++at) {
        const auto same = ours->at.find(at->first);
        const auto theirs = metric_value(*at->second, kPayloadRate);
        const auto rate = same == ours->at.end() ? std::nullopt : metric_value(*same->second, kPayloadRate);
        if (!theirs || !rate || *rate <= 0) continue;
        add_sentence(out, Tone::caution, "peers",
                     "{} moved {} of what read moved at {} ({}); it did work of its own: {}.", peer.name,
                     format_percent(*theirs / *rate), threads_text(at->first), group.title,
                     peer_work(*at->second));
        break;
      }
    }
  link_sentences("peers", before, out);
}

}  // namespace penstock::verdicts
