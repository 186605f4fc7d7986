#include "results/sweep/spec.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <iterator>
#include <set>
#include <span>

#include "io_backends/core/options.hpp"
#include "io_backends/core/units.hpp"
#include "results/record/baseline.hpp"

namespace penstock {
namespace {

constexpr std::string_view kTop = "sweep";  // the name of the whole document in messages
constexpr std::uint64_t kMostRepeats = 100'000;
constexpr std::uint64_t kMostRepeatsUntil = 50;  // if only `until` decides when to stop

template <class Target>
struct Key {
  std::string_view name;
  Result<void> (*read)(Target& target, const YAML::Node& node, const std::string& where);
};

Error key_error(const std::string& where, std::string_view problem) {
  return make_error(Errc::invalid_argument, fmt::format("'{}' {}", where, problem));
}

// Calls `handle(key, node)` for each pair of a mapping.
template <class Handle>
Result<void> for_each_pair(const YAML::Node& node, const std::string& where, Handle handle) {
  if (!node.IsMap()) return key_error(where, "needs a mapping of keys to values");
  std::set<std::string> seen;
  for (const auto& pair : node) {
    if (!pair.first.IsScalar()) return key_error(where, "has a key that is no word");
    const auto key = pair.first.as<std::string>();
    if (!seen.insert(key).second) return key_error(where, fmt::format("has '{}' twice", key));
    PENSTOCK_TRY(handle(key, pair.second));
  }
  return success();
}

template <class Target>
Result<void> read_keys(Target& target, const YAML::Node& node, const std::string& where,
                       std::span<const Key<Target>> keys) {
  return for_each_pair(node, where, [&](std::string word, const YAML::Node& value) -> Result<void> {
    std::replace(word.begin(), word.end(), '_', '-');
    for (const Key<Target>& key : keys)
      if (key.name == word) return key.read(target, value, where == kTop ? word : where + "." + word);
    std::vector<std::string_view> valid;
    for (const Key<Target>& key : keys) valid.push_back(key.name);
    return unknown_name(fmt::format("key of '{}'", where), word, valid);
  });
}

Result<std::string> word_of(const YAML::Node& node, const std::string& where) {
  if (!node.IsScalar()) return key_error(where, "needs one value");
  return node.as<std::string>();
}

Result<std::vector<std::string>> option_list(const YAML::Node& node, const std::string& where) {
  std::vector<std::string> words;
  if (node.IsScalar()) {
    words.push_back(node.as<std::string>());
    return words;
  }
  if (!node.IsSequence()) return key_error(where, "needs a value or a list of values");
  for (const auto& item : node) {
    PENSTOCK_ASSIGN(std::string word, word_of(item, where));
    words.push_back(std::move(word));
  }
  return words;
}

Result<std::uint64_t> number_of(const YAML::Node& node, const std::string& where, std::uint64_t least,
                                std::uint64_t most) {
  PENSTOCK_ASSIGN(const std::string word, word_of(node, where));
  const Result<std::uint64_t> number = parse_count(word);
  if (!number.ok() || *number < least || *number > most)
    return key_error(where, fmt::format("is a whole number from {} to {}, not '{}'", least, most, word));
  return *number;
}

// A range such as "1..64*2" becomes its members. A path that contains ".." cannot be parsed as a range and
// stays as it is.
void add_values(std::vector<std::vector<std::string>>& values, const std::string& word) {
  if (word.find("..") != std::string::npos) {
    if (const auto members = parse_list(word); members.ok()) {
      for (const std::uint64_t member : *members) values.push_back({std::to_string(member)});
      return;
    }
  }
  values.push_back({word});
}

Result<std::vector<std::vector<std::string>>> values_of(const YAML::Node& node, const std::string& where) {
  std::vector<std::vector<std::string>> values;
  if (node.IsScalar()) {
    add_values(values, node.as<std::string>());
  } else if (node.IsSequence()) {
    for (const auto& item : node) {
      if (item.IsScalar()) {
        add_values(values, item.as<std::string>());
        continue;
      }
      PENSTOCK_ASSIGN(std::vector<std::string> words, option_list(item, where));
      values.push_back(std::move(words));
    }
  }
  if (values.empty()) return key_error(where, "needs a list of values");
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return key_error(where, fmt::format("has the value '{}' twice", fmt::join(*twice, " ")));
  return values;
}

Result<std::vector<std::uint64_t>> counts_of(const YAML::Node& node, const std::string& where) {
  constexpr std::uint64_t kMost = 1U << 20;
  PENSTOCK_ASSIGN(const auto values, values_of(node, where));
  std::vector<std::uint64_t> counts;
  for (const std::vector<std::string>& value : values) {
    const auto count = parse_count(value.size() == 1 ? value.front() : "");
    if (!count.ok() || *count == 0 || *count > kMost)
      return key_error(where, fmt::format("takes whole numbers from 1 on, not '{}'", fmt::join(value, " ")));
    counts.push_back(*count);
  }
  return counts;
}

std::string option_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// Fails if the key is an option that the sweep itself gives to each run.
Result<void> check_free(const std::string& key, const std::string& where) {
  static constexpr std::array<std::string_view, 5> kOwn{"results", "pair", "json", "progress", "no-config"};
  if (std::find(kOwn.begin(), kOwn.end(), key) == kOwn.end()) return success();
  return key_error(where, fmt::format("cannot hold '{}': the sweep says that to each run itself", key));
}

Result<std::vector<SweepSetting>> setting_list(const YAML::Node& node, const std::string& where) {
  std::vector<SweepSetting> settings;
  const auto take = [&](const std::string& word, const YAML::Node& value) -> Result<void> {
    const std::string key = option_name(word);
    PENSTOCK_TRY(check_free(key, where));
    PENSTOCK_ASSIGN(std::vector<std::string> words, option_list(value, where + "." + key));
    settings.push_back({key, std::move(words)});
    return success();
  };
  PENSTOCK_TRY(for_each_pair(node, where, take));
  return settings;
}

// Reads the value of a key into a member of its target.
template <class Target, auto Member, auto Read>
Result<void> read_into(Target& target, const YAML::Node& node, const std::string& where) {
  PENSTOCK_ASSIGN(target.*Member, Read(node, where));
  return success();
}

// The name becomes part of file names, and a label.
Result<void> read_name(SweepSpec& spec, const YAML::Node& node, const std::string& where) {
  PENSTOCK_ASSIGN(spec.name, word_of(node, where));
  if (!is_plain_word(spec.name) || spec.name.size() > 100)
    return key_error(where, "takes letters, digits, '-', '_' and '.'");
  return success();
}

Result<void> read_grid(SweepSpec& spec, const YAML::Node& node, const std::string& where) {
  return for_each_pair(node, where, [&](const std::string& word, const YAML::Node& value) -> Result<void> {
    const std::string key = option_name(word);
    PENSTOCK_TRY(check_free(key, where));
    PENSTOCK_ASSIGN(auto values, values_of(value, where + "." + key));
    spec.grid.push_back({key, std::move(values)});
    return success();
  });
}

constexpr Key<SweepArm> kArmKeys[] = {
    {"fixed", &read_into<SweepArm, &SweepArm::fixed, setting_list>},
    {"program", &read_into<SweepArm, &SweepArm::program, word_of>},
};

Result<void> read_arms(SweepSpec& spec, const YAML::Node& node, const std::string& where) {
  const auto take = [&](const std::string& name, const YAML::Node& value) -> Result<void> {
    SweepArm arm{.name = name, .program = {}, .fixed = {}};
    if (name.empty() || name.find_first_of(", ") != std::string::npos)
      return key_error(where, fmt::format("cannot have the name '{}': no comma, no blank", name));
    if (!value.IsNull())
      PENSTOCK_TRY(read_keys<SweepArm>(arm, value, where + "." + name, std::span(kArmKeys)));
    spec.arms.push_back(std::move(arm));
    return success();
  };
  PENSTOCK_TRY(for_each_pair(node, where, take));
  if (spec.arms.size() < 2) return key_error(where, "needs two arms at least");
  return success();
}

constexpr Key<SweepSpec> kUntilKeys[] = {
    {"interval",
     [](SweepSpec& spec, const YAML::Node& node, const std::string& where) -> Result<void> {
       PENSTOCK_ASSIGN(std::string word, word_of(node, where));
       const bool percent = word.ends_with('%');
       const auto value = parse_real(percent ? word.substr(0, word.size() - 1) : word);
       if (!value.ok() || *value <= 0)
         return key_error(where, fmt::format("is a share of the median like 5%, not '{}'", word));
       spec.until_interval = percent ? *value / 100 : *value;
       return success();
     }},
    {"metric", &read_into<SweepSpec, &SweepSpec::until_metric, word_of>},
};

Result<void> read_until(SweepSpec& spec, const YAML::Node& node, const std::string& where) {
  PENSTOCK_TRY(read_keys<SweepSpec>(spec, node, where, std::span(kUntilKeys)));
  const bool whole = !spec.until_metric.empty() && spec.until_interval > 0;
  return whole ? success() : key_error(where, "needs a metric and an interval");
}

// Converts a duration to minutes. Slurm's own formats ("1-00:00:00", "30") stay as they are.
Result<std::string> slurm_time(const YAML::Node& node, const std::string& where) {
  PENSTOCK_ASSIGN(const std::string word, word_of(node, where));
  if (!word.empty() && word.find_first_not_of("0123456789:-") == std::string::npos) return word;
  const auto time = parse_duration(word);
  if (!time.ok()) return key_error(where, fmt::format("is a time like 30m or 1-12:00:00, not '{}'", word));
  const auto minutes = std::chrono::ceil<std::chrono::minutes>(*time).count();
  return std::to_string(std::max<std::int64_t>(1, minutes));
}

constexpr Key<SweepSlurm> kSlurmKeys[] = {
    {"account", &read_into<SweepSlurm, &SweepSlurm::account, word_of>},
    {"mpi", &read_into<SweepSlurm, &SweepSlurm::mpi, word_of>},
    {"options", &read_into<SweepSlurm, &SweepSlurm::options, option_list>},
    {"partition", &read_into<SweepSlurm, &SweepSlurm::partition, word_of>},
    {"srun", &read_into<SweepSlurm, &SweepSlurm::srun, option_list>},
    {"time", &read_into<SweepSlurm, &SweepSlurm::time, slurm_time>},
};

using Node = YAML::Node;
using Where = std::string;
constexpr Key<SweepSpec> kKeys[] = {
    {"after", &read_into<SweepSpec, &SweepSpec::after, word_of>},
    {"arms", &read_arms},
    {"budget",
     [](SweepSpec& spec, const Node& node, const Where& where) -> Result<void> {
       PENSTOCK_ASSIGN(const std::string word, word_of(node, where));
       const auto budget = parse_duration(word);
       if (!budget.ok() || budget->count() == 0)
         return key_error(where, fmt::format("is a time like 2h, not '{}'", word));
       spec.budget = *budget;
       return success();
     }},
    {"command", &read_into<SweepSpec, &SweepSpec::command, word_of>},
    {"fixed", &read_into<SweepSpec, &SweepSpec::fixed, setting_list>},
    {"grid", &read_grid},
    {"launcher", &read_into<SweepSpec, &SweepSpec::launcher, word_of>},
    {"name", &read_name},
    {"nodes", &read_into<SweepSpec, &SweepSpec::nodes, counts_of>},
    {"nouns", &read_into<SweepSpec, &SweepSpec::arguments, option_list>},
    {"ranks", &read_into<SweepSpec, &SweepSpec::ranks, counts_of>},
    {"repeats",
     [](SweepSpec& spec, const Node& node, const Where& where) -> Result<void> {
       PENSTOCK_ASSIGN(spec.repeats, number_of(node, where, 1, kMostRepeats));
       return success();
     }},
    {"results",
     [](SweepSpec& spec, const Node& node, const Where& where) -> Result<void> {
       PENSTOCK_ASSIGN(spec.results, word_of(node, where));
       return spec.results.empty() ? key_error(where, "needs a folder") : success();
     }},
    {"seed",
     [](SweepSpec& spec, const Node& node, const Where& where) -> Result<void> {
       PENSTOCK_ASSIGN(spec.seed, number_of(node, where, 0, INT64_MAX));
       return success();
     }},
    {"slurm",
     [](SweepSpec& spec, const Node& node, const Where& where) -> Result<void> {
       return read_keys<SweepSlurm>(spec.slurm, node, where, std::span(kSlurmKeys));
     }},
    {"tasks-per-node",
     [](SweepSpec& spec, const Node& node, const Where& where) -> Result<void> {
       PENSTOCK_ASSIGN(spec.tasks_per_node, number_of(node, where, 1, 1U << 16));
       return success();
     }},
    {"until", &read_until},
};

Result<SweepSpec> spec_of(const Node& document) {
  if (!document.IsMap())
    return make_error(Errc::invalid_argument, "expected a mapping with 'name', 'command', 'grid' ...");
  SweepSpec spec;
  spec.repeats = 0;
  PENSTOCK_TRY(read_keys<SweepSpec>(spec, document, std::string(kTop), std::span(kKeys)));
  for (const auto& [key, given] : {std::pair{"name", &spec.name}, std::pair{"command", &spec.command}})
    if (given->empty())
      return make_error(Errc::invalid_argument, fmt::format("the key '{}' is missing", key));
  if (spec.repeats == 0) spec.repeats = spec.until_interval > 0 ? kMostRepeatsUntil : 1;
  return spec;
}

Error in_file(std::string_view file, std::string_view what) {
  return make_error(Errc::invalid_argument, fmt::format("{}: {}", file, what));
}

}  // namespace

Result<SweepSpec> parse_sweep(const std::string& text, std::string_view file) {
  try {
    Result<SweepSpec> spec = spec_of(YAML::Load(text));
    if (!spec.ok()) return in_file(file, spec.error().message());
    return spec;
  } catch (const std::exception& error) {
    return in_file(file, error.what());
  }
}

Result<SweepSpec> read_sweep_file(const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::is_directory(file, none)) return in_file(file.string(), "is a folder");
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in)
    return Error{Errc::invalid_argument, errno, fmt::format("cannot read the sweep '{}'", file.string())};
  return parse_sweep(text, file.string());
}

}  // namespace penstock
