#include "io_backends/core/cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr std::size_t kHelpWidth = 110;
constexpr std::size_t kHelpIndent = 32;
constexpr int kAnyNumber = 1 << 20;  // of arguments

std::string flag_names(const OptionSpec& spec) {
  std::string names = fmt::format("--{}", spec.name);
  if (!spec.alias.empty()) names += fmt::format(",{}{}", spec.alias.size() == 1 ? "-" : "--", spec.alias);
  return names;
}

// What CLI11 collects for one row.
struct Collected {
  const OptionSpec* spec = nullptr;
  std::vector<std::string> values = {};
  bool flag = false;
};

Error wrong_usage(const CommandInfo& command, std::string_view why) {
  return make_error(Errc::invalid_argument, fmt::format("{}; usage: {} (penstock {} --help tells more)", why,
                                                        command.synopsis, command.name));
}

Error unknown_flag(const CommandInfo& command, const std::string& word, const std::vector<Collected>& rows) {
  std::vector<std::string> spelled;
  for (const Collected& row : rows) {
    spelled.push_back(fmt::format("--{}", row.spec->name));
    if (row.spec->alias.size() > 1) spelled.push_back(fmt::format("--{}", row.spec->alias));
  }
  spelled.emplace_back("--help");
  const std::vector<std::string_view> valid(spelled.begin(), spelled.end());
  return unknown_name(fmt::format("option of 'penstock {}'", command.name), word.substr(0, word.find('=')),
                      valid);
}

// The value behind an unknown flag reads like an argument too many; then the flag is what is wrong.
Result<void> check_flags(const CommandInfo& command, std::span<const std::string> words,
                         const std::vector<Collected>& rows) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (!word.starts_with("--")) continue;
    const std::string_view name = std::string_view(word).substr(2, word.find('=') - 2);
    if (std::none_of(rows.begin(), rows.end(),
                     [&](const Collected& row) { return row.spec->name == name || row.spec->alias == name; }))
      return unknown_flag(command, word, rows);
  }
  return success();
}

Result<void> check_leftovers(const CommandInfo& command, const std::vector<std::string>& left,
                             const std::vector<Collected>& rows) {
  for (const std::string& word : left)
    if (word.starts_with('-') && word != "-" && word != "--") return unknown_flag(command, word, rows);
  for (const std::string& word : left) {
    if (word == "--") continue;
    return wrong_usage(command, command.arguments.empty()
                                    ? fmt::format("'{}' takes no arguments, not '{}'", command.name, word)
                                    : fmt::format("one argument too many: '{}'", word));
  }
  return success();
}

// Flags from a file, spelled as on the line: min_time is --min-time, and a sequence is a list ("1,2,4")
// unless the option may be repeated.
std::vector<OptionWord> flags_as_on_the_line(const std::vector<Collected>& rows,
                                             std::span<const OptionWord> config) {
  std::vector<OptionWord> words;
  for (OptionWord word : config) {
    std::replace(word.key.begin(), word.key.end(), '_', '-');
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const Collected& each) { return each.spec->name == word.key; });
    const bool list = row != rows.end() && !row->spec->repeated;
    if (list && !words.empty() && words.back().key == word.key)
      words.back().value += "," + word.value;
    else
      words.push_back(std::move(word));
  }
  return words;
}

// A list where one number is taken: several rows are what a sweep is for.
Result<void> check_single_numbers(const CommandInfo& command, const std::vector<Collected>& rows,
                                  std::span<const OptionWord> given) {
  for (const OptionWord& word : given) {
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const Collected& each) { return each.spec->name == word.key; });
    if (row == rows.end() || row->spec->type != OptionType::integer) continue;
    if (parse_count(word.value).ok() || !parse_list(word.value).ok()) continue;
    return make_error(Errc::invalid_argument,
                      fmt::format("--{} takes one number, not the list '{}': penstock sweep FILE.yaml runs "
                                  "{} with each, where FILE.yaml has 'command: {}' and 'grid: {{{}: [{}]}}'",
                                  word.key, word.value, command.name, command.name, word.key, word.value));
  }
  return success();
}

void wrap(std::string& out, std::string_view text, std::size_t indent) {
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (column > indent && column + 1 + word.size() > kHelpWidth) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text = space == std::string_view::npos ? "" : text.substr(space + 1);
  }
  out += '\n';
}

void describe(std::string& out, const OptionSpec& spec) {
  std::string left = spec.alias.size() == 1 ? fmt::format("  -{}, --{}", spec.alias, spec.name)
                                            : fmt::format("  --{}", spec.name);
  if (spec.alias.size() > 1) left += fmt::format(", --{}", spec.alias);
  if (spec.type != OptionType::flag) left += fmt::format(" {}", spec.value.empty() ? "TEXT" : spec.value);
  if (spec.repeated) left += " ...";
  out += left;
  if (left.size() + 2 > kHelpIndent) {
    out += '\n';
    out.append(kHelpIndent, ' ');
  } else {
    out.append(kHelpIndent - left.size(), ' ');
  }
  std::string text(spec.help);
  if (!spec.fallback.empty()) text += fmt::format(" (default {})", spec.fallback);
  wrap(out, text, kHelpIndent);
}

}  // namespace

std::vector<OptionTable> tables_of(const CommandInfo& command) {
  std::vector<OptionTable> tables{command.options};
  if (command.measures) tables.push_back(measuring_options());
  tables.push_back(common_options());
  return tables;
}

Result<CommandLine> parse_command_line(const CommandInfo& command, std::span<const std::string> words,
                                       std::span<const OptionWord> config) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const std::vector<OptionTable> tables = tables_of(command);
  std::vector<Collected> rows;
  for (const OptionTable table : tables)
    for (const OptionSpec& spec : table) rows.push_back({.spec = &spec});
  for (Collected& row : rows) {
    if (row.spec->type == OptionType::flag) {
      app.add_flag(flag_names(*row.spec), row.flag);
    } else {
      app.add_option(flag_names(*row.spec), row.values)
          ->expected(1)
          ->allow_extra_args(false)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
  }
  CommandLine line;
  // Any number is taken here: the value of a misspelt flag lands among the arguments, and the flag is what to
  // speak of.
  if (command.max_arguments > 0) app.add_option("arguments", line.arguments)->expected(0, kAnyNumber);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes words from the back
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    PENSTOCK_TRY(check_flags(command, words, rows));
    return wrong_usage(command, error.what());
  }
  PENSTOCK_TRY(check_leftovers(command, app.remaining(), rows));
  const auto most = static_cast<std::size_t>(command.max_arguments);
  if (line.arguments.size() > most)
    return wrong_usage(command, fmt::format("'{}' is one word too many", line.arguments[most]));
  if (static_cast<int>(line.arguments.size()) < command.min_arguments)
    return wrong_usage(command, fmt::format("'{}' needs {}", command.name, command.arguments));

  std::vector<OptionWord> given;
  std::map<std::string, bool, std::less<>> on_line;
  for (const Collected& row : rows) {
    if (row.flag) given.push_back({std::string(row.spec->name), "1"});
    for (const std::string& value : row.values) given.push_back({std::string(row.spec->name), value});
    on_line[std::string(row.spec->name)] = row.flag || !row.values.empty();
  }
  for (OptionWord& word : flags_as_on_the_line(rows, config)) {
    const auto found = on_line.find(word.key);
    if (found == on_line.end() || !found->second) given.push_back(std::move(word));
  }
  if (command.measures) PENSTOCK_TRY(check_single_numbers(command, rows, given));
  PENSTOCK_ASSIGN(line.options, Options::parse(tables, given, Options::kOnCommandLine));
  return line;
}

bool asks_for_help(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

std::string raw_value(std::span<const std::string> words, std::string_view name) {
  const std::string flag = fmt::format("--{}", name);
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(flag + "=")) return words[i].substr(flag.size() + 1);
  }
  return "";
}

std::string command_help(const CommandInfo& command) {
  std::string out = fmt::format("penstock {}: {}\n\nUsage: {}\n\nExamples:\n", command.name, command.summary,
                                command.synopsis);
  for (const std::string_view example : command.examples) out += fmt::format("  {}\n", example);
  if (!command.notes.empty()) out += fmt::format("\n{}\n", command.notes);
  std::vector<std::string_view> groups;
  const std::vector<OptionTable> tables = tables_of(command);
  for (const OptionTable table : tables)
    for (const OptionSpec& spec : table)
      if (std::find(groups.begin(), groups.end(), spec.group) == groups.end()) groups.push_back(spec.group);
  for (const std::string_view group : groups) {
    out += fmt::format("\n{}:\n", group);
    for (const OptionTable table : tables)
      for (const OptionSpec& spec : table)
        if (spec.group == group) describe(out, spec);
  }
  return out;
}

}  // namespace penstock
