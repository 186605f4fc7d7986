// Makes the text of `penstock --version` and lists of plug-ins.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/plugin.hpp"

namespace penstock {

// A plug-in or a library in the output of `penstock --version`: whether this build can use it, and if not,
// the reason.
struct VersionRow {
  std::string kind;
  std::string name;
  bool present = true;
  std::string reason;
  std::string version{};  // of a library; "": unknown
};

template <class Info>
void add_plugins(const Registry<Info>& registry, std::vector<VersionRow>& rows) {
  for (const Info* info : registry.present())
    rows.push_back({std::string(registry.kind()), std::string(info->name), true, ""});
  for (const MissingPlugin& missing : registry.missing())
    rows.push_back(
        {std::string(registry.kind()), std::string(missing.name), false, std::string(missing.reason)});
}

// Makes the output of `penstock --version`: one line for the build, one for each of `rows`, and one for each
// library. With `json` each line is a JSON object.
std::string version_text(std::vector<VersionRow> rows, bool json);
// Calls version_text(rows, json) with a row for each plug-in of `registries`.
template <class... Infos>
std::string version_text(bool json, const Registry<Infos>&... registries) {
  std::vector<VersionRow> rows;
  (add_plugins(registries, rows), ...);
  return version_text(std::move(rows), json);
}

// Makes the text that `penstock` prints without arguments: what the program does, how to call it, and the
// lists of its commands and back ends.
std::string overview_text(std::string_view commands, std::string_view back_ends);

template <class Info>
std::vector<std::string> plugin_names(const Registry<Info>& registry) {
  std::vector<std::string> names;
  for (const Info* info : registry.present()) names.emplace_back(info->name);
  return names;
}

// Lists the plug-ins of a registry: name and summary, one line for each.
template <class Info>
std::string plugin_list(const Registry<Info>& registry) {
  std::string text;
  for (const Info* info : registry.present()) text += fmt::format("  {:<12}{}\n", info->name, info->summary);
  return text;
}

}  // namespace penstock
