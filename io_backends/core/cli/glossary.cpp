#include "io_backends/core/cli/glossary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

// Words of other tools, and irregular plurals. A test checks that each leads to a term of the glossary.
constexpr NamedText kSynonyms[] = {
    {"ci", "confidence interval"},
    {"corpora", "corpus"},
    {"data set", "corpus"},
    {"dataset", "corpus"},
    {"gpu", "accelerator"},
    {"iodepth", "queue depth"},
    {"numjobs", "thread"},
    {"o direct", "direct I/O"},
    {"prefetch", "prefetch depth"},
    {"qd", "queue depth"},
    {"quantile", "percentile"},
    {"response time", "latency"},
    {"utilization", "accelerator utilization"},
};

// Markdown as plain text: without the marks of code and emphasis, and of a link only its text.
std::string plain_text(std::string_view markdown) {
  std::string text;
  for (size_t i = 0; i < markdown.size(); ++i) {
    const char c = markdown[i];
    if (c == '\\' && i + 1 < markdown.size()) {
      text += markdown[++i];
    } else if (c == ']' && i + 1 < markdown.size() && markdown[i + 1] == '(') {
      i = std::min(markdown.find(')', i), markdown.size());
    } else if (c != '`' && c != '*' && c != '[' && c != ']') {
      text += c;
    }
  }
  return text;
}

// The cells of a table's row. "\|" is a character of a cell.
std::vector<std::string> cells_of(std::string_view row) {
  std::vector<std::string> cells;
  row = trim(row);
  if (!row.starts_with('|')) return cells;
  std::string cell;
  for (size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '|' && row[i - 1] != '\\')
      cells.emplace_back(trim(std::exchange(cell, "")));
    else
      cell += row[i];
  }
  return cells;
}

// The word in the form in which words are compared: "Queue-Depth" becomes "queue depth".
std::string comparable_name(std::string_view word) {
  std::string text = lower_case(trim(word));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '-' || c == '_'; }, ' ');
  return text;
}

// A term's names in comparable form: "accelerator utilization" and "au".
std::vector<std::string> names_of(const GlossaryTerm& term) {
  std::string_view rest = term.name;
  std::vector<std::string> names{comparable_name(take_part(rest, '('))};
  if (!rest.empty()) names.push_back(comparable_name(take_part(rest, ')')));
  return names;
}

bool is_percentile(std::string_view word) {
  return word.size() > 1 && word[0] == 'p' &&
         word.find_first_not_of("0123456789.", 1) == std::string_view::npos;
}

std::vector<GlossaryTerm> terms_named(std::string_view name) {
  std::vector<GlossaryTerm> terms;
  for (const GlossaryTerm& term : glossary()) {
    const std::vector<std::string> names = names_of(term);
    if (std::find(names.begin(), names.end(), name) != names.end()) terms.push_back(term);
  }
  return terms;
}

// The word itself, what it is a synonym for, and what it may be the plural of.
std::vector<std::string> candidate_names(const std::string& word) {
  std::vector<std::string> candidates{word};
  for (const auto& [synonym, term] : kSynonyms)
    if (synonym == word) candidates.push_back(comparable_name(term));
  if (is_percentile(word)) candidates.emplace_back("percentile");
  if (word.ends_with("ies")) candidates.push_back(word.substr(0, word.size() - 3) + "y");
  if (word.ends_with("es")) candidates.push_back(word.substr(0, word.size() - 2));
  if (word.ends_with('s')) candidates.push_back(word.substr(0, word.size() - 1));
  return candidates;
}

}  // namespace

std::vector<GlossaryTerm> parse_glossary(std::string_view markdown) {
  std::vector<GlossaryTerm> terms;
  bool in_rows = false;  // after the line below the titles of a table
  while (!markdown.empty()) {
    const std::vector<std::string> cells = cells_of(take_part(markdown, '\n'));
    const bool is_rule = !cells.empty() && cells[0].find_first_not_of("-: ") == std::string::npos;
    in_rows = !cells.empty() && (in_rows || is_rule);
    if (in_rows && !is_rule && cells.size() == 2)
      terms.push_back({plain_text(cells[0]), plain_text(cells[1])});
  }
  return terms;
}

const std::vector<GlossaryTerm>& glossary() {
  static const std::vector<GlossaryTerm> terms = parse_glossary(glossary_text);
  return terms;
}

std::vector<GlossaryTerm> find_terms(std::string_view word) {
  for (const GlossaryTerm& term : glossary())
    if (equals_ignoring_case(word, lower_case(term.name))) return {term};
  for (const std::string& name : candidate_names(comparable_name(word)))
    if (std::vector<GlossaryTerm> terms = terms_named(name); !terms.empty()) return terms;
  return {};
}

std::string term_help(std::string_view word) {
  std::string text;
  for (const GlossaryTerm& term : find_terms(word)) {
    if (!text.empty()) text += '\n';
    append_wrapped(text, fmt::format("{}: {}", term.name, term.meaning), 0);
  }
  return text;
}

std::string list_of_terms() {
  std::string names;
  for (const GlossaryTerm& term : glossary())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", term.name);
  std::string text = "  ";
  append_wrapped(text, names, 2);
  return text;
}

std::vector<std::string> terms_to_complete() {
  std::vector<std::string> words;
  for (const GlossaryTerm& term : glossary()) {
    std::string word = names_of(term).front();
    std::replace(word.begin(), word.end(), ' ', '-');
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(std::move(word));
  }
  return words;
}

Error unknown_term(std::string_view word, const std::vector<std::string>& commands) {
  constexpr size_t kMostNames = 5;
  const std::string wanted = comparable_name(word);
  std::vector<std::string> names = commands;
  for (const GlossaryTerm& term : glossary()) names.push_back(names_of(term).front());
  std::vector<std::string> near;
  if (const std::string_view nearest = nearest_name(wanted, {names.begin(), names.end()}); !nearest.empty())
    near.emplace_back(nearest);
  for (const std::string& name : names) {
    const bool is_part = wanted.size() > 2 && (name.find(wanted) != std::string::npos ||
                                               (name.size() > 2 && wanted.find(name) != std::string::npos));
    if (is_part && near.size() < kMostNames && std::find(near.begin(), near.end(), name) == near.end())
      near.push_back(name);
  }
  return make_error(Errc::invalid_argument,
                    "'{}' is neither a command nor a term{}; 'penstock help' lists the commands and terms",
                    word, near.empty() ? "" : fmt::format("; the nearest: {}", fmt::join(near, ", ")));
}

}  // namespace penstock
