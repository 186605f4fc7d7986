// Explains the terms of Penstock: `penstock help TERM`. The terms are those of docs/glossary.md, which CMake
// builds into the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// The text of docs/glossary.md.
extern const std::string_view glossary_text;

struct GlossaryTerm {
  std::string name;  // as in the glossary: "accelerator utilization (AU)"
  std::string meaning;
};

// Returns the terms in `markdown`, in its order: one for each row of its tables with two columns.
std::vector<GlossaryTerm> parse_glossary(std::string_view markdown);
// Returns the terms of the program's glossary.
const std::vector<GlossaryTerm>& glossary();

// Returns the terms that `word` names. The case of letters, a plural, and '-' in place of a blank do not
// matter. A term also has the names in its parentheses ("AU"), and those that other tools use ("p99").
std::vector<GlossaryTerm> find_terms(std::string_view word);

// Returns the terms that `word` names with their meanings, one paragraph each; "" if there is none.
std::string term_help(std::string_view word);
// Returns the list of all terms, for `penstock help`.
std::string list_of_terms();
// Returns the names of all terms as single words for completion: "queue-depth".
std::vector<std::string> terms_to_complete();
// The error for a word that is neither a command nor a term. It names the nearest of both.
Error unknown_term(std::string_view word, const std::vector<std::string>& commands);

}  // namespace penstock
