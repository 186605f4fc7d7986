// Writing HTML so that no text of a record can become markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/record.hpp"

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
};
Markup text(std::string_view text);

// A data table with a caption, heads with a scope, and its own horizontal scrolling.
class HtmlTable {
 public:
  enum class Kind { words, number };
  struct Column {
    std::string title;
    Kind kind = Kind::number;
    std::string hint;  // what the column means, shown on hover
  };
  HtmlTable(std::string caption, std::vector<Column> columns);
  // `row_class` is one of the page's own class names, or "".
  void row(std::vector<Markup> cells, std::string_view row_class = "");
  void row(const std::vector<std::string>& cells, std::string_view row_class = "");
  bool empty() const { return rows_ == 0; }
  std::string html() const;

 private:
  std::vector<Column> columns_;
  std::string caption_;
  std::string body_;
  std::size_t rows_ = 0;
};

}  // namespace penstock::report
