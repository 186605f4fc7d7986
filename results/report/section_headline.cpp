// The first screen: the numbers that the experiment was for, and the sentences about the records.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/saving_cells.hpp"
#include "results/cells/verdicts.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

constexpr std::size_t kTiles = 6;
constexpr std::size_t kShown = 16;  // sentences of one tone; the others fold away

std::string tile(std::string_view value, std::string_view unit, std::string_view label, std::size_t colour) {
  return fmt::format(
      "<li class=\"tile colour-{}\"><span class=\"tile-value\">{}<small>{}</small></span><span "
      "class=\"tile-label\">{}</span></li>\n",
      colour % 7, escape(value), escape(unit), escape(label));
}

// The best rate of each tier: cold where it was measured cold.
std::vector<std::string> rate_tiles(std::vector<ReadGroup> groups, PageState& state) {
  std::vector<std::string> tiles;
  std::set<std::string> shown;
  std::stable_partition(groups.begin(), groups.end(),
                        [](const ReadGroup& group) { return group.cache == "cold"; });
  for (const ReadGroup& group : groups)
    for (const ReadCurve& curve : group.open_loop ? std::vector<ReadCurve>() : group.curves) {
      double best = 0;
      const Record* best_record = nullptr;
      std::uint64_t at = 0;
      for (const auto& [threads, record] : curve.at)
        if (const auto rate = metric_value(*record, "payload_bytes_per_s"); rate && *rate > best) {
          best = *rate;
          best_record = record;
          at = threads;
        }
      if (at == 0 || !shown.insert(curve.tier).second) continue;
      const std::string cache = cache_state(*best_record);
      const std::string rest =
          cache == group.cache && group.title.size() > cache.size() ? group.title.substr(cache.size()) : "";
      tiles.push_back(tile(format_rate(best, state.output), rate_unit(state.output),
                           fmt::format("{} at its best{}{}: {} thread{}{}", curve.tier,
                                       cache.empty() ? "" : " ", cache, at, at == 1 ? "" : "s", rest),
                           colour_of(state.tiers, curve.tier)));
    }
  return tiles;
}

std::vector<std::string> train_tiles(const std::vector<TrainGroup>& groups) {
  std::vector<std::string> tiles;
  for (const TrainGroup& group : groups) {
    if (group.at.empty()) continue;
    const std::uint64_t prefetch = group.at.rbegin()->first;
    const bool believed = std::all_of(group.at.begin(), group.at.end(), [](const auto& cell) {
      return cell.second->verdict != Verdict::client_bound;
    });
    if (const auto hidden = hidden_by_prefetch(group, prefetch); hidden && *hidden > 0 && believed)
      tiles.push_back(tile(fmt::format("{:.0f}", *hidden * 100), "%",
                           fmt::format("of the waiting for input gone by prefetching, {}", group.title), 2));
    double most = -1;
    std::uint64_t at = 0;
    for (const auto& [other, measured] : group.at)
      if (const auto busy = metric_value(*measured, "accelerator_utilization"); busy && *busy > most) {
        most = *busy;
        at = other;
      }
    if (most >= 0)
      tiles.push_back(tile(fmt::format("{:.0f}", most * 100), "%",
                           fmt::format("accelerator busy at best, {}, prefetch {}", group.title, at), 2));
  }
  return tiles;
}

std::vector<std::string> saving_tiles(const std::vector<SavingGroup>& groups) {
  std::vector<std::string> tiles;
  for (const SavingGroup& group : groups)
    for (const SavingRuns& arm : group.arms)
      if (const auto by = shorter_than_direct(group, arm); by && by->least > 1)
        tiles.push_back(
            tile(fmt::format("{:.1f}", by->ratio.median), "x shorter",
                 fmt::format("held by a save of {} {} than by a direct one{}{}", group.name,
                             saved_how(arm.first(), arm.arm), skipped_text(arm.runs),
                             by->ceiling_too_low ? " (more than the ceilings measured allow)" : ""),
                 2));
  return tiles;
}

std::string_view tone_text(Tone tone) {
  switch (tone) {
    case Tone::finding:
      return "finding";
    case Tone::caution:
      return "caution";
    case Tone::failure:
      break;
  }
  return "failure";
}

std::string tone_title(Tone tone) {
  switch (tone) {
    case Tone::finding:
      return "What the records say";
    case Tone::caution:
      return "Before you believe it";
    case Tone::failure:
      break;
  }
  return "Without a number";
}

std::string sentence_list(const std::vector<Sentence>& all, Tone tone) {
  std::string items;
  std::string folded;
  std::size_t count = 0;
  for (const Sentence& sentence : all) {
    if (sentence.tone != tone) continue;
    const std::string to = sentence.anchor.empty()
                               ? ""
                               : " <a class=\"to\" href=\"#" + escape(sentence.anchor) + "\">numbers</a>";
    (count++ < kShown ? items : folded) += "<li>" + escape(sentence.text) + to + "</li>\n";
  }
  if (items.empty()) return "";
  if (!folded.empty())
    folded = fmt::format("<details class=\"part\"><summary>{} more</summary><ul>\n{}</ul></details>\n",
                         count - kShown, folded);
  return fmt::format("<div class=\"sentences {0}\"><h3>{1}</h3>\n<ul>\n{2}</ul>{3}</div>\n", tone_text(tone),
                     tone_title(tone), items, folded);
}

}  // namespace

std::string headline_section(const std::vector<Record>& records, const std::vector<std::string>& problems,
                             PageState& state) {
  const std::vector<Sentence>& all = state.said;
  std::vector<std::string> tiles = rate_tiles(read_groups(records), state);
  for (std::string& tile : train_tiles(train_groups(records))) tiles.push_back(std::move(tile));
  for (std::string& tile : saving_tiles(saving_groups(records))) tiles.push_back(std::move(tile));
  std::string out = state.open_section("findings", "Findings", "");
  if (!tiles.empty()) {
    out += "<ul class=\"tiles\">\n";
    for (std::size_t i = 0; i < std::min(tiles.size(), kTiles); ++i) out += tiles[i];
    out += "</ul>\n";
  }
  const std::string said = sentence_list(all, Tone::finding) + sentence_list(all, Tone::caution) +
                           sentence_list(all, Tone::failure);
  out += said.empty()
             ? "<p class=\"lead\">These records hold nothing to compare; the tables below show them.</p>\n"
             : "<div class=\"said\">\n" + said + "</div>\n";
  if (!problems.empty()) {
    out += fmt::format(
        "<details class=\"problems\" open><summary>{} line{} could not be read as a record</summary><ul>\n",
        problems.size(), problems.size() == 1 ? "" : "s");
    for (const std::string& problem : problems) out += "<li>" + escape(problem) + "</li>\n";
    out += "</ul></details>\n";
  }
  return out + "</section>\n";
}

}  // namespace penstock::report
