// Writing HTML so that no text of a record can become markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/record/record.hpp"

namespace penstock::report {

// Text for an element or a quoted attribute: markup characters as entities, control characters and what is no
// UTF-8 as U+FFFD.
std::string escape(std::string_view text);

// JSON for a <script type="application/json">: ASCII, and without any '<' or '&', so that nothing in it can
// end the element or start a comment.
std::string script_json(const Json& json);

// Text as HTML. Only this class, literals and escape() put bytes on the page, so what is not marked is
// escaped.
struct Markup {
  std::string html;
  std::string cell_class = {};  // one of the page's own class names, where it is a table's cell
};
Markup text(std::string_view text);

// A data table with a caption, heads with a scope, and its own horizontal scrolling.
class HtmlTable {
 public:
  enum class Kind { words, number };
  struct Column {
    std::string title;
    Kind kind = Kind::number;
    std::string hint = {};  // what the column means, shown on hover
  };
  HtmlTable(std::string caption, std::vector<Column> columns);
  // `row_class` is one of the page's own class names, or ""; `id` is ours too.
  void row(std::vector<Markup> cells, std::string_view row_class = "", std::string_view id = "");
  void row(const std::vector<std::string>& cells, std::string_view row_class = "");
  bool empty() const { return rows_ == 0; }
  // More for the whole table: one of the page's own class names, and what stands behind the caption (finished
  // HTML).
  void dress(std::string_view table_class, std::string behind_caption);
  std::string html() const;

 private:
  std::vector<Column> columns_;
  std::string caption_;
  std::string body_;
  std::string class_;
  std::string behind_caption_;
  std::size_t rows_ = 0;
};

}  // namespace penstock::report
