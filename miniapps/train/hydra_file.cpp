#include "miniapps/train/hydra_file.hpp"

#include <filesystem>
#include <utility>

namespace penstock {
namespace {

using Value = YAML::Node;

constexpr int kDeepestDefaults = 8;  // `defaults` lists that lead from one file to the next

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

Result<void> apply_override(Value document, const std::string& group, const std::string& argument) {
  std::string_view name = argument;
  const bool removes = name.starts_with('~');
  while (!name.empty() && (name.front() == '+' || (removes && name.front() == '~'))) name.remove_prefix(1);
  const size_t equals = name.find('=');
  const std::string prefix = group + ".";
  if (!name.starts_with(prefix) || (equals == std::string::npos && !removes))
    return make_error(Errc::invalid_argument, "'" + argument + "' is no override: they are written ++" +
                                                  prefix + "SECTION.KEY=VALUE");
  const std::string_view path = name.substr(prefix.size(), equals - prefix.size());
  set_value(document, path,
            removes ? Value(YAML::NodeType::Undefined) : YAML::Load(std::string(name.substr(equals + 1))));
  return success();
}

// Loads a workload file, and first the files that its list `defaults` names, which it changes.
Result<Value> load(const std::filesystem::path& file, int depth = 0) {
  const Value loaded = YAML::LoadFile(file);
  if (!loaded.IsMap())
    return make_error(Errc::invalid_argument,
                      "'" + file.string() + "' is no workload: it has no sections such as 'dataset:'");
  Value document(YAML::NodeType::Map);
  for (const auto& entry : std::as_const(loaded)["defaults"]) {
    if (entry.IsScalar() && entry.Scalar() == "_self_") continue;
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
  merge(document, loaded);
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
