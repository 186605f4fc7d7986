// Makes completion scripts for bash, zsh and fish. When the user completes a word, the scripts get the names
// of tiers from the site files.
#include <fmt/format.h>

#include <array>

#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/cli/glossary.hpp"
#include "io_backends/core/cli/manuals.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

constexpr std::string_view kHelpFlag = "--help";

std::string joined(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> flags_of(const OptionSpec& spec) {
  std::vector<std::string> flags{fmt::format("--{}", spec.name)};
  if (!spec.alias.empty())
    flags.push_back(fmt::format("{}{}", spec.alias.size() == 1 ? "-" : "--", spec.alias));
  return flags;
}

std::string all_flags(const CommandInfo& command) {
  std::string flags;
  for (const OptionSpec* spec : options_of(command)) flags += fmt::format("--{} ", spec->name);
  return flags + std::string(kHelpFlag);
}

std::string first_argument_choices(const CommandInfo& command, const ArgumentChoices& arguments) {
  std::string words;
  for (const CommandInfo* subcommand : subcommands_of(command))
    words += fmt::format("{}{}", words.empty() ? "" : " ", last_word(*subcommand));
  if (const auto at = arguments.find(command.name); words.empty() && at != arguments.end())
    words = fmt::format("{}", fmt::join(at->second, " "));
  return words;
}

// One text for each ValueKind, in the order of that enum. In a completion script it makes the shell offer
// values of this kind. "{}" in the text is replaced by the values to offer.
using Offers = std::array<std::string_view, 6>;
// These texts call shell functions that kBashHead defines.
constexpr Offers kBashOffers{"_penstock_nothing", "_penstock_nothing", "_penstock_choices '{}'",
                             "_penstock_files",   "_penstock_folders", "_penstock_tiers"};
constexpr Offers kZshOffers{" ", " ", "({})", "_files", "_files -/", "_penstock_tiers"};
constexpr Offers kFishOffers{"",
                             " -x",
                             " -x -a '{}'",
                             " -r -F",
                             " -x -a '(__fish_complete_directories)'",
                             " -x -a '(penstock --tier-names 2>/dev/null) (__fish_complete_directories)'"};

std::string offer_of(const Offers& offers, const OptionSpec& spec) {
  return fmt::format(fmt::runtime(offers[size_t(value_kind(spec))]), joined(value_choices(spec)));
}

constexpr std::string_view kBashHead =
    R"bash(# bash completion of penstock. Written by penstock from its option tables.
_penstock_choices() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
_penstock_files() {
  local IFS=$'\n'
  compopt -o filenames 2> /dev/null
  COMPREPLY=($(compgen -f -- "$cur"))
}
_penstock_folders() {
  local IFS=$'\n'
  compopt -o filenames 2> /dev/null
  COMPREPLY=($(compgen -d -- "$cur"))
}
_penstock_tiers() {
  local IFS=$'\n'
  compopt -o filenames 2> /dev/null
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" --tier-names 2> /dev/null)" -- "$cur") $(compgen -d -- "$cur"))
}
_penstock_nothing() { compopt +o default 2> /dev/null; COMPREPLY=(); }
)bash";

constexpr std::string_view kBashTail = R"bash(_penstock() {
  local IFS=$' \t\n'
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command subcommand i arguments=0 word
  local before
  COMPREPLY=()
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
  if ((COMP_CWORD == 1)); then
    _penstock_choices "$(_penstock_commands) help --help --version"
    return
  fi
  command=${COMP_WORDS[1]}
  if [[ $command == help ]]; then
    _penstock_choices "$(_penstock_commands) $(_penstock_terms)"
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    [[ $word == -- ]] && return
    before=${COMP_WORDS[i - 1]}
    if [[ $word == -* || $word == = || $before == = ]]; then continue; fi
    if [[ $before == -* ]] && _penstock_takes_value "$command:$before"; then continue; fi
    arguments=$((arguments + 1))
    if ((arguments == 1)) && _penstock_has_subcommand "$command:$word"; then subcommand=:$word; fi
  done
  if [[ $prev == -* ]] && _penstock_takes_value "$command:$prev"; then
    _penstock_value "$command:$prev"
  elif [[ $cur == -* ]]; then
    _penstock_choices "$(_penstock_flags "$command$subcommand")"
  elif ((arguments == 0)); then
    word=$(_penstock_arguments "$command")
    if [[ -n $word ]]; then _penstock_choices "$word"; else _penstock_files; fi
  else
    _penstock_files
  fi
}
complete -o default -F _penstock penstock
)bash";

std::string bash_values(const std::vector<const CommandInfo*>& commands) {
  std::string out = "_penstock_value() {\n  case $1 in\n";
  std::string takes_value = "_penstock_takes_value() {\n  case $1 in\n";
  for (const CommandInfo* command : commands) {
    std::string patterns;
    for (const OptionSpec* spec : all_options(*command)) {
      if (spec->type == OptionType::flag) continue;
      std::string pattern;
      for (const std::string& flag : flags_of(*spec))
        pattern += fmt::format("{}{}:{}", pattern.empty() ? "" : " | ", command->name, flag);
      out += fmt::format("    {}) {} ;;\n", pattern, offer_of(kBashOffers, *spec));
      patterns += fmt::format("{}{}", patterns.empty() ? "" : " | ", pattern);
    }
    takes_value += fmt::format("    {}) return 0 ;;\n", patterns);
  }
  return takes_value + "  esac\n  return 1\n}\n" + out + "  esac\n}\n";
}

// Escapes text for an option specification of zsh: single quotes, and the characters that have a meaning for
// zsh's function `_arguments`.
std::string zsh_text(std::string_view text) {
  return with_escapes(text, [](char c) -> std::string_view {
    return c == '\''   ? "'\\''"
           : c == '['  ? "\\["
           : c == ']'  ? "\\]"
           : c == ':'  ? "\\:"
           : c == '\\' ? "\\\\"
                       : "";
  });
}

void add_zsh_arguments(std::string& out, const CommandInfo& command, std::string_view indent,
                       std::string_view rest) {
  out += fmt::format("{}_arguments -S '--help[show help]'", indent);
  for (const OptionSpec* spec : options_of(command))
    for (const std::string& flag : flags_of(*spec)) {
      const bool has_value = spec->type != OptionType::flag;
      out +=
          fmt::format(" \\\n{}  '{}{}{}[{}]{}'", indent, spec->repeated ? "*" : "", flag,
                      has_value && flag.starts_with("--") ? "=" : "", zsh_text(spec->help),
                      has_value ? fmt::format(":{}:{}", zsh_text(spec->value.empty() ? "value" : spec->value),
                                              offer_of(kZshOffers, *spec))
                                : "");
    }
  out += fmt::format(" \\\n{}  {}\n", indent, rest);
}

// Adds the zsh array `list` to the script: the commands with their summaries. zsh's function `_describe`
// shows them to the user.
void add_zsh_commands(std::string& out, std::string_view list, std::string_view indent,
                      std::span<const CommandInfo* const> commands) {
  out += fmt::format("{0}local -a {1}\n{0}{1}=(\n", indent, list);
  for (const CommandInfo* command : commands)
    out += fmt::format("{}  '{}:{}'\n", indent, last_word(*command), zsh_text(command->summary));
}

void add_zsh_subcommands(std::string& out, const CommandInfo& command) {
  add_zsh_commands(out, "subcommands", "      ", subcommands_of(command));
  out +=
      "      )\n      if (( CURRENT == 2 )); then\n        _describe subcommand subcommands\n        return\n"
      "      fi\n      local subcommand=$words[2]\n      shift words\n      (( CURRENT-- ))\n"
      "      case $subcommand in\n";
  for (const CommandInfo* subcommand : subcommands_of(command)) {
    out += fmt::format("        {})\n", last_word(*subcommand));
    add_zsh_arguments(out, *subcommand, "          ", "'*:place:_files'");
    out += "          ;;\n";
  }
  out += "      esac\n";
}

std::string fish_text(std::string_view text) {
  return with_escapes(text, [](char c) -> std::string_view {
    return c == '\'' ? "\\'" : c == '\\' ? "\\\\" : "";
  });
}

}  // namespace

std::string bash_completion(const std::vector<const CommandInfo*>& commands,
                            const ArgumentChoices& arguments) {
  std::string names;
  std::string flags = "_penstock_flags() {\n  case $1 in\n";
  std::string first_arguments = "_penstock_arguments() {\n  case $1 in\n";
  std::string subcommands;
  for (const CommandInfo* command : commands) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command->name);
    if (const std::string words = first_argument_choices(*command, arguments); !words.empty())
      first_arguments += fmt::format("    {}) echo '{}' ;;\n", command->name, words);
  }
  for (const CommandInfo* command : with_subcommands(commands)) {
    const std::string key = joined_name(*command, ':');
    flags += fmt::format("    {}) echo '{}' ;;\n", key, all_flags(*command));
    if (key != command->name) subcommands += fmt::format("{}{}", subcommands.empty() ? "" : " | ", key);
  }
  const std::string has_subcommand =
      subcommands.empty()
          ? "_penstock_has_subcommand() { return 1; }\n"
          : fmt::format(
                "_penstock_has_subcommand() {{\n  case $1 in\n    {}) return 0 ;;\n  esac\n  return 1\n}}\n",
                subcommands);
  return fmt::format(
      "{}_penstock_commands() {{ echo '{}'; }}\n_penstock_terms() {{ echo '{}'; }}\n{}  esac\n}}\n{}  "
      "esac\n}}\n{}{}{}",
      kBashHead, names, fmt::join(terms_to_complete(), " "), flags, first_arguments, has_subcommand,
      bash_values(commands), kBashTail);
}

std::string zsh_completion(const std::vector<const CommandInfo*>& commands,
                           const ArgumentChoices& arguments) {
  std::string out =
      "#compdef penstock\n# Written by penstock from its option tables.\n"
      "_penstock_tiers() {\n  local -a tiers\n  tiers=(${(f)\"$(penstock --tier-names 2>/dev/null)\"})\n"
      "  (( $#tiers )) && compadd -a tiers\n  _files -/\n}\n"
      "_penstock() {\n";
  add_zsh_commands(out, "commands", "  ", commands);
  out +=
      "    'help:explain a command or a term'\n  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    "
      "return\n  fi\n  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n"
      "    help)\n      _describe command commands\n";
  out += fmt::format("      compadd {}\n      ;;\n", fmt::join(terms_to_complete(), " "));
  for (const CommandInfo* command : commands) {
    out += fmt::format("    {})\n", command->name);
    if (command->subcommands != nullptr) {
      add_zsh_subcommands(out, *command);
    } else {
      const std::string words = first_argument_choices(*command, arguments);
      add_zsh_arguments(
          out, *command, "      ",
          words.empty() ? "'*:place:_files'" : fmt::format("'1:name:({})' '*:place:_files'", words));
    }
    out += "      ;;\n";
  }
  return out + "  esac\n}\n_penstock \"$@\"\n";
}

std::string fish_completion(const std::vector<const CommandInfo*>& commands,
                            const ArgumentChoices& arguments) {
  std::string out = "# Written by penstock from its option tables.\n";
  out += "complete -c penstock -n __fish_use_subcommand -f -a help -d 'explain a command or a term'\n";
  out += fmt::format("complete -c penstock -n '__fish_seen_subcommand_from help' -f -a '{}'\n",
                     fmt::join(terms_to_complete(), " "));
  for (const CommandInfo* command : commands)
    out += fmt::format("complete -c penstock -n __fish_use_subcommand -f -a {} -d '{}'\n", command->name,
                       fish_text(command->summary));
  for (const CommandInfo* command : commands) {
    const std::string words = first_argument_choices(*command, arguments);
    const std::string cond = fmt::format(
        "complete -c penstock -n '__fish_seen_subcommand_from {}; and not __fish_seen_subcommand_from {}' -f",
        command->name, words);
    if (command->subcommands == nullptr && !words.empty()) out += fmt::format("{} -a '{}'\n", cond, words);
    for (const CommandInfo* subcommand : subcommands_of(*command))
      out += fmt::format("{} -a {} -d '{}'\n", cond, last_word(*subcommand), fish_text(subcommand->summary));
  }
  for (const CommandInfo* command : with_subcommands(commands)) {
    if (command->subcommands != nullptr) continue;
    std::string cond;
    for (std::string_view rest = command->name; !rest.empty();)
      cond +=
          fmt::format("{}__fish_seen_subcommand_from {}", cond.empty() ? "" : "; and ", take_part(rest, ' '));
    for (const OptionSpec* spec : options_of(*command)) {
      const std::string alias =
          spec->alias.empty() ? ""
                              : fmt::format(" {} {}", spec->alias.size() == 1 ? "-s" : "-l", spec->alias);
      out += fmt::format("complete -c penstock -n '{}' -l {}{}{} -d '{}'\n", cond, spec->name, alias,
                         offer_of(kFishOffers, *spec), fish_text(spec->help));
    }
  }
  return out;
}

}  // namespace penstock
