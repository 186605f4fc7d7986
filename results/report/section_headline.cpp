// The first screen: the most important numbers of the experiment, and the sentences about the records.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "results/cells/record_view.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

constexpr size_t kMostTiles = 6;
// Sentences of one tone (findings, cautions or failures) that are shown; further ones are folded.
constexpr size_t kMostSentences = 16;

std::string sentence_list(const std::vector<Sentence>& sentences, Tone tone, std::string_view tone_class,
                          std::string_view title) {
  std::string items;
  std::string folded;
  size_t count = 0;
  for (const Sentence& sentence : sentences) {
    if (sentence.tone != tone) continue;
    const std::string link = sentence.anchor.empty()
                                 ? ""
                                 : " <a class=\"to\" href=\"#" + escape(sentence.anchor) + "\">numbers</a>";
    (count++ < kMostSentences ? items : folded) += "<li>" + escape(sentence.text) + link + "</li>\n";
  }
  if (items.empty()) return "";
  if (!folded.empty())
    folded = fmt::format("<details class=\"part\"><summary>{} more</summary><ul>\n{}</ul></details>\n",
                         count - kMostSentences, folded);
  return fmt::format("<div class=\"sentences {0}\"><h3>{1}</h3>\n<ul>\n{2}</ul>{3}</div>\n", tone_class,
                     title, items, folded);
}

}  // namespace

std::string headline_section(const std::vector<Record>& records, const std::vector<std::string>& problems,
                             PageState& state) {
  const std::vector<Sentence>& sentences = state.sentences;
  std::vector<std::string> tiles;
  for (const RecordView* const view : ordered_views())
    for (std::string& tile : view->tiles(records, state)) tiles.push_back(std::move(tile));
  std::string out = state.open_section("findings", "Findings", "");
  if (!tiles.empty()) {
    out += "<ul class=\"tiles\">\n";
    for (size_t i = 0; i < std::min(tiles.size(), kMostTiles); ++i) out += tiles[i];
    out += "</ul>\n";
  }
  const std::string lists = sentence_list(sentences, Tone::finding, "finding", "What the records say") +
                            sentence_list(sentences, Tone::caution, "caution", "Before you believe it") +
                            sentence_list(sentences, Tone::failure, "failure", "Without a number");
  out += lists.empty()
             ? "<p class=\"lead\">These records hold nothing to compare; the tables below show them.</p>\n"
             : "<div class=\"said\">\n" + lists + "</div>\n";
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
