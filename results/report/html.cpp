#include "results/report/html.hpp"

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
  body_ += "<tr";
  if (!id.empty()) body_ += " id=\"" + escape(id) + "\"";
  if (!row_class.empty()) body_ += " class=\"" + escape(row_class) + "\"";
  body_ += ">";
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool is_head = i == 0;
    body_ += is_head ? "<th scope=\"row\"" : "<td";
    std::string classes = columns_[i].kind == Kind::number ? "number" : "";
    if (!cells[i].cell_class.empty()) classes += (classes.empty() ? "" : " ") + cells[i].cell_class;
    if (!classes.empty()) body_ += " class=\"" + escape(classes) + "\"";
    body_ += ">" + cells[i].html + (is_head ? "</th>" : "</td>");
  }
  body_ += "</tr>\n";
  ++rows_;
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
  std::string out = "<div class=\"table" + (class_.empty() ? class_ : " " + escape(class_)) +
                    "\" tabindex=\"0\" role=\"region\" aria-label=\"" + escape(caption_) +
                    "\"><table><caption>" + escape(caption_) + after_caption_ + "</caption>\n<thead><tr>";
  for (const Column& column : columns_) {
    out += "<th scope=\"col\"";
    if (column.kind == Kind::number) out += " class=\"number\"";
    if (!column.hint.empty()) out += " title=\"" + escape(column.hint) + "\"";
    out += ">" + escape(column.title) + "</th>";
  }
  return out + "</tr></thead>\n<tbody>\n" + body_ + "</tbody></table></div>\n";
}

}  // namespace penstock::report
