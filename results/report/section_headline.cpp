// The first screen: the most important numbers of the experiment, and the sentences about the records.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/record_view.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

constexpr size_t kMostTiles = 6;

std::string sentence_list(const std::vector<Sentence>& sentences, Tone tone, std::string_view tone_class,
                          std::string_view title) {
  const std::vector<const Sentence*> leading = leading_sentences(sentences, tone, kMostSentences);
  std::string items;
  std::string folded;
  size_t folded_count = 0;
  for (const Sentence& sentence : sentences) {
    if (sentence.tone != tone) continue;
    const std::string link = sentence.anchor.empty()
                                 ? ""
                                 : " <a class=\"to\" href=\"#" + escape(sentence.anchor) + "\">numbers</a>";
    const bool is_leading = std::find(leading.begin(), leading.end(), &sentence) != leading.end();
    (is_leading ? items : folded) += "<li>" + sentence_html(sentence.text) + link + "</li>\n";
    folded_count += is_leading ? 0 : 1;
  }
  if (items.empty()) return "";
  if (folded_count == 1) items += std::exchange(folded, "");
  if (!folded.empty())
    folded = fmt::format("<details class=\"part\"><summary>{} more</summary><ul>\n{}</ul></details>\n",
                         folded_count, folded);
  return fmt::format("<div class=\"sentences {0}\"><h3>{1}</h3>\n<ul>\n{2}</ul>{3}</div>\n", tone_class,
                     title, items, folded);
}

}  // namespace

std::string headline_section(const std::vector<Record>& records, const std::vector<std::string>& problems,
                             const std::vector<std::string>& bottom_line, PageState& state) {
  const std::vector<Sentence>& sentences = state.sentences;
  std::vector<std::string> tiles;
  for (const RecordView* const view : ordered_views())
    for (std::string& tile : view->tiles(records, state)) tiles.push_back(std::move(tile));
  std::string lines;
  for (const std::string& line : bottom_line)
    lines += (lines.empty() ? "<strong>" + sentence_html(line) + "</strong>" : " " + sentence_html(line));
  std::string out = state.open_section("findings", "In three sentences", "",
                                       "<p class=\"bottom-line\">" + lines + "</p>\n");
  if (!tiles.empty()) {
    out += "<ul class=\"tiles\">\n";
    for (size_t i = 0; i < std::min(tiles.size(), kMostTiles); ++i) out += tiles[i];
    out += "</ul>\n";
  }
  const std::string lists =
      sentence_list(sentences, Tone::finding, "finding", "Findings") +
      sentence_list(sentences, Tone::caution, "caution", "Cautions") +
      sentence_list(sentences, Tone::failure, "failure", "Measurements without a result");
  if (!lists.empty()) out += "<div class=\"sentence-groups\">\n" + lists + "</div>\n";
  if (!problems.empty()) {
    out += fmt::format(
        "<details class=\"problems\" open><summary>{} could not be read as a record</summary><ul>\n",
        count_of(problems.size(), "line"));
    for (const std::string& problem : problems) out += "<li>" + escape(problem) + "</li>\n";
    out += "</ul></details>\n";
  }
  return out + "</section>\n";
}

std::string tiers_section(const std::vector<Record>& records, PageState& state) {
  std::vector<TierFigure> figures;
  for (const RecordView* const view : ordered_views())
    if (view->figures != nullptr)
      for (TierFigure& figure : view->figures(records, state.output)) figures.push_back(std::move(figure));
  std::vector<std::string> tiers;
  std::vector<std::string> names;  // of the columns
  const auto add_once = [](std::vector<std::string>& list, const std::string& text) {
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
  };
  for (const TierFigure& figure : figures) {
    add_once(tiers, figure.tier);
    add_once(names, figure.column);
  }
  // A row alone compares nothing; the tiles and sections show its figures.
  if (tiers.size() < 2 || names.size() < 2) return "";
  std::vector<HtmlTable::Column> columns{{"figure", HtmlTable::Kind::words}};
  for (const std::string& tier : tiers) columns.push_back({tier});
  HtmlTable table("The best figure of each tier", columns);
  std::vector<std::vector<std::string>> sheet;
  for (const std::string& name : names) {
    std::vector<Markup> row{text(name)};
    std::vector<std::string> sheet_row{name};
    for (const std::string& tier : tiers) {
      const auto at = std::find_if(figures.begin(), figures.end(), [&](const TierFigure& figure) {
        return figure.tier == tier && figure.column == name;
      });
      row.push_back(at == figures.end()
                        ? text("-")
                        : Markup{fmt::format("<a href=\"#record-{}\">{}</a>", state.number_of(*at->record),
                                             escape(format_number(at->value, state.output)))});
      sheet_row.push_back(at == figures.end() ? "" : plain_number(at->value));
    }
    table.row(std::move(row));
    sheet.push_back(std::move(sheet_row));
  }
  std::vector<std::string> sheet_columns{"figure"};
  sheet_columns.insert(sheet_columns.end(), tiers.begin(), tiers.end());
  table.set_class_and_button(
      "glance", state.add_sheet("The best figure of each tier", std::move(sheet_columns), std::move(sheet)));
  return state.open_section(
             "tiers", "Tiers at a glance", "",
             answer_html(
                 fmt::format(
                     "The best of all records: {} figures of {} tiers, each with a link to its record.",
                     names.size(), tiers.size()),
                 "")) +
         table.html() + "</section>\n";
}

}  // namespace penstock::report
