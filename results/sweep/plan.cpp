#include "results/sweep/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

constexpr size_t kMostCells = 1'000'000;
constexpr std::string_view kArgumentsKey = "nouns";

// Shortens a value for titles. "fast=posix:/dev/shm/p" becomes "fast". Of any other long value only the last
// characters are left.
std::string short_value(const std::string& value) {
  const auto equals = value.find('=');
  const auto colon = value.find(':');
  if (equals != std::string::npos && equals > 0 && colon != std::string::npos && equals < colon)
    return value.substr(0, equals);
  constexpr size_t kMostValueChars = 40;
  return value.size() <= kMostValueChars ? value : "..." + value.substr(value.size() - kMostValueChars + 3);
}

std::string short_values(const std::vector<std::string>& values) {
  std::vector<std::string> parts;
  for (const std::string& value : values) parts.push_back(short_value(value));
  return fmt::format("{}", fmt::join(parts, "+"));
}

void add_part(SweepCell& cell, const std::string& key, const std::vector<std::string>& values) {
  cell.key += fmt::format("{}{}={}", cell.key.empty() ? "" : " ", key, fmt::join(values, "|"));
  cell.title += cell.title.empty() ? "" : ", ";
  cell.title += key == "tier" || key == kArgumentsKey ? short_values(values)
                                                      : fmt::format("{} {}", key, short_values(values));
}

// Adds a copy of the cell for each valid combination of ranks and nodes.
void add_jobs(std::vector<SweepCell>& cells, const SweepCell& cell, const SweepSpec& spec) {
  const uint64_t per_node = std::max<uint64_t>(1, spec.tasks_per_node);
  const auto add = [&](uint64_t ranks, uint64_t nodes) {
    SweepCell& job = cells.emplace_back(cell);
    job.ranks = ranks;
    job.nodes = nodes;
    // The key of a cell has only what the sweep's file varies. So if the file gives no ranks, the key has
    // none, even if the number of ranks follows from the nodes.
    if (!spec.ranks.empty()) add_part(job, "ranks", {std::to_string(ranks)});
    if (!spec.nodes.empty()) add_part(job, "nodes", {std::to_string(nodes)});
  };
  if (spec.nodes.empty() && spec.ranks.empty()) add(0, 0);
  if (spec.nodes.empty())
    for (const uint64_t ranks : spec.ranks) add(ranks, 0);
  for (const uint64_t nodes : spec.nodes) {
    if (spec.ranks.empty()) add(nodes * per_node, nodes);
    for (const uint64_t ranks : spec.ranks)
      if (ranks >= nodes && (spec.tasks_per_node == 0 || ranks <= nodes * per_node)) add(ranks, nodes);
  }
}

// Replaces the option's alias by its own name. Fails if the settings have both.
Result<void> use_own_names(std::vector<SweepSetting>& settings, const CommandInfo& command) {
  std::vector<OptionWord> words;
  for (const SweepSetting& setting : settings) words.push_back({setting.key, ""});
  PENSTOCK_TRY(canonical_flags(command, words));
  for (SweepSetting& setting : settings) {
    const OptionSpec* const option = find_option(command, setting.key);
    if (option == nullptr) continue;
    for (std::string& value : setting.values)
      value = with_own_name(*option, {setting.key, std::move(value)}).value;
    setting.key = option->name;
  }
  return success();
}

bool is_off(const std::string& word) {
  return word == "false" || word == "no" || word == "off" || word == "0";
}

void add_option(std::vector<std::string>& arguments, const SweepSetting& setting,
                const CommandInfo& command) {
  const OptionSpec* const option = find_option(command, setting.key);
  const std::string flag = "--" + setting.key;
  if (option != nullptr && option->type == OptionType::flag) {
    if (setting.values.size() != 1 || !is_off(setting.values.front())) arguments.push_back(flag);
    return;
  }
  if (option != nullptr && !option->repeated) {
    arguments.insert(arguments.end(), {flag, fmt::format("{}", fmt::join(setting.values, ","))});
    return;
  }
  for (const std::string& value : setting.values) arguments.insert(arguments.end(), {flag, value});
}

// The settings of one run. Settings for all cells come first; a setting of the arm replaces them, and a
// setting of the grid replaces both.
std::vector<SweepSetting> settings_of(const SweepSpec& spec, const SweepCell& cell, size_t arm) {
  std::vector<SweepSetting> settings = spec.fixed_settings;
  const auto apply_settings = [&](const std::vector<SweepSetting>& more) {
    for (const SweepSetting& setting : more) {
      if (setting.key == kArgumentsKey) continue;
      const auto existing = std::find_if(settings.begin(), settings.end(),
                                         [&](const SweepSetting& known) { return known.key == setting.key; });
      if (existing == settings.end())
        settings.push_back(setting);
      else
        *existing = setting;
    }
  };
  if (arm < spec.arms.size()) apply_settings(spec.arms[arm].fixed_settings);
  apply_settings(cell.settings);
  return settings;
}

Json arguments_json(const std::vector<SweepSetting>& settings) {
  Json json = Json::object();
  for (const SweepSetting& setting : settings) json[setting.key] = setting.values;
  return json;
}

Error change_error(std::string_view path, std::string_view change) {
  return make_error(Errc::invalid_argument, "'{}' {}", path, change);
}

Result<void> check_values(std::string_view path, const Json& before, const Json& now) {
  for (const Json& value : before)
    if (std::find(now.begin(), now.end(), value) == now.end())
      return change_error(path, fmt::format("lacks {}, which it had", value.dump()));
  return success();
}

// Fails unless `before` and `now` are equal. The order of the keys in a mapping may differ.
Result<void> check_same(std::string_view path, const Json& before, const Json& now) {
  if (before == now) return success();
  if (!before.is_object() || !now.is_object())
    return change_error(path, fmt::format("was {} and is {}", before.dump(), now.dump()));
  for (const auto& [key, value] : before.items()) {
    const std::string inner = fmt::format("{}.{}", path, key);
    if (!now.contains(key)) return change_error(inner, "is gone");
    PENSTOCK_TRY(check_same(inner, value, now[key]));
  }
  for (const auto& [key, value] : now.items())
    if (!before.contains(key)) return change_error(fmt::format("{}.{}", path, key), "is new");
  return success();  // only the order of the keys differs
}

constexpr std::array<std::string_view, 3> kPlaceholders{"{ranks}", "{nodes}", "{tasks-per-node}"};

std::vector<std::string> split_at_blanks(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

uint64_t ranks_per_node(const SweepSpec& spec, const SweepCell& cell) {
  const uint64_t nodes = std::max<uint64_t>(1, cell.nodes);
  return spec.tasks_per_node > 0 ? spec.tasks_per_node : (cell.ranks + nodes - 1) / nodes;
}

std::vector<std::string> srun_arguments(const SweepSpec& spec, const SweepCell& cell) {
  std::vector<std::string> arguments{"srun", fmt::format("--ntasks={}", cell.ranks)};
  if (cell.nodes > 0) {
    arguments.push_back(fmt::format("--nodes={}", cell.nodes));
    arguments.push_back(fmt::format("--ntasks-per-node={}", ranks_per_node(spec, cell)));
  }
  if (!spec.slurm.mpi.empty()) arguments.push_back("--mpi=" + spec.slurm.mpi);
  // No other job runs on the nodes of the sweep. So a rank's threads need not be bound to a part of the
  // processors.
  arguments.emplace_back("--cpu-bind=none");
  arguments.emplace_back("--kill-on-bad-exit=1");
  arguments.insert(arguments.end(), spec.slurm.srun.begin(), spec.slurm.srun.end());
  return arguments;
}

}  // namespace

Result<std::vector<SweepCell>> sweep_cells(const SweepSpec& spec) {
  for (const SweepAxis& axis : spec.grid)
    for (const SweepSetting& setting : spec.fixed_settings)
      if (axis.key == setting.key)
        return make_error(Errc::invalid_argument, "'{}' is in 'fixed' and in 'grid': remove one of them",
                          axis.key);
  std::vector<SweepCell> cells{
      SweepCell{.key = "", .title = "", .settings = {}, .arguments = spec.arguments}};
  for (const SweepAxis& axis : spec.grid) {
    std::vector<SweepCell> extended_cells;
    if (cells.size() * axis.values.size() > kMostCells)
      return make_error(Errc::invalid_argument, "the grid has more than a million cells");
    for (const SweepCell& cell : cells)
      for (const std::vector<std::string>& values : axis.values) {
        SweepCell& added = extended_cells.emplace_back(cell);
        add_part(added, axis.key, values);
        if (axis.key == kArgumentsKey)
          added.arguments = values;
        else
          added.settings.push_back({axis.key, values});
      }
    cells = std::move(extended_cells);
  }
  std::vector<SweepCell> all_cells;
  for (const SweepCell& cell : cells) add_jobs(all_cells, cell, spec);
  if (all_cells.empty())
    return make_error(Errc::invalid_argument,
                      "'ranks' and 'nodes' make no job: fewer ranks than nodes, or more than "
                      "'tasks-per-node' allows");
  std::set<std::string_view> keys;
  for (const SweepCell& cell : all_cells)
    if (!keys.insert(cell.key).second)
      return make_error(Errc::invalid_argument, "two cells of the grid are the same: {}", cell.key);
  if (all_cells.size() == 1 && all_cells.front().title.empty()) all_cells.front().title = "all";
  return all_cells;
}

Result<void> use_own_names(SweepSpec& spec, const CommandInfo& command) {
  PENSTOCK_TRY(use_own_names(spec.fixed_settings, command));
  for (SweepArm& arm : spec.arms) PENSTOCK_TRY(use_own_names(arm.fixed_settings, command));
  std::set<std::string> keys;
  for (SweepAxis& axis : spec.grid) {
    if (const OptionSpec* const option = find_option(command, axis.key); option != nullptr) {
      for (std::vector<std::string>& values : axis.values)
        for (std::string& value : values) value = with_own_name(*option, {axis.key, std::move(value)}).value;
      axis.key = option->name;
    }
    if (!keys.insert(axis.key).second)
      return make_error(Errc::invalid_argument, "'grid' has '{}' twice, by both of its names: remove one",
                        axis.key);
  }
  return success();
}

bool is_set_by_sweep(std::string_view key) {
  static constexpr std::array<std::string_view, 5> kKeys{"results", "pair", "json", "progress", "no-config"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

size_t runs_per_turn(const SweepSpec& spec) {
  return std::max<size_t>(1, spec.arms.size());
}

std::vector<size_t> round_order(const std::vector<SweepCell>& cells, uint64_t seed, uint64_t round) {
  std::vector<std::pair<uint64_t, size_t>> random_keys;
  for (size_t i = 0; i < cells.size(); ++i)
    random_keys.emplace_back(RandomStream(seed, "order " + cells[i].key).bits(round), i);
  std::sort(random_keys.begin(), random_keys.end());
  std::vector<size_t> order;
  for (const auto& [number, cell] : random_keys) order.push_back(cell);
  return order;
}

std::vector<size_t> arm_order(const SweepSpec& spec, const SweepCell& cell, uint64_t seed, uint64_t round) {
  std::vector<size_t> order(runs_per_turn(spec));
  std::iota(order.begin(), order.end(), size_t{0});
  const RandomStream random = RandomStream(seed, "arms " + cell.key).substream(round / 2);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

std::vector<std::string> run_arguments(const SweepSpec& spec, const SweepCell& cell, size_t arm,
                                       const CommandInfo& command) {
  std::vector<std::string> arguments{spec.command};
  arguments.insert(arguments.end(), cell.arguments.begin(), cell.arguments.end());
  if (arm < spec.arms.size())
    arguments.insert(arguments.end(), spec.arms[arm].arguments.begin(), spec.arms[arm].arguments.end());
  for (const SweepSetting& setting : settings_of(spec, cell, arm)) add_option(arguments, setting, command);
  return arguments;
}

std::vector<std::string> launcher_arguments(const SweepSpec& spec, const SweepCell& cell, bool uses_srun,
                                            std::span<const std::string> site) {
  if (cell.ranks == 0) return {};
  if (spec.launcher.empty() && uses_srun) return srun_arguments(spec, cell);
  std::vector<std::string> arguments{"mpirun", "-n", "{ranks}"};
  if (!spec.launcher.empty())
    arguments = split_at_blanks(spec.launcher);
  else if (!site.empty())
    arguments.assign(site.begin(), site.end());
  const std::array<uint64_t, 3> values{cell.ranks, std::max<uint64_t>(1, cell.nodes),
                                       ranks_per_node(spec, cell)};
  for (std::string& word : arguments)
    for (size_t i = 0; i < kPlaceholders.size(); ++i)
      for (size_t at = 0; (at = word.find(kPlaceholders[i], at)) != std::string::npos;)
        word.replace(at, kPlaceholders[i].size(), std::to_string(values[i]));
  return arguments;
}

Result<void> check_launcher(const SweepSpec& spec) {
  if (spec.launcher.empty()) return success();
  if (spec.ranks.empty() && spec.nodes.empty())
    return make_error(Errc::invalid_argument, "'launcher' needs 'ranks' or 'nodes': add one of them");
  for (const std::string& word : split_at_blanks(spec.launcher)) {
    std::string other_text = word;
    for (const std::string_view place : kPlaceholders)
      for (size_t at = 0; (at = other_text.find(place)) != std::string::npos;)
        other_text.erase(at, place.size());
    if (other_text.find_first_of("{}") != std::string::npos)
      return make_error(Errc::invalid_argument, "'launcher' has '{}'; it may have {}", word,
                        fmt::join(kPlaceholders, ", "));
  }
  return success();
}

std::string replace_run(std::string text, std::string_view run) {
  constexpr std::string_view kRunPlaceholder = "{run}";
  for (size_t at = 0; (at = text.find(kRunPlaceholder, at)) != std::string::npos; at += run.size())
    text.replace(at, kRunPlaceholder.size(), run);
  return text;
}

bool sets_option(const SweepSpec& spec, size_t arm, std::string_view key) {
  const auto has_key = [&](const auto& setting) { return setting.key == key; };
  return std::any_of(spec.fixed_settings.begin(), spec.fixed_settings.end(), has_key) ||
         std::any_of(spec.grid.begin(), spec.grid.end(), has_key) ||
         (arm < spec.arms.size() &&
          std::any_of(spec.arms[arm].fixed_settings.begin(), spec.arms[arm].fixed_settings.end(), has_key));
}

Json sweep_identity(const SweepSpec& spec) {
  Json json = Json::object();
  json["command"] = spec.command;
  json["nouns"] = spec.arguments;
  json["fixed"] = arguments_json(spec.fixed_settings);
  json["grid"] = Json::object();
  for (const SweepAxis& axis : spec.grid) json["grid"][axis.key] = axis.values;
  json["arms"] = Json::object();
  for (const SweepArm& arm : spec.arms) {
    json["arms"][arm.name] = Json{{"program", arm.program}, {"fixed", arguments_json(arm.fixed_settings)}};
    // Only if there are any, so that a sweep of an earlier version can continue.
    if (!arm.arguments.empty()) json["arms"][arm.name]["nouns"] = arm.arguments;
  }
  json["ranks"] = spec.ranks;
  json["nodes"] = spec.nodes;
  json["tasks-per-node"] = spec.tasks_per_node;
  json["launcher"] = spec.launcher;
  json["repeats"] = spec.repeats;
  json["until"] = spec.until_interval > 0
                      ? Json{{"metric", spec.until_metric}, {"interval", spec.until_interval}}
                      : Json::object();
  if (spec.seed) json["seed"] = *spec.seed;
  return json;
}

Result<void> check_only_added(const Json& before, const Json& now) {
  for (const auto& [key, old_value] : before.items()) {
    const Json new_value = now.contains(key) ? now[key] : Json();
    if (key == "grid") {
      for (const auto& [axis, values] : old_value.items()) {
        const std::string path = "grid." + axis;
        if (!new_value.contains(axis)) return change_error(path, "is gone");
        PENSTOCK_TRY(check_values(path, values, new_value[axis]));
      }
      for (const auto& [axis, values] : new_value.items())
        if (!old_value.contains(axis))
          return change_error("grid." + axis, "is new, and would change every cell");
    } else if (key == "ranks" || key == "nodes") {
      if (old_value.empty() != new_value.empty()) return check_same(key, old_value, new_value);
      PENSTOCK_TRY(check_values(key, old_value, new_value));
    } else if (key == "repeats") {
      if (new_value.get<uint64_t>() < old_value.get<uint64_t>()) return check_same(key, old_value, new_value);
    } else if (key != "seed" || !new_value.is_null()) {
      PENSTOCK_TRY(check_same(key, old_value, new_value));
    }
  }
  return success();
}

}  // namespace penstock
