#include "results/sweep/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iterator>
#include <set>
#include <span>

#include "io_backends/configuration/yaml_document.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/units.hpp"
#include "results/record/baseline.hpp"
#include "results/sweep/plan.hpp"

namespace penstock {
namespace {

constexpr std::string_view kDocumentName = "sweep";  // how error messages call the whole file
constexpr uint64_t kMostRepeats = 100'000;
constexpr uint64_t kMostRepeatsUntil = 50;  // most repeats if the file has `until` but no number of repeats

template <class Target>
struct Key {
  std::string_view name;
  Result<void> (*read)(Target& target, const YAML::Node& node, const std::string& path);
};

Error key_error(const std::string& path, std::string_view problem) {
  return make_error(Errc::invalid_argument, "'{}' {}", path, problem);
}

// Calls `handle(key, node)` for each entry of a mapping.
template <class Handle>
Result<void> for_each_pair(const YAML::Node& node, const std::string& path, Handle handle) {
  if (!node.IsMap()) return key_error(path, "needs a mapping of keys to values");
  std::set<std::string> seen_keys;
  for (const auto& pair : node) {
    if (!pair.first.IsScalar()) return key_error(path, "has a key that is not a word");
    const auto key = pair.first.as<std::string>();
    if (!seen_keys.insert(key).second) return key_error(path, fmt::format("has '{}' twice", key));
    PENSTOCK_TRY(handle(key, pair.second));
  }
  return success();
}

template <class Target>
Result<void> read_keys(Target& target, const YAML::Node& node, const std::string& path,
                       std::span<const Key<Target>> keys) {
  return for_each_pair(node, path, [&](std::string word, const YAML::Node& value) -> Result<void> {
    std::replace(word.begin(), word.end(), '_', '-');
    for (const Key<Target>& key : keys)
      if (key.name == word) return key.read(target, value, path == kDocumentName ? word : path + "." + word);
    std::vector<std::string_view> valid;
    for (const Key<Target>& key : keys) valid.push_back(key.name);
    return unknown_name(fmt::format("key of '{}'", path), word, valid);
  });
}

Result<std::string> word_of(const YAML::Node& node, const std::string& path) {
  if (!node.IsScalar()) return key_error(path, "needs one value");
  return node.as<std::string>();
}

Result<std::vector<std::string>> word_list(const YAML::Node& node, const std::string& path) {
  std::vector<std::string> words;
  if (node.IsScalar()) {
    words.push_back(node.as<std::string>());
    return words;
  }
  if (!node.IsSequence()) return key_error(path, "needs a value or a list of values");
  for (const auto& item : node) {
    PENSTOCK_ASSIGN(std::string word, word_of(item, path));
    words.push_back(std::move(word));
  }
  return words;
}

Result<uint64_t> number_of(const YAML::Node& node, const std::string& path, uint64_t least, uint64_t most) {
  PENSTOCK_ASSIGN(const std::string word, word_of(node, path));
  const Result<uint64_t> number = parse_count(word);
  if (!number.ok() || *number < least || *number > most)
    return key_error(path, fmt::format("is a whole number from {} to {}, not '{}'", least, most, word));
  return *number;
}

// Adds the values of one word. A range such as "1..64*2" is replaced by its numbers. A path that contains
// ".." is no range and is added unchanged.
void add_values(std::vector<std::vector<std::string>>& values, const std::string& word) {
  if (word.find("..") != std::string::npos) {
    if (const auto members = parse_list(word); members.ok()) {
      for (const uint64_t member : *members) values.push_back({std::to_string(member)});
      return;
    }
  }
  values.push_back({word});
}

Result<std::vector<std::vector<std::string>>> values_of(const YAML::Node& node, const std::string& path) {
  std::vector<std::vector<std::string>> values;
  if (node.IsScalar()) {
    add_values(values, node.as<std::string>());
  } else if (node.IsSequence()) {
    for (const auto& item : node) {
      if (item.IsScalar()) {
        add_values(values, item.as<std::string>());
        continue;
      }
      PENSTOCK_ASSIGN(std::vector<std::string> words, word_list(item, path));
      values.push_back(std::move(words));
    }
  }
  if (values.empty()) return key_error(path, "needs a list of values");
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (const auto duplicate = std::adjacent_find(sorted.begin(), sorted.end()); duplicate != sorted.end())
    return key_error(path, fmt::format("has the value '{}' twice", fmt::join(*duplicate, " ")));
  return values;
}

Result<std::vector<uint64_t>> counts_of(const YAML::Node& node, const std::string& path) {
  constexpr uint64_t kMostCount = 1U << 20;
  PENSTOCK_ASSIGN(const auto values, values_of(node, path));
  std::vector<uint64_t> counts;
  for (const std::vector<std::string>& value : values) {
    const auto count = parse_count(value.size() == 1 ? value.front() : "");
    if (!count.ok() || *count == 0 || *count > kMostCount)
      return key_error(path, fmt::format("takes whole numbers from 1 on, not '{}'", fmt::join(value, " ")));
    counts.push_back(*count);
  }
  return counts;
}

std::string option_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// Fails if the sweep itself gives this option to each run: then the file must not set it.
Result<void> check_not_reserved(const std::string& key, const std::string& path) {
  if (!is_set_by_sweep(key)) return success();
  return key_error(path, fmt::format("cannot have '{}': the sweep gives that to each run", key));
}

Result<std::vector<SweepSetting>> setting_list(const YAML::Node& node, const std::string& path) {
  std::vector<SweepSetting> settings;
  const auto add = [&](const std::string& word, const YAML::Node& value) -> Result<void> {
    const std::string key = option_name(word);
    PENSTOCK_TRY(check_not_reserved(key, path));
    PENSTOCK_ASSIGN(std::vector<std::string> words, word_list(value, path + "." + key));
    settings.push_back({key, std::move(words)});
    return success();
  };
  PENSTOCK_TRY(for_each_pair(node, path, add));
  return settings;
}

// Reads the value of a key into the member `Member` of `target`.
template <class Target, auto Member, auto Read>
Result<void> read_into(Target& target, const YAML::Node& node, const std::string& path) {
  PENSTOCK_ASSIGN(target.*Member, Read(node, path));
  return success();
}

// Reads the name of the sweep. It becomes a label and a part of file names, so only some characters are
// allowed.
Result<void> read_name(SweepSpec& spec, const YAML::Node& node, const std::string& path) {
  PENSTOCK_ASSIGN(spec.name, word_of(node, path));
  if (!is_plain_word(spec.name) || spec.name.size() > 100)
    return key_error(path, "takes letters, digits, '-', '_' and '.'");
  return success();
}

Result<void> read_grid(SweepSpec& spec, const YAML::Node& node, const std::string& path) {
  return for_each_pair(node, path, [&](const std::string& word, const YAML::Node& value) -> Result<void> {
    const std::string key = option_name(word);
    PENSTOCK_TRY(check_not_reserved(key, path));
    PENSTOCK_ASSIGN(auto values, values_of(value, path + "." + key));
    spec.grid.push_back({key, std::move(values)});
    return success();
  });
}

constexpr Key<SweepArm> kArmKeys[] = {
    {"fixed", &read_into<SweepArm, &SweepArm::fixed_settings, setting_list>},
    {"nouns", &read_into<SweepArm, &SweepArm::arguments, word_list>},
    {"program", &read_into<SweepArm, &SweepArm::program, word_of>},
};

Result<void> read_arms(SweepSpec& spec, const YAML::Node& node, const std::string& path) {
  const auto add = [&](const std::string& name, const YAML::Node& value) -> Result<void> {
    SweepArm arm{.name = name, .program = {}, .arguments = {}, .fixed_settings = {}};
    if (name.empty() || name.find_first_of(", ") != std::string::npos)
      return key_error(path, fmt::format("cannot have the name '{}': no comma, no blank", name));
    if (!value.IsNull())
      PENSTOCK_TRY(read_keys<SweepArm>(arm, value, path + "." + name, std::span(kArmKeys)));
    spec.arms.push_back(std::move(arm));
    return success();
  };
  PENSTOCK_TRY(for_each_pair(node, path, add));
  if (spec.arms.size() < 2) return key_error(path, "needs two arms at least");
  return success();
}

constexpr Key<SweepSpec> kUntilKeys[] = {
    {"interval",
     [](SweepSpec& spec, const YAML::Node& node, const std::string& path) -> Result<void> {
       PENSTOCK_ASSIGN(std::string word, word_of(node, path));
       const bool is_percent = word.ends_with('%');
       const auto value = parse_real(is_percent ? word.substr(0, word.size() - 1) : word);
       if (!value.ok() || *value <= 0)
         return key_error(path, fmt::format("is a share of the median like 5%, not '{}'", word));
       spec.until_interval = is_percent ? *value / 100 : *value;
       return success();
     }},
    {"metric", &read_into<SweepSpec, &SweepSpec::until_metric, word_of>},
};

Result<void> read_until(SweepSpec& spec, const YAML::Node& node, const std::string& path) {
  PENSTOCK_TRY(read_keys<SweepSpec>(spec, node, path, std::span(kUntilKeys)));
  const bool is_complete = !spec.until_metric.empty() && spec.until_interval > 0;
  return is_complete ? success() : key_error(path, "needs a metric and an interval");
}

// Reads a time limit for Slurm. A duration such as "2h" is converted to minutes. Slurm's own formats
// ("1-00:00:00", "30") are returned unchanged.
Result<std::string> slurm_time(const YAML::Node& node, const std::string& path) {
  PENSTOCK_ASSIGN(const std::string word, word_of(node, path));
  if (!word.empty() && word.find_first_not_of("0123456789:-") == std::string::npos) return word;
  const auto time = parse_duration(word);
  if (!time.ok()) return key_error(path, fmt::format("is a time like 30m or 1-12:00:00, not '{}'", word));
  const auto minutes = std::chrono::ceil<std::chrono::minutes>(*time).count();
  return std::to_string(std::max<int64_t>(1, minutes));
}

constexpr Key<SweepSlurm> kSlurmKeys[] = {
    {"account", &read_into<SweepSlurm, &SweepSlurm::account, word_of>},
    {"mpi", &read_into<SweepSlurm, &SweepSlurm::mpi, word_of>},
    {"options", &read_into<SweepSlurm, &SweepSlurm::options, word_list>},
    {"partition", &read_into<SweepSlurm, &SweepSlurm::partition, word_of>},
    {"srun", &read_into<SweepSlurm, &SweepSlurm::srun, word_list>},
    {"time", &read_into<SweepSlurm, &SweepSlurm::time, slurm_time>},
};

using Node = YAML::Node;
using Path = std::string;
constexpr Key<SweepSpec> kSweepKeys[] = {
    {"after", &read_into<SweepSpec, &SweepSpec::command_after_run, word_of>},
    {"arms", &read_arms},
    {"budget",
     [](SweepSpec& spec, const Node& node, const Path& path) -> Result<void> {
       PENSTOCK_ASSIGN(const std::string word, word_of(node, path));
       const auto budget = parse_duration(word);
       if (!budget.ok() || budget->count() == 0)
         return key_error(path, fmt::format("is a time like 2h, not '{}'", word));
       spec.budget = *budget;
       return success();
     }},
    {"command", &read_into<SweepSpec, &SweepSpec::command, word_of>},
    {"fixed", &read_into<SweepSpec, &SweepSpec::fixed_settings, setting_list>},
    {"grid", &read_grid},
    {"launcher", &read_into<SweepSpec, &SweepSpec::launcher, word_of>},
    {"name", &read_name},
    {"nodes", &read_into<SweepSpec, &SweepSpec::nodes, counts_of>},
    {"nouns", &read_into<SweepSpec, &SweepSpec::arguments, word_list>},
    {"ranks", &read_into<SweepSpec, &SweepSpec::ranks, counts_of>},
    {"repeats",
     [](SweepSpec& spec, const Node& node, const Path& path) -> Result<void> {
       PENSTOCK_ASSIGN(spec.repeats, number_of(node, path, 1, kMostRepeats));
       return success();
     }},
    {"results",
     [](SweepSpec& spec, const Node& node, const Path& path) -> Result<void> {
       PENSTOCK_ASSIGN(spec.results, word_of(node, path));
       return spec.results.empty() ? key_error(path, "needs a folder") : success();
     }},
    {"seed",
     [](SweepSpec& spec, const Node& node, const Path& path) -> Result<void> {
       PENSTOCK_ASSIGN(spec.seed, number_of(node, path, 0, INT64_MAX));
       return success();
     }},
    {"slurm",
     [](SweepSpec& spec, const Node& node, const Path& path) -> Result<void> {
       return read_keys<SweepSlurm>(spec.slurm, node, path, std::span(kSlurmKeys));
     }},
    {"tasks-per-node",
     [](SweepSpec& spec, const Node& node, const Path& path) -> Result<void> {
       PENSTOCK_ASSIGN(spec.tasks_per_node, number_of(node, path, 1, 1U << 16));
       return success();
     }},
    {"until", &read_until},
};

Result<SweepSpec> spec_of(const Node& document) {
  if (!document.IsMap())
    return make_error(Errc::invalid_argument, "expected a mapping with 'name', 'command', 'grid' ...");
  SweepSpec spec;
  spec.repeats = 0;
  PENSTOCK_TRY(read_keys<SweepSpec>(spec, document, std::string(kDocumentName), std::span(kSweepKeys)));
  for (const auto& [key, value] : {std::pair{"name", &spec.name}, std::pair{"command", &spec.command}})
    if (value->empty()) return make_error(Errc::invalid_argument, "the key '{}' is missing", key);
  if (spec.repeats == 0) spec.repeats = spec.until_interval > 0 ? kMostRepeatsUntil : 1;
  return spec;
}

Error file_error(std::string_view file, std::string_view problem) {
  return make_error(Errc::invalid_argument, "{}: {}", file, problem);
}

}  // namespace

Result<SweepSpec> parse_sweep(const std::string& text, std::string_view file) {
  try {
    Result<SweepSpec> spec = spec_of(parse_yaml(text));
    if (!spec.ok()) return file_error(file, spec.error().message());
    return spec;
  } catch (const std::exception& error) {
    return file_error(file, error.what());
  }
}

Result<SweepSpec> read_sweep_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) return file_error(file.string(), "is a folder");
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in)
    return Error{Errc::invalid_argument, errno, fmt::format("cannot read the sweep '{}'", file.string())};
  return parse_sweep(text, file.string());
}

}  // namespace penstock
