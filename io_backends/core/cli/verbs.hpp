// Commands that have verbs (`penstock checkpoint save`), whose options are for some of the verbs alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct VerbOptions {
  std::string_view verb;
  std::span<const std::string_view> takes;  // long names; what no verb takes is the command's own
};

// invalid_argument, with the verbs that take it, for an option of another verb that stands on the line: that
// is a mistake. One from a configuration file is meant for that verb, and is not looked at. `-o` is "output".
Result<void> check_verb_options(std::string_view verb, const std::vector<VerbOptions>& verbs,
                                std::span<const std::string> argv);

// Of a command's table of verbs, each with a `name` and the long names of options that it `takes`. The table
// outlives what is given.
template <class Verb>
std::vector<VerbOptions> options_of(const std::vector<Verb>& verbs) {
  std::vector<VerbOptions> all;
  for (const Verb& verb : verbs) all.push_back({verb.name, verb.takes});
  return all;
}
// invalid_argument, with those that there are, for a word that is none. `command`: its name.
template <class Verb>
Result<const Verb*> find_verb(std::string_view command, const std::vector<Verb>& verbs,
                              std::string_view word) {
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs) {
    if (verb.name == word) return &verb;
    names.push_back(verb.name);
  }
  return unknown_name("verb of 'penstock " + std::string(command) + "'", word, names);
}

}  // namespace penstock
