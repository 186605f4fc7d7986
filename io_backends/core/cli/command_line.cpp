#include "io_backends/core/cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include <CLI/CLI.hpp>

#include "io_backends/core/cli/foreign_flags.hpp"
#include "io_backends/core/cli/glossary.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr size_t kHelpWidth = 110;
constexpr size_t kHelpIndent = 32;
constexpr int kManyArguments = 1 << 20;  // a limit that no command line reaches

// The values of one option (`spec`) that CLI11 found on the command line. An option with a long alias has two
// rows until merge_aliases(): the value may depend on the name.
struct Collected {
  const OptionSpec* spec = nullptr;
  bool by_alias = false;
  std::vector<std::string> values = {};
  bool flag_given = false;

  std::string flag_names() const {
    if (by_alias) return fmt::format("--{}", spec->alias);
    return fmt::format("--{}{}", spec->name, spec->alias.size() == 1 ? fmt::format(",-{}", spec->alias) : "");
  }

  bool given_on_line() const { return flag_given || !values.empty(); }
};

// Returns the row of the option `name`; null if `rows` has none.
const Collected* find_row(const std::vector<Collected>& rows, std::string_view name) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Collected& each) { return each.spec->name == name; });
  return row == rows.end() ? nullptr : &*row;
}

Error both_names_error(const OptionSpec& spec) {
  return make_error(Errc::invalid_argument, "--{} and --{} are the same option: give one of them", spec.alias,
                    spec.name);
}

// Moves the values of each row of an alias to the row of the option's own name, and removes the alias's row.
Result<void> merge_aliases(std::vector<Collected>& rows) {
  for (Collected& row : rows) {
    if (!row.by_alias || !row.given_on_line()) continue;
    const auto own_row = std::find_if(rows.begin(), rows.end(), [&](const Collected& each) {
      return !each.by_alias && each.spec == row.spec;
    });
    if (own_row->given_on_line() && !row.spec->repeated) return both_names_error(*row.spec);
    own_row->flag_given = own_row->flag_given || row.flag_given;
    for (std::string& value : row.values)
      own_row->values.push_back(
          with_own_name(*row.spec, {std::string(row.spec->alias), std::move(value)}).value);
  }
  std::erase_if(rows, [](const Collected& row) { return row.by_alias; });
  return success();
}

Error wrong_usage(const CommandInfo& command, std::string_view why) {
  return make_error(Errc::invalid_argument, "{}; usage: {} (for help: penstock {} --help)", why,
                    command.synopsis, command.name);
}

Error unknown_flag(const CommandInfo& command, const std::string& word) {
  if (const std::string advice = foreign_flag_advice(command, word); !advice.empty())
    return make_error(
        Errc::invalid_argument,
        "'penstock {0}' has no option '{1}'; did you mean: {2}? (penstock {0} --help lists all)",
        command.name, word.substr(0, word.find('=')), advice);
  std::vector<std::string> flags;
  for (const OptionSpec* spec : options_of(command)) {
    flags.push_back(fmt::format("--{}", spec->name));
    if (spec->alias.size() > 1) flags.push_back(fmt::format("--{}", spec->alias));
  }
  flags.emplace_back("--help");
  const std::vector<std::string_view> valid_flags(flags.begin(), flags.end());
  return unknown_name(fmt::format("option of 'penstock {}'", command.name), word.substr(0, word.find('=')),
                      valid_flags);
}

// Returns an error that names the first unknown flag; success if all flags are known. CLI11's own message
// would mislead: it would report the value of the unknown flag as an argument that is too many.
Result<void> check_flags(const CommandInfo& command, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.starts_with("--") && find_option(command, word.substr(2, word.find('=') - 2)) == nullptr)
      return unknown_flag(command_named_by(command, words), word);
  }
  return success();
}

Result<void> check_leftovers(const CommandInfo& command, const std::vector<std::string>& leftovers) {
  for (const std::string& word : leftovers)
    if (word.starts_with('-') && word != "-" && word != "--") return unknown_flag(command, word);
  for (const std::string& word : leftovers) {
    if (word == "--") continue;
    return wrong_usage(command, command.arguments.empty()
                                    ? fmt::format("'{}' takes no arguments, not '{}'", command.name, word)
                                    : fmt::format("unexpected argument '{}'", word));
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

// Removes the rows of all options that `subcommand` does not have. In the other rows, sets `spec` to the
// OptionSpec of `subcommand`. Fails if the command line has an option that only other subcommands have.
Result<void> keep_own_rows(const CommandInfo& command, const CommandInfo& subcommand,
                           std::vector<Collected>& rows) {
  for (Collected& row : rows) {
    const std::string_view name = row.spec->name;
    row.spec = find_option(subcommand, name);
    if (row.spec != nullptr || !row.given_on_line()) continue;
    std::vector<std::string_view> subcommands_with_it;
    for (const CommandInfo* other : subcommands_of(command))
      if (find_option(*other, name) != nullptr) subcommands_with_it.push_back(last_word(*other));
    return make_error(Errc::invalid_argument, "'penstock {}' has no option --{}: it is an option of {}",
                      subcommand.name, name, fmt::join(subcommands_with_it, ", "));
  }
  std::erase_if(rows, [](const Collected& row) { return row.spec == nullptr; });
  return success();
}

// Converts the values of a YAML sequence in a configuration file to one list ("1,2,4"), or to one flag for
// each value if the option may be repeated.
std::vector<OptionWord> joined_flags(const std::vector<Collected>& rows, std::vector<OptionWord> config) {
  std::vector<OptionWord> words;
  for (OptionWord& word : config) {
    const Collected* const row = find_row(rows, word.key);
    const bool joins_values = row != nullptr && !row->spec->repeated;
    if (joins_values && !words.empty() && words.back().key == word.key)
      words.back().value += "," + word.value;
    else
      words.push_back(std::move(word));
  }
  return words;
}

// Refuses a list of numbers for an option that takes only one. The error has the text of a FILE.yaml for a
// sweep over the list. `arguments` are those of the command line, first the name of a subcommand.
Result<void> check_single_numbers(const CommandInfo& command, const std::vector<std::string>& arguments,
                                  const std::vector<Collected>& rows,
                                  std::span<const OptionWord> given_options) {
  for (const OptionWord& word : given_options) {
    const Collected* const row = find_row(rows, word.key);
    if (row == nullptr || row->spec->type != OptionType::integer) continue;
    if (parse_count(word.value).ok() || !parse_list(word.value).ok()) continue;
    return make_error(Errc::invalid_argument,
                      "--{0} takes one number, not the list '{1}'. To run {2} with each value, put the other "
                      "flags into 'fixed' of a sweep file that contains {{name: {0}, command: {2}, nouns: "
                      "{3}, grid: {{{0}: [{1}]}}}}, then run: penstock sweep FILE.yaml",
                      word.key, word.value, command.name, one_line(Json(arguments)));
  }
  return success();
}

Result<void> check_argument_count(const CommandInfo& command, const std::vector<std::string>& arguments) {
  size_t fewest_arguments = 0;
  size_t most_arguments = 0;
  for (std::string_view rest = command.arguments; !rest.empty();) {
    const std::string_view word = take_part(rest, ' ');
    if (!word.starts_with('[')) ++fewest_arguments;
    most_arguments = word.ends_with("...") ? SIZE_MAX : most_arguments + 1;
  }
  if (command.subcommands != nullptr || arguments.size() < fewest_arguments)
    return wrong_usage(command, fmt::format("'{}' needs {}", command.name, command.arguments));
  if (arguments.size() > most_arguments)
    return wrong_usage(command, fmt::format("unexpected argument '{}'", arguments[most_arguments]));
  return success();
}

// Makes the options from the command line (`rows`) and the configuration file (`config`). `selected` is the
// command or subcommand that runs. Flags of other subcommands of `command` in the file are ignored.
Result<Options> options_from(const CommandInfo& command, const CommandInfo& selected,
                             const std::vector<std::string>& arguments, const std::vector<Collected>& rows,
                             std::span<const OptionWord> config) {
  std::vector<OptionWord> given_options;
  for (const Collected& row : rows) {
    if (row.flag_given) given_options.push_back({std::string(row.spec->name), "1"});
    for (const std::string& value : row.values) given_options.push_back({std::string(row.spec->name), value});
  }
  PENSTOCK_ASSIGN(std::vector<OptionWord> flags, canonical_flags(command, config));
  for (OptionWord& word : joined_flags(rows, std::move(flags))) {
    const Collected* const row = find_row(rows, word.key);
    const bool of_another_subcommand = row == nullptr && find_option(command, word.key) != nullptr;
    const bool given_on_line = row != nullptr && row->given_on_line();
    if (!of_another_subcommand && !given_on_line) given_options.push_back(std::move(word));
  }
  if (command.measures) PENSTOCK_TRY(check_single_numbers(command, arguments, rows, given_options));
  return Options::parse(tables_of(selected), given_options, Options::kOnCommandLine);
}

void describe_option(std::string& out, const OptionSpec& spec) {
  std::string left_column = spec.alias.size() == 1 ? fmt::format("  -{}, --{}", spec.alias, spec.name)
                                                   : fmt::format("  --{}", spec.name);
  if (spec.alias.size() > 1) left_column += fmt::format(", --{}", spec.alias);
  if (spec.type != OptionType::flag)
    left_column += fmt::format(" {}", spec.value.empty() ? "TEXT" : spec.value);
  if (spec.repeated) left_column += " ...";
  out += left_column;
  if (left_column.size() + 2 > kHelpIndent) {
    out += '\n';
    out.append(kHelpIndent, ' ');
  } else {
    out.append(kHelpIndent - left_column.size(), ' ');
  }
  std::string text(spec.help);
  if (!spec.fallback.empty()) text += fmt::format(" (default {})", spec.fallback);
  append_wrapped(out, text, kHelpIndent);
}

}  // namespace

void append_wrapped(std::string& out, std::string_view text, size_t indent) {
  size_t column = indent;
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

std::vector<OptionTable> tables_of(const CommandInfo& command) {
  std::vector<OptionTable> tables;
  for (const CommandInfo* subcommand : subcommands_of(command)) {
    tables.push_back(subcommand->options);
    if (subcommand->has_placement) tables.push_back(placement_options());
  }
  if (command.subcommands == nullptr) tables.push_back(command.options);
  if (command.measures) tables.push_back(measuring_options());
  if (command.has_placement) tables.push_back(placement_options());
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

Result<std::vector<OptionWord>> canonical_flags(const CommandInfo& command,
                                                std::span<const OptionWord> flags) {
  std::vector<OptionWord> words;
  std::map<std::string, std::string> names;  // the option's own name -> the name in `flags`
  for (OptionWord word : flags) {
    std::replace(word.key.begin(), word.key.end(), '_', '-');
    const OptionSpec* const spec = find_option(command, word.key);
    const std::string name = word.key;
    if (spec != nullptr) word = with_own_name(*spec, std::move(word));
    if (names.try_emplace(word.key, name).first->second != name) return both_names_error(*spec);
    words.push_back(std::move(word));
  }
  return words;
}

Result<CommandLine> parse_command_line(const CommandInfo& command, std::span<const std::string> words,
                                       std::span<const OptionWord> config) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<Collected> rows;
  for (const OptionSpec* spec : all_options(command)) {
    rows.push_back({.spec = spec});
    if (spec->alias.size() > 1) rows.push_back({.spec = spec, .by_alias = true});
  }
  for (Collected& row : rows) {
    if (row.spec->type == OptionType::flag) {
      app.add_flag(row.flag_names(), row.flag_given);
    } else {
      app.add_option(row.flag_names(), row.values)
          ->expected(1)
          ->allow_extra_args(false)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
  }
  CommandLine line{.command = &command};
  // CLI11 must accept any number of arguments, because it treats the value of a misspelt flag as an argument.
  // With a limit it would report the number of arguments instead of the flag.
  if (!command.arguments.empty()) app.add_option("arguments", line.arguments)->expected(0, kManyArguments);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 parses the last word first
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    PENSTOCK_TRY(check_flags(command, words));
    return wrong_usage(command_named_by(command, words), error.what());
  }
  PENSTOCK_TRY(merge_aliases(rows));
  const std::vector<std::string> arguments = line.arguments;
  if (command.subcommands != nullptr && !line.arguments.empty()) {
    PENSTOCK_ASSIGN(line.command, find_subcommand(command, line.arguments[0]));
    line.arguments.erase(line.arguments.begin());
    PENSTOCK_TRY(keep_own_rows(command, *line.command, rows));
  }
  PENSTOCK_TRY(check_leftovers(*line.command, app.remaining()));
  PENSTOCK_TRY(check_argument_count(*line.command, line.arguments));
  PENSTOCK_ASSIGN(line.options, options_from(command, *line.command, arguments, rows, config));
  return line;
}

bool asks_for_help(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

const CommandInfo& command_named_by(const CommandInfo& command, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    for (const CommandInfo* subcommand : subcommands_of(command))
      if (last_word(*subcommand) == word) return *subcommand;
  }
  return command;
}

std::string raw_value(std::span<const std::string> words, std::string_view name) {
  const std::string flag = fmt::format("--{}", name);
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
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
    append_wrapped(out, subcommand->summary, 14);
  }
  if (command.subcommands != nullptr)
    out += fmt::format("\n'penstock {} SUBCOMMAND --help' shows the options of one.\n", command.name);
  if (!command.notes.empty()) out += fmt::format("\n{}\n", command.notes);
  const std::vector<const OptionSpec*> options = options_of(command);
  for (const std::string_view group : groups_of(options)) {
    out += fmt::format("\n{}:\n", group);
    for (const OptionSpec* spec : options)
      if (spec->group == group) describe_option(out, *spec);
  }
  if (const std::string term = term_help(command.name); !term.empty())
    out += fmt::format("\nGlossary:\n{}", term);
  return out;
}

}  // namespace penstock
