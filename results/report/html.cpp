#include "results/report/html.hpp"

#include <algorithm>
#include <utility>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/text.hpp"

namespace penstock::report {
namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (length == 0 || (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F) {
      out += kReplacementCharacter;
    } else if (first == '&') {
      out += "&amp;";
    } else if (first == '<') {
      out += "&lt;";
    } else if (first == '>') {
      out += "&gt;";
    } else if (first == '"') {
      out += "&quot;";
    } else if (first == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string sentence_html(std::string_view sentence) {
  std::string out;
  while (true) {
    const size_t begin = sentence.find("--");
    if (begin == std::string_view::npos) return out + escape(sentence);
    const size_t end =
        std::min(sentence.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", begin), sentence.size());
    out += escape(sentence.substr(0, begin)) + "<span class=\"option\">" +
           escape(sentence.substr(begin, end - begin)) + "</span>";
    sentence.remove_prefix(end);
  }
}

std::string script_json(const Json& json) {
  return with_escapes(ascii_line(json), [](char c) -> std::string_view {
    return c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : c == '&' ? "\\u0026" : "";
  });
}

Markup text(std::string_view text) {
  return {escape(text)};
}

HtmlTable::HtmlTable(std::string caption, std::vector<Column> columns)
    : columns_(std::move(columns)), caption_(std::move(caption)) {}

void HtmlTable::row(std::vector<Markup> cells, std::string_view row_class, std::string_view id) {
  cells.resize(columns_.size());
  std::string start = "<tr";
  if (!id.empty()) start += " id=\"" + escape(id) + "\"";
  if (!row_class.empty()) start += " class=\"" + escape(row_class) + "\"";
  rows_.push_back(std::move(cells));
  row_starts_.push_back(std::move(start));
}

void HtmlTable::row(const std::vector<std::string>& cells, std::string_view row_class) {
  std::vector<Markup> row_cells;
  row_cells.reserve(cells.size());
  for (const std::string& cell : cells) row_cells.push_back(text(cell));
  row(std::move(row_cells), row_class);
}

void HtmlTable::set_class_and_button(std::string_view table_class, std::string after_caption) {
  class_ = table_class;
  after_caption_ = std::move(after_caption);
}

std::string HtmlTable::html() const {
  std::vector<bool> is_shown(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i)
    is_shown[i] = i == 0 || std::any_of(rows_.begin(), rows_.end(), [&](const std::vector<Markup>& row) {
                    return !row[i].html.empty() && row[i].html != "-";
                  });
  std::string out = "<div class=\"table" + (class_.empty() ? class_ : " " + escape(class_)) +
                    "\" tabindex=\"0\" role=\"region\" aria-label=\"" + escape(caption_) +
                    "\"><table><caption>" + escape(caption_) + after_caption_ + "</caption>\n<thead><tr>";
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!is_shown[i]) continue;
    out += "<th scope=\"col\"";
    if (columns_[i].kind == Kind::number) out += " class=\"number\"";
    if (!columns_[i].hint.empty()) out += " title=\"" + escape(columns_[i].hint) + "\"";
    out += ">" + escape(columns_[i].title) + "</th>";
  }
  out += "</tr></thead>\n<tbody>\n";
  for (size_t row = 0; row < rows_.size(); ++row) {
    out += row_starts_[row] + ">";
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!is_shown[i]) continue;
      const Markup& cell = rows_[row][i];
      out += i == 0 ? "<th scope=\"row\"" : "<td";
      std::string classes = columns_[i].kind == Kind::number ? "number" : "";
      if (!cell.cell_class.empty()) classes += (classes.empty() ? "" : " ") + cell.cell_class;
      if (!classes.empty()) out += " class=\"" + escape(classes) + "\"";
      out += ">" + cell.html + (i == 0 ? "</th>" : "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace penstock::report
