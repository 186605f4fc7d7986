#include "results/record/work.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "io_backends/core/cli/command_line.hpp"
#include "results/record/json_members.hpp"

namespace penstock {

namespace {

const CommandInfo* command_called(std::string_view name) {
  for (const CommandInfo* const command : command_registry().present())
    if (command->name == name) return command;
  return nullptr;
}

const OptionSpec* option_of(const CommandInfo& command, std::string_view parameter) {
  std::vector<OptionTable> tables = tables_of(command);
  tables.push_back(measuring_options());
  for (const OptionTable table : tables)
    for (const OptionSpec& spec : table)
      if (parameter_name(spec.name, spec.type) == parameter) return &spec;
  return nullptr;
}

// Whether the record's own subcommand does not take this option, but other subcommands of the same command
// do. Earlier versions recorded the options of all subcommands. Such an option does not describe what was
// measured.
bool is_of_another_subcommand(const Record& record, std::string_view name) {
  const CommandInfo* const command = command_called(record.command);
  if (command == nullptr || command->subcommands == nullptr) return false;
  const CommandInfo& subcommand = command_named_by(*command, record.argv);
  return &subcommand != command && option_of(subcommand, name) == nullptr &&
         option_of(*command, name) != nullptr;
}

}  // namespace

OptionRole parameter_role(std::string_view command, std::string_view name) {
  const CommandInfo* const info = command_called(command);
  if (info == nullptr) return OptionRole::work;
  if (const OptionSpec* const option = option_of(*info, name)) return option->role;
  const bool is_finding =
      std::find(info->findings.begin(), info->findings.end(), name) != info->findings.end();
  return is_finding ? OptionRole::output : OptionRole::work;
}

bool is_work(const Record& record, std::string_view name) {
  if (is_of_another_subcommand(record, name)) return false;
  if (record.work) return std::find(record.work->begin(), record.work->end(), name) != record.work->end();
  return parameter_role(record.command, name) == OptionRole::work;
}

std::vector<std::string> work_parameters(const Record& record) {
  std::vector<std::string> names;
  for (const auto& [name, value] : record.parameters.items())
    if (is_work(record, name)) names.push_back(name);
  return names;
}

std::string work_text(const Record& record, std::string_view name) {
  const Json* const value = member(record.parameters, name);
  return value == nullptr || *value == Json(false) ? "" : any_text(*value);
}

std::string work_key(const Record& record, std::span<const std::string_view> excluded) {
  // The work parameters and their values, sorted by name: another version's option table may have another
  // order.
  std::map<std::string, std::string> values;
  for (const std::string& name : work_parameters(record))
    if (std::find(excluded.begin(), excluded.end(), name) == excluded.end())
      if (std::string text = work_text(record, name); !text.empty()) values[name] = std::move(text);
  return one_line(values);
}

std::vector<std::vector<std::string>> work_rows(std::span<const Record* const> records,
                                                std::span<const std::string_view> excluded) {
  std::vector<std::string> names;  // sorted by the first record that has the parameter
  for (const Record* const record : records)
    for (std::string& name : work_parameters(*record))
      if (std::find(excluded.begin(), excluded.end(), name) == excluded.end() &&
          std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
  std::vector<std::vector<std::string>> rows;
  for (const Record* const record : records) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string& name : names) {
      const std::string text = is_work(*record, name) ? work_text(*record, name) : "";
      row.push_back(text.empty() ? "" : text == "true" ? name : name + " " + text);
    }
  }
  return rows;
}

bool is_unknown(const Record& record, std::string_view name) {
  if (record.parameters.contains(std::string(name))) return false;
  if (record.work) return true;
  const CommandInfo* const info = command_called(record.command);
  const OptionSpec* const option = info == nullptr ? nullptr : option_of(*info, name);
  return option == nullptr || option->type != OptionType::flag;
}

}  // namespace penstock
