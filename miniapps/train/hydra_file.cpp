#include "miniapps/train/hydra_file.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <variant>

#include "io_backends/configuration/yaml_document.hpp"

namespace penstock {
namespace {

using Value = YAML::Node;

constexpr int kDeepestDefaults = 8;            // `defaults` lists that lead from one file to the next
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

// A scalar as OmegaConf reads it: what is in quotes is a text.
std::variant<bool, double, std::string> typed(const Value& scalar) {
  bool truth = false;
  double number = 0;
  if (scalar.Tag() != "!" && YAML::convert<bool>::decode(scalar, truth)) return truth;
  if (scalar.Tag() != "!" && YAML::convert<double>::decode(scalar, number)) return number;
  return scalar.Scalar();
}

// Whether two values are equal. In a mapping the order of the keys does not matter.
bool is_same(const Value& one, const Value& other) {
  if (one.Type() != other.Type()) return false;
  if (one.IsScalar()) return typed(one) == typed(other);
  if (one.size() != other.size()) return false;
  if (one.IsSequence())
    return std::equal(one.begin(), one.end(), other.begin(),
                      [](const auto& a, const auto& b) { return is_same(a, b); });
  return !one.IsMap() || std::all_of(one.begin(), one.end(), [&](const auto& entry) {
    const Value found = other[entry.first.Scalar()];
    return found && is_same(entry.second, found);
  });
}

// Whether the document has the key `name`, and if `value` is neither undefined nor null also that value.
bool has_value(Value document, std::string_view name, const Value& value) {
  Value at = std::move(document);
  while (!name.empty() && at.IsMap()) {
    const std::string part(name.substr(0, name.find('.')));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    const Value next = std::as_const(at)[part];
    if (!next) return false;
    at.reset(next);
  }
  return name.empty() && (!value || value.IsNull() || is_same(at, value));
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
    PENSTOCK_TRY(resolve_yaml_keys(value));
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
    return make_error(Errc::invalid_argument,
                      "'" + argument + "' is not an override: write ++" + group + ".SECTION.KEY=VALUE");
  const std::string_view path = name.substr(prefix.size(), equals - prefix.size());
  Value value(YAML::NodeType::Undefined);
  if (equals != std::string::npos) {
    PENSTOCK_ASSIGN(value, parse_value(argument, name.substr(equals + 1)));
  }
  if (removes && !name.starts_with(kHydra) && !has_value(document, path, value))
    return make_error(Errc::invalid_argument,
                      "'" + argument + "' removes a key that the workload does not have");
  set_value(document, path, removes ? Value(YAML::NodeType::Undefined) : value);
  return success();
}

// Loads a workload file, and first the files that its list `defaults` names, which it changes.
Result<Value> load(const std::filesystem::path& file, int depth = 0) {
  Value loaded = load_yaml(file);
  if (!loaded.IsMap())
    return make_error(Errc::invalid_argument,
                      "'" + file.string() + "' is not a workload: it has no sections such as 'dataset:'");
  PENSTOCK_TRY(resolve_yaml_keys(loaded));
  Value document(YAML::NodeType::Map);
  bool is_merged = false;
  for (const auto& entry : std::as_const(loaded)["defaults"]) {
    if (entry.IsScalar() && entry.Scalar() == "_self_") {  // files after it in the list change it
      merge(document, loaded);
      is_merged = true;
      continue;
    }
    if (!entry.IsScalar() || depth == kDeepestDefaults)
      return make_error(Errc::invalid_argument,
                        "its list 'defaults' has an entry that only Hydra can resolve: write the workload "
                        "that DLIO composes (--cfg job) to a file, and pass that file");
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
