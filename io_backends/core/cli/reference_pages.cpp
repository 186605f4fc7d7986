// The reference in Markdown: a page for each command, and one of all metrics.
#include <fmt/format.h>

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/cli/manuals.hpp"

namespace penstock {
namespace {

// Escapes the characters that Markdown would take for markup, except in code between backticks.
std::string markdown_text(std::string_view text) {
  std::string escaped;
  bool in_code = false;
  for (const char c : text) {
    if (c == '`') in_code = !in_code;
    if (!in_code && std::string_view(R"(\*_[]<>|#)").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string option_names(const OptionSpec& spec) {
  std::string names = fmt::format("--{}", spec.name);
  if (spec.alias.size() == 1) names = fmt::format("-{}, {}", spec.alias, names);
  if (spec.alias.size() > 1) names += fmt::format(", --{}", spec.alias);
  if (spec.type != OptionType::flag) names += fmt::format(" {}", spec.value.empty() ? "TEXT" : spec.value);
  return spec.repeated ? names + " ..." : names;
}

void add_markdown_options(std::string& page, const CommandInfo& command) {
  const std::vector<const OptionSpec*> options = options_of(command);
  for (const std::string_view group : groups_of(options)) {
    page += fmt::format("\n**{}**\n\n", markdown_text(group));
    for (const OptionSpec* spec : options) {
      if (spec->group != group) continue;
      page += fmt::format("- `{}`: {}", option_names(*spec), markdown_text(spec->help));
      if (!spec->fallback.empty()) page += fmt::format(" (default `{}`)", spec->fallback);
      page += "\n";
    }
  }
}

// `marks` are those of the headline: "#" for a command, "##" for a subcommand on the same page.
void add_command(std::string& page, const CommandInfo& command, std::string_view marks) {
  page += fmt::format("{} penstock {}\n\n{}\n\n```text\n{}\n```\n\nExamples:\n\n```text\n", marks,
                      command.name, markdown_text(command.summary), command.synopsis);
  for (const std::string_view example : command.examples)
    if (!example.empty()) page += fmt::format("{}\n", example);
  page += "```\n";
  if (!command.notes.empty()) page += fmt::format("\n```text\n{}\n```\n", command.notes);
  add_markdown_options(page, command);
}

}  // namespace

std::string command_page(const CommandInfo& command) {
  std::string page;
  add_command(page, command, "#");
  for (const CommandInfo* subcommand : subcommands_of(command)) {
    page += "\n";
    add_command(page, *subcommand, "##");
  }
  return page;
}

std::string metrics_page(const std::vector<const CommandInfo*>& commands) {
  std::string page = fmt::format(
      "# Metrics\n\nThe metrics of the records of each command, penstock {}. A star is a part of the name "
      "that "
      "a run fills in. \"Gate\" marks the metrics that `penstock compare` uses by default.\n",
      build_info().version);
  for (const CommandInfo* command : commands) {
    if (command->metrics.empty()) continue;
    page += fmt::format(
        "\n## {}\n\n| metric | unit | better | one sample for each | gate |\n|---|---|---|---|---|\n",
        command->name);
    for (const MetricInfo& metric : command->metrics)
      page += fmt::format("| `{}` | {} | {} | {} | {} |\n", metric.name, metric.unit,
                          better_name(metric.better), metric.per, metric.headline ? "yes" : "");
  }
  return page;
}

}  // namespace penstock
