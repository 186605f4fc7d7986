// Writes HTML. Text of a record can never become markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/record/record.hpp"

namespace penstock::report {

// Escapes text for an element or a quoted attribute. Markup characters become entities; control characters
// and invalid UTF-8 become U+FFFD.
std::string escape(std::string_view text);
// The same for a sentence. No line ends inside the name of an option, such as --cache.
std::string sentence_html(std::string_view sentence);

// JSON as the content of <script type="application/json">. It is ASCII without '<', '>' and '&', so nothing
// in it can end the element or start a comment.
std::string script_json(const Json& json);

// Text that is already HTML: it is made of literals and of results of escape(). Whoever makes a Markup must
// escape all text of records in it.
struct Markup {
  std::string html;
  std::string cell_class = {};  // CSS class of a table's cell: one of the page's own class names
};
Markup text(std::string_view text);

// A table of data with a caption and column heads. A wide table scrolls sideways on its own. A column after
// the first is left out if all its cells are empty or "-".
class HtmlTable {
 public:
  enum class Kind { words, number };
  struct Column {
    std::string title;
    Kind kind = Kind::number;
    std::string hint = {};  // explains the column; shown when the pointer is on its head
  };
  HtmlTable(std::string caption, std::vector<Column> columns);
  // Adds a row. `row_class` is one of the page's own class names, or "". `id` must not come from a record.
  void row(std::vector<Markup> cells, std::string_view row_class = "", std::string_view id = "");
  void row(const std::vector<std::string>& cells, std::string_view row_class = "");
  bool empty() const { return rows_.empty(); }
  // Sets the CSS class of the whole table, and HTML (such as a button) that follows the caption.
  // `after_caption` must be finished HTML.
  void set_class_and_button(std::string_view table_class, std::string after_caption);
  std::string html() const;

 private:
  std::vector<Column> columns_;
  std::string caption_;
  std::vector<std::vector<Markup>> rows_;
  std::vector<std::string> row_starts_;  // "<tr" with the attributes of each row
  std::string class_;
  std::string after_caption_;
};

}  // namespace penstock::report
