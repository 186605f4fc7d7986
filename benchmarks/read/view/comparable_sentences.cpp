// Sentences of two kinds: comparisons of jobs with different numbers of ranks, and of `read` with other
// programs on the same tier.
#include <fmt/format.h>

#include <algorithm>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/view/read_parts.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/record/statistics.hpp"

namespace penstock::verdicts {
namespace {

using namespace read_metrics;

std::string ranks_text(uint64_t ranks) {
  return count_of(ranks, "rank");
}

std::string depth_text(uint64_t depth) {
  return fmt::format("depth {}", depth);
}

void describe_rank_curve(const ReadGroup& group, const ReadCurve& curve, bool by_depth,
                         std::vector<Sentence>& out) {
  // Jobs of different sizes ran one after another, so their repeats are no pairs.
  const auto ratio = [](const Record& record, const Record& base) {
    return ratio_of_any(throughput(record), throughput(base));
  };
  const std::string text = scaling_text(curve, curve.tier, by_depth ? depth_text : ranks_text, ratio);
  const bool single_repeat = any_has_single_repeat({&curve});
  if (!text.empty())
    add_sentence(out, single_repeat ? Tone::caution : Tone::finding,
                 by_depth ? "depth_scaling" : "rank_scaling", "{} ({}{}).", text, group.title,
                 single_repeat ? "; from one repeat" : "");
}

}  // namespace

void describe_rank_scaling(const std::vector<ReadGroup>& groups, std::string_view section,
                           std::vector<Sentence>& out) {
  describe_each(section, groups, out, [&](const ReadGroup& group) {
    for (const ReadCurve& curve : group.curves) describe_rank_curve(group, curve, section == "depth", out);
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
                     "{} reached {} of the rate of read at {} ({}); its work was different: {}.", peer.name,
                     format_percent(*peer_rate / *own_rate), threads_text(at->first), group.title,
                     peer_work(*at->second));
        break;
      }
    }
  link_sentences("peers", sentences_before, out);
}

}  // namespace penstock::verdicts
