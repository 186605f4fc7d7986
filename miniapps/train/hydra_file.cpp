#include "miniapps/train/hydra_file.hpp"

#include <filesystem>
#include <set>
#include <utility>

namespace penstock {
namespace {

using Value = YAML::Node;

constexpr int kDeepestDefaults = 8;  // `defaults` lists that lead from one file to the next
// Limits for a file: an alias (YAML's *NAME) may contain itself, or many aliases that contain many aliases.
constexpr int kDeepestValue = 32;
constexpr int kMostValues = 100'000;
constexpr const char* kMergeKey = "<<";
constexpr std::string_view kHydra = "hydra.";  // settings of Hydra itself, such as its output folder

// Merges `from` into the mapping `into`, as OmegaConf does: mappings are merged, everything else is replaced.
void merge(Value into, const Value& from) {
  for (const auto& entry : from) {
    const auto name = entry.first.as<std::string>();
    if (entry.second.IsMap() && into[name].IsMap())
      merge(into[name], entry.second);
    else
      into[name] = YAML::Clone(entry.second);
  }
}

// Checks that no mapping below `at` has a key twice, which OmegaConf refuses, and replaces merge keys ("<<")
// by what they merge. Keys of the mapping itself come before those.
Result<void> resolve_keys(Value at, int& values_left, int depth = 0) {
  if (--values_left < 0 || depth > kDeepestValue)
    return make_error(Errc::invalid_argument, "it has too many values, or values that are nested too deeply");
  if (at.IsSequence())
    for (Value item : at) PENSTOCK_TRY(resolve_keys(item, values_left, depth + 1));
  if (!at.IsMap()) return success();
  std::set<std::string> names;
  for (const auto& entry : at) {
    const auto name = entry.first.as<std::string>();
    if (!names.insert(name).second)
      return make_error(Errc::invalid_argument, "it has the key '" + name + "' twice in one mapping");
    PENSTOCK_TRY(resolve_keys(entry.second, values_left, depth + 1));
  }
  const Value merged = std::as_const(at)[kMergeKey];
  if (!merged) return success();
  at.remove(kMergeKey);
  for (const Value& source :
       merged.IsSequence() ? std::vector<Value>(merged.begin(), merged.end()) : std::vector<Value>{merged})
    for (const auto& entry : source)
      if (names.insert(entry.first.as<std::string>()).second)
        at[entry.first.as<std::string>()] = YAML::Clone(entry.second);
  return success();
}

// Merges one override into the document. With `value` undefined the key is removed.
void set_value(Value document, std::string_view name, const Value& value) {
  Value at = document;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    const std::string part(name.substr(0, dot));
    if (!at[part].IsMap()) at[part] = Value(YAML::NodeType::Map);
    at.reset(at[part]);
    name.remove_prefix(dot + 1);
  }
  const std::string last(name);
  if (!value) {
    at.remove(last);
  } else if (value.IsMap() && at[last].IsMap()) {
    merge(at[last], value);
  } else {
    at[last] = value;
  }
}

// Reads the value of an override. Unlike YAML, Hydra needs no space after the colon of a key: {epochs:2}.
Result<Value> parse_value(const std::string& argument, std::string_view text) {
  std::string yaml;
  std::string brackets;
  bool is_key = false;
  char quote = '\0';
  for (const char c : text) {
    yaml += c;
    if (quote != '\0' || c == '\'' || c == '"') {
      quote = quote == '\0' ? c : quote == c ? '\0' : quote;
    } else if (c == '{' || c == '[') {
      const bool is_reference = yaml.ends_with("${");
      brackets += is_reference ? '$' : c;
      is_key = brackets.ends_with('{');
    } else if ((c == '}' || c == ']') && !brackets.empty()) {
      brackets.pop_back();
    } else if (c == ',') {
      is_key = brackets.ends_with('{');
    } else if (c == ':' && is_key) {
      yaml += ' ';
      is_key = false;
    }
  }
  try {
    Value value = YAML::Load(yaml);
    int values_left = kMostValues;
    PENSTOCK_TRY(resolve_keys(value, values_left));
    return value;
  } catch (const YAML::Exception& error) {
    return make_error(Errc::invalid_argument, "the value of the override '" + argument + "': " + error.msg);
  }
}

Result<void> apply_override(Value document, const std::string& group, const std::string& argument) {
  std::string_view name = argument;
  const bool removes = name.starts_with('~');
  while (!name.empty() && (name.front() == '+' || (removes && name.front() == '~'))) name.remove_prefix(1);
  const size_t equals = name.find('=');
  const std::string prefix = name.starts_with(kHydra) ? "" : group + ".";
  if (!name.starts_with(prefix) || (equals == std::string::npos && !removes))
    return make_error(Errc::invalid_argument, "'" + argument + "' is no override: they are written ++" +
                                                  group + ".SECTION.KEY=VALUE");
  const std::string_view path = name.substr(prefix.size(), equals - prefix.size());
  if (removes) {
    set_value(document, path, Value(YAML::NodeType::Undefined));
    return success();
  }
  PENSTOCK_ASSIGN(const Value value, parse_value(argument, name.substr(equals + 1)));
  set_value(document, path, value);
  return success();
}

// Loads a workload file, and first the files that its list `defaults` names, which it changes.
Result<Value> load(const std::filesystem::path& file, int depth = 0) {
  Value loaded = YAML::LoadFile(file);
  if (!loaded.IsMap())
    return make_error(Errc::invalid_argument,
                      "'" + file.string() + "' is no workload: it has no sections such as 'dataset:'");
  int values_left = kMostValues;
  PENSTOCK_TRY(resolve_keys(loaded, values_left));
  Value document(YAML::NodeType::Map);
  bool is_merged = false;
  for (const auto& entry : std::as_const(loaded)["defaults"]) {
    if (entry.IsScalar() && entry.Scalar() == "_self_") {  // files after it in the list change it
      merge(document, loaded);
      is_merged = true;
      continue;
    }
    if (!entry.IsScalar() || depth == kDeepestDefaults)
      return make_error(
          Errc::invalid_argument,
          "its list 'defaults' has an entry that only Hydra can resolve: write the workload that "
          "DLIO composes (--cfg job) to a file, and give that");
    std::filesystem::path base = file.parent_path() / entry.Scalar();
    if (base.extension() != ".yaml") base += ".yaml";
    PENSTOCK_ASSIGN(const Value of_base, load(base, depth + 1));
    merge(document, of_base);
  }
  if (!is_merged) merge(document, loaded);
  document.remove("defaults");
  return document;
}

}  // namespace

Result<YAML::Node> load_hydra_file(const std::string& file, const std::string& group,
                                   const std::vector<std::string>& overrides) {
  PENSTOCK_ASSIGN(Value document, load(file));
  if (const Value composed = std::as_const(document)[group]; composed && composed.IsMap())
    document.reset(composed);
  for (const std::string& argument : overrides) PENSTOCK_TRY(apply_override(document, group, argument));
  return document;
}

}  // namespace penstock
