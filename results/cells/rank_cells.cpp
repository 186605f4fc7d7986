#include "results/cells/rank_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "results/cells/cells.hpp"

namespace penstock {
namespace {

struct Draft {
  std::string key;
  const Record* first = nullptr;
  RankGroup group;
};

Draft& draft_of(std::vector<Draft>& drafts, const Record& record) {
  const std::string cache = cache_name(record);
  std::string key = fmt::format("{}|{}|{}", read_work(record, "ranks"), cache, label_text(record));
  for (Draft& draft : drafts)
    if (draft.key == key) return draft;
  drafts.push_back({std::move(key), &record, {cache.empty() ? "reading" : cache, {}}});
  return drafts.back();
}

RankCurve& curve_of(RankGroup& group, const std::string& tier, std::uint64_t threads) {
  for (RankCurve& curve : group.curves)
    if (curve.tier == tier && curve.threads == threads) return curve;
  group.curves.push_back(
      {tier, threads, fmt::format("{}, {} thread{} a rank", tier, threads, threads == 1 ? "" : "s"), {}});
  return group.curves.back();
}

}  // namespace

std::vector<RankGroup> rank_groups(std::span<const Record> records) {
  std::vector<Draft> drafts;
  for (const Record& record : records) {
    const auto ranks = parameter_number(record, "ranks");
    const auto threads = parameter_number(record, "threads");
    if (record.command != "read" || !is_usable(record) || !ranks || !threads) continue;
    if (*ranks < 1 || *ranks > 1e9 || *threads < 1 || *threads > 1e9) continue;
    if (find_metric(record, "payload_bytes_per_s") == nullptr) continue;
    RankCurve& curve =
        curve_of(draft_of(drafts, record).group, tier_name(record), static_cast<std::uint64_t>(*threads));
    const Record*& there = curve.at[static_cast<std::uint64_t>(*ranks)];
    if (there == nullptr || there->started <= record.started) there = &record;
  }
  for (Draft& draft : drafts)
    std::erase_if(draft.group.curves, [](const RankCurve& curve) { return curve.at.size() < 2; });
  std::erase_if(drafts, [](const Draft& draft) { return draft.group.curves.empty(); });
  std::vector<const Record*> firsts;
  for (const Draft& draft : drafts) firsts.push_back(draft.first);
  std::vector<std::vector<std::string>> words = read_texts(firsts, "ranks");
  for (std::size_t i = 0; i < words.size(); ++i) words[i].insert(words[i].begin(), cache_name(*firsts[i]));
  const std::vector<std::string> titles = titles_of(words);
  std::vector<RankGroup> groups;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (!titles[i].empty()) drafts[i].group.title = titles[i];
    groups.push_back(std::move(drafts[i].group));
  }
  return groups;
}

std::size_t node_count(const Record& record) {
  const auto ranks = record.environment.find("ranks");
  if (ranks == record.environment.end() || !ranks->is_array()) return 1;
  std::set<std::string> hosts;
  for (const Json& rank : *ranks)
    if (rank.is_object())
      if (const auto host = rank.find("host"); host != rank.end() && host->is_string())
        hosts.insert(host->get<std::string>());
  return std::max<std::size_t>(1, hosts.size());
}

}  // namespace penstock
