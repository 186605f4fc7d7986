#include <fmt/format.h>

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/cli/glossary.hpp"
#include "io_backends/core/cli/manuals.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

// Escapes text for roff, the language of man pages. roff then prints backslashes and dashes unchanged, and
// reads no line of the text as a command.
std::string roff_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if ((escaped.empty() || escaped.back() == '\n') && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string page_head(std::string_view name, std::string_view summary, std::string_view date) {
  return fmt::format(
      ".\\\" Written by penstock from its option tables.\n"
      ".TH {} 1 {} \"penstock {}\" \"Penstock\"\n.SH NAME\n{} \\- {}\n",
      upper_case(name), date, build_info().version, roff_text(name), roff_text(summary));
}

void add_option(std::string& page, const OptionSpec& spec) {
  page += ".TP\n";
  std::string names;
  if (spec.alias.size() == 1) names += fmt::format("\\fB\\-{}\\fR, ", spec.alias);
  names += fmt::format("\\fB\\-\\-{}\\fR", roff_text(spec.name));
  if (spec.alias.size() > 1) names += fmt::format(", \\fB\\-\\-{}\\fR", roff_text(spec.alias));
  if (spec.type != OptionType::flag)
    names += fmt::format(" \\fI{}\\fR", roff_text(spec.value.empty() ? "TEXT" : spec.value));
  if (spec.repeated) names += " ...";
  page += names + "\n" + roff_text(spec.help);
  if (!spec.fallback.empty()) page += fmt::format(" (default {})", roff_text(spec.fallback));
  page += "\n";
}

void add_options(std::string& page, const CommandInfo& command) {
  const std::vector<const OptionSpec*> options = options_of(command);
  page += ".SH OPTIONS\n";
  for (const std::string_view group : groups_of(options)) {
    page += fmt::format(".SS {}\n", roff_text(group));
    for (const OptionSpec* spec : options)
      if (spec->group == group) add_option(page, *spec);
  }
}

void add_commands(std::string& page, std::string_view title, std::span<const CommandInfo* const> commands) {
  if (!commands.empty()) page += fmt::format(".SH {}\n", title);
  for (const CommandInfo* command : commands)
    page += fmt::format(".TP\n\\fBpenstock\\-{}\\fR(1)\n{}\n", roff_text(joined_name(*command, '-')),
                        roff_text(command->summary));
}

void add_references(std::string& page, std::span<const CommandInfo* const> commands) {
  for (const CommandInfo* command : commands)
    page += fmt::format(".BR penstock\\-{} (1){}\n", roff_text(joined_name(*command, '-')),
                        command == commands.back() ? "" : ",");
}

constexpr std::string_view kExitStatusSection =
    ".SH EXIT STATUS\n0 on success; 1 if the measurement or a check failed; 2 for wrong usage; 77 if this "
    "build or machine lacks\nsomething that the command needs; 128 plus the signal's number when "
    "interrupted.\n";

constexpr std::string_view kFilesSection =
    ".SH FILES\n"
    ".TP\n\\fIpenstock.yaml\\fR, \\fI~/.config/penstock/penstock.yaml\\fR\n"
    "named tiers, default flags and the launcher of a machine.\n"
    ".TP\n\\fIpenstock\\-results/\\fR\n"
    "one record file for each run.\n";

}  // namespace

std::string man_page(const CommandInfo& command, std::string_view date) {
  std::string page = page_head(fmt::format("penstock-{}", joined_name(command, '-')), command.summary, date);
  page += fmt::format(".SH SYNOPSIS\n.nf\n{}\n.fi\n.SH EXAMPLES\n.nf\n", roff_text(command.synopsis));
  for (const std::string_view example : command.examples)
    if (!example.empty()) page += roff_text(example) + "\n";
  page += ".fi\n";
  add_commands(page, "SUBCOMMANDS", subcommands_of(command));
  add_options(page, command);
  page += kExitStatusSection;
  if (!command.notes.empty()) page += fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", roff_text(command.notes));
  page += fmt::format(".SH SEE ALSO\n.BR penstock (1){}\n", command.subcommands == nullptr ? "" : ",");
  add_references(page, subcommands_of(command));
  return page;
}

std::string man_page_of_all(const std::vector<const CommandInfo*>& commands, std::string_view date) {
  std::string page = page_head(
      "penstock",
      "generates training data, reads it from each storage tier, and reports how fast each tier is", date);
  page +=
      ".SH SYNOPSIS\n\\fBpenstock\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n.br\n"
      "\\fBpenstock help\\fR [\\fICOMMAND\\fR|\\fITERM\\fR]\n.br\n"
      "\\fBpenstock\\fR \\fB\\-\\-version\\fR [\\fB\\-\\-json\\fR]\n";
  add_commands(page, "COMMANDS", commands);
  page +=
      ".SH TIERS\n"
      "A tier is a named place to keep data: \\fI[NAME=]BACKEND:PATH[,option=value...]\\fR, a plain path, or "
      "a\n"
      "name of the site files.\n";
  page += kFilesSection;
  page += kExitStatusSection;
  page += ".SH TERMS\n";
  for (const GlossaryTerm& term : glossary())
    page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff_text(term.name), roff_text(term.meaning));
  page += ".SH SEE ALSO\n";
  add_references(page, commands);
  return page;
}

}  // namespace penstock
