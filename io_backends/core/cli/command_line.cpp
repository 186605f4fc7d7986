#include "io_backends/core/cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include <CLI/CLI.hpp>

#include "io_backends/core/text.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr std::size_t kHelpWidth = 110;
constexpr std::size_t kHelpIndent = 32;
constexpr int kAnyNumber = 1 << 20;  // number of arguments

std::string flag_names(const OptionSpec& spec) {
  std::string names = fmt::format("--{}", spec.name);
  if (!spec.alias.empty()) names += fmt::format(",{}{}", spec.alias.size() == 1 ? "-" : "--", spec.alias);
  return names;
}

// The values that CLI11 collects for one option (`spec`).
struct Collected {
  const OptionSpec* spec = nullptr;
  std::vector<std::string> values = {};
  bool flag = false;

  bool on_line() const { return flag || !values.empty(); }
};

// The row of the option `name`; null if there is none.
const Collected* find_row(const std::vector<Collected>& rows, std::string_view name) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Collected& each) { return each.spec->name == name; });
  return row == rows.end() ? nullptr : &*row;
}

Error wrong_usage(const CommandInfo& command, std::string_view why) {
  return make_error(Errc::invalid_argument, fmt::format("{}; usage: {} (penstock {} --help tells more)", why,
                                                        command.synopsis, command.name));
}

Error unknown_flag(const CommandInfo& command, const std::string& word) {
  std::vector<std::string> spelled;
  for (const OptionSpec* spec : options_of(command)) {
    spelled.push_back(fmt::format("--{}", spec->name));
    if (spec->alias.size() > 1) spelled.push_back(fmt::format("--{}", spec->alias));
  }
  spelled.emplace_back("--help");
  const std::vector<std::string_view> valid(spelled.begin(), spelled.end());
  return unknown_name(fmt::format("option of 'penstock {}'", command.name), word.substr(0, word.find('=')),
                      valid);
}

// After an unknown flag its value looks like a surplus argument. This reports the flag, which is the real
// error.
Result<void> check_flags(const CommandInfo& command, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.starts_with("--") && find_option(command, word.substr(2, word.find('=') - 2)) == nullptr)
      return unknown_flag(command_asked_for(command, words), word);
  }
  return success();
}

Result<void> check_leftovers(const CommandInfo& command, const std::vector<std::string>& left) {
  for (const std::string& word : left)
    if (word.starts_with('-') && word != "-" && word != "--") return unknown_flag(command, word);
  for (const std::string& word : left) {
    if (word == "--") continue;
    return wrong_usage(command, command.arguments.empty()
                                    ? fmt::format("'{}' takes no arguments, not '{}'", command.name, word)
                                    : fmt::format("one argument too many: '{}'", word));
  }
  return success();
}

Result<const CommandInfo*> find_subcommand(const CommandInfo& command, std::string_view word) {
  std::vector<std::string_view> names;
  for (const CommandInfo* subcommand : subcommands_of(command)) {
    if (last_word(*subcommand) == word) return subcommand;
    names.push_back(last_word(*subcommand));
  }
  return unknown_name(fmt::format("subcommand of 'penstock {}'", command.name), word, names);
}

// Keeps the rows that `subcommand` has, with its own specifications. Fails if the line gives an option of
// another subcommand.
Result<void> keep_own_rows(const CommandInfo& command, const CommandInfo& subcommand,
                           std::vector<Collected>& rows) {
  for (Collected& row : rows) {
    const std::string_view name = row.spec->name;
    row.spec = find_option(subcommand, name);
    if (row.spec != nullptr || !row.on_line()) continue;
    std::vector<std::string_view> takers;
    for (const CommandInfo* other : subcommands_of(command))
      if (find_option(*other, name) != nullptr) takers.push_back(last_word(*other));
    return make_error(Errc::invalid_argument,
                      fmt::format("'penstock {}' takes no --{}: it is an option of {}", subcommand.name, name,
                                  fmt::join(takers, ", ")));
  }
  std::erase_if(rows, [](const Collected& row) { return row.spec == nullptr; });
  return success();
}

// Changes flags of a file to the form of the command line: min_time becomes --min-time, and a sequence
// becomes a list ("1,2,4") unless the option may be repeated.
std::vector<OptionWord> normalized_flags(const std::vector<Collected>& rows,
                                         std::span<const OptionWord> config) {
  std::vector<OptionWord> words;
  for (OptionWord word : config) {
    std::replace(word.key.begin(), word.key.end(), '_', '-');
    const Collected* const row = find_row(rows, word.key);
    const bool list = row != nullptr && !row->spec->repeated;
    if (list && !words.empty() && words.back().key == word.key)
      words.back().value += "," + word.value;
    else
      words.push_back(std::move(word));
  }
  return words;
}

// Refuses a list for an option that takes one number. The message recommends a sweep.
Result<void> check_single_numbers(const CommandInfo& command, const std::vector<Collected>& rows,
                                  std::span<const OptionWord> given) {
  for (const OptionWord& word : given) {
    const Collected* const row = find_row(rows, word.key);
    if (row == nullptr || row->spec->type != OptionType::integer) continue;
    if (parse_count(word.value).ok() || !parse_list(word.value).ok()) continue;
    return make_error(Errc::invalid_argument,
                      fmt::format("--{} takes one number, not the list '{}': penstock sweep FILE.yaml runs "
                                  "{} with each, where FILE.yaml has 'command: {}' and 'grid: {{{}: [{}]}}'",
                                  word.key, word.value, command.name, command.name, word.key, word.value));
  }
  return success();
}

Result<void> check_argument_count(const CommandInfo& command, const std::vector<std::string>& arguments) {
  std::size_t least = 0;
  std::size_t most = 0;
  for (std::string_view rest = command.arguments; !rest.empty();) {
    const std::string_view word = take_part(rest, ' ');
    if (!word.starts_with('[')) ++least;
    most = word.ends_with("...") ? SIZE_MAX : most + 1;
  }
  if (command.subcommands != nullptr || arguments.size() < least)
    return wrong_usage(command, fmt::format("'{}' needs {}", command.name, command.arguments));
  if (arguments.size() > most)
    return wrong_usage(command, fmt::format("'{}' is one word too many", arguments[most]));
  return success();
}

// `command`: the command, whose tables have all flags that a configuration file may contain. `asked`: the
// command or subcommand to run.
Result<Options> options_from(const CommandInfo& command, const CommandInfo& asked,
                             const std::vector<Collected>& rows, std::span<const OptionWord> config) {
  std::vector<OptionWord> given;
  for (const Collected& row : rows) {
    if (row.flag) given.push_back({std::string(row.spec->name), "1"});
    for (const std::string& value : row.values) given.push_back({std::string(row.spec->name), value});
  }
  for (OptionWord& word : normalized_flags(rows, config)) {
    const Collected* const row = find_row(rows, word.key);
    const bool of_another_subcommand = row == nullptr && find_option(command, word.key) != nullptr;
    const bool on_line = row != nullptr && row->on_line();
    if (!of_another_subcommand && !on_line) given.push_back(std::move(word));
  }
  if (command.measures) PENSTOCK_TRY(check_single_numbers(command, rows, given));
  return Options::parse(tables_of(asked), given, Options::kOnCommandLine);
}

void wrap(std::string& out, std::string_view text, std::size_t indent) {
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = take_part(text, ' ');
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
  std::vector<OptionTable> tables;
  for (const CommandInfo* subcommand : subcommands_of(command)) {
    tables.push_back(subcommand->options);
    if (subcommand->pinned) tables.push_back(placement_options());
  }
  if (command.subcommands == nullptr) tables.push_back(command.options);
  if (command.measures) tables.push_back(measuring_options());
  if (command.pinned) tables.push_back(placement_options());
  tables.push_back(common_options());
  return tables;
}

std::vector<const OptionSpec*> options_of(const CommandInfo& command) {
  const std::vector<OptionTable> tables =
      command.subcommands == nullptr ? tables_of(command) : std::vector<OptionTable>{common_options()};
  std::vector<const OptionSpec*> options;
  for (const OptionTable table : tables)
    for (const OptionSpec& spec : table) options.push_back(&spec);
  return options;
}

std::vector<const OptionSpec*> all_options(const CommandInfo& command) {
  std::vector<const OptionSpec*> options;
  for (const OptionTable table : tables_of(command))
    for (const OptionSpec& spec : table)
      if (std::none_of(options.begin(), options.end(),
                       [&](const OptionSpec* other) { return other->name == spec.name; }))
        options.push_back(&spec);
  return options;
}

std::vector<std::string_view> groups_of(const std::vector<const OptionSpec*>& options) {
  std::vector<std::string_view> groups;
  for (const OptionSpec* spec : options)
    if (std::find(groups.begin(), groups.end(), spec->group) == groups.end()) groups.push_back(spec->group);
  return groups;
}

const OptionSpec* find_option(const CommandInfo& command, std::string_view name) {
  for (const OptionTable table : tables_of(command))
    for (const OptionSpec& spec : table)
      if (spec.name == name || (!spec.alias.empty() && spec.alias == name)) return &spec;
  return nullptr;
}

Result<CommandLine> parse_command_line(const CommandInfo& command, std::span<const std::string> words,
                                       std::span<const OptionWord> config) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<Collected> rows;
  for (const OptionSpec* spec : all_options(command)) rows.push_back({.spec = spec});
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
  CommandLine line{.command = &command};
  // Accepts any number of arguments. The value of a misspelt flag becomes an argument, and the error must
  // name the flag and not the number of arguments.
  if (!command.arguments.empty()) app.add_option("arguments", line.arguments)->expected(0, kAnyNumber);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 parses the last word first
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    PENSTOCK_TRY(check_flags(command, words));
    return wrong_usage(command_asked_for(command, words), error.what());
  }
  if (command.subcommands != nullptr && !line.arguments.empty()) {
    PENSTOCK_ASSIGN(line.command, find_subcommand(command, line.arguments[0]));
    line.arguments.erase(line.arguments.begin());
    PENSTOCK_TRY(keep_own_rows(command, *line.command, rows));
  }
  PENSTOCK_TRY(check_leftovers(*line.command, app.remaining()));
  PENSTOCK_TRY(check_argument_count(*line.command, line.arguments));
  PENSTOCK_ASSIGN(line.options, options_from(command, *line.command, rows, config));
  return line;
}

bool asks_for_help(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

const CommandInfo& command_asked_for(const CommandInfo& command, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    for (const CommandInfo* subcommand : subcommands_of(command))
      if (last_word(*subcommand) == word) return *subcommand;
  }
  return command;
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
  for (const std::string_view example : command.examples)
    if (!example.empty()) out += fmt::format("  {}\n", example);
  if (command.subcommands != nullptr) out += "\nSubcommands:\n";
  for (const CommandInfo* subcommand : subcommands_of(command)) {
    out += fmt::format("  {:<12}", last_word(*subcommand));
    wrap(out, subcommand->summary, 14);
  }
  if (command.subcommands != nullptr)
    out += fmt::format("\n'penstock {} SUBCOMMAND --help' shows the options of one.\n", command.name);
  if (!command.notes.empty()) out += fmt::format("\n{}\n", command.notes);
  const std::vector<const OptionSpec*> options = options_of(command);
  for (const std::string_view group : groups_of(options)) {
    out += fmt::format("\n{}:\n", group);
    for (const OptionSpec* spec : options)
      if (spec->group == group) describe(out, *spec);
  }
  return out;
}

}  // namespace penstock
