#include "io_backends/configuration/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#ifdef PENSTOCK_HAS_YAML
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <sstream>

#include "io_backends/configuration/yaml_document.hpp"
#include "io_backends/tiers/named_tiers.hpp"
#endif

namespace penstock {
#ifdef PENSTOCK_HAS_YAML
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRanksPlaceholder = "{ranks}";

template <class... Words>
Error bad_file(const fs::path& file, fmt::format_string<Words...> why, Words&&... words) {
  return make_error(Errc::invalid_argument, "'{}': {}", file.string(),
                    fmt::format(why, std::forward<Words>(words)...));
}

std::string with_dashes(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// Appends the value of one flag, or each of its values, to `words`.
Result<void> add_flag(const YAML::Node& value, const std::string& key, const fs::path& file,
                      std::vector<OptionWord>& words) {
  if (value.IsScalar()) {
    words.push_back({with_dashes(key), value.as<std::string>()});
  } else if (value.IsSequence()) {
    for (const auto& item : value) words.push_back({with_dashes(key), item.as<std::string>()});
  } else {
    return bad_file(file, "flag '{}' needs a value or a list of values", key);
  }
  return success();
}

Result<std::vector<OptionWord>> flags_of(const YAML::Node& flags, const fs::path& file) {
  std::vector<OptionWord> words;
  if (flags.IsNull()) return words;
  if (!flags.IsMap()) return bad_file(file, "expected a mapping from flags to values");
  for (const auto& flag : flags)
    PENSTOCK_TRY(add_flag(flag.second, flag.first.as<std::string>(), file, words));
  return words;
}

Result<YAML::Node> load_document(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored))
    return make_error(Errc::invalid_argument, "the configuration file '{}' is a folder", file.string());
  if (::access(file.c_str(), R_OK) != 0)
    return Error{Errc::invalid_argument, errno,
                 fmt::format("cannot read the configuration file '{}'", file.string())};
  YAML::Node document = load_yaml(file);
  if (const Result<void> resolved = resolve_yaml_keys(document); !resolved)
    return bad_file(file, "{}", resolved.error().message());
  return document;
}

bool is_among(std::string_view word, const std::vector<std::string_view>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns the TIER text of a named tier, such as "posix:/dev/shm/p,limit=50MB/s". `value` is that text, or a
// mapping with `spec` and options.
Result<std::string> tier_text(const YAML::Node& value, const std::string& name, const fs::path& file) {
  if (value.IsScalar()) return value.as<std::string>();
  if (!value.IsMap() || !value["spec"] || !value["spec"].IsScalar())
    return bad_file(file, "tier '{}' needs a TIER, or a mapping with its 'spec'", name);
  auto text = value["spec"].as<std::string>();
  for (const auto& option : value) {
    const auto key = option.first.as<std::string>();
    if (key == "spec") continue;
    if (!option.second.IsScalar()) return bad_file(file, "option '{}' of tier '{}' needs a value", key, name);
    auto quoted = option.second.as<std::string>();
    for (size_t comma = quoted.find(','); comma != std::string::npos; comma = quoted.find(',', comma + 1))
      quoted.replace(comma, 1, "%2C");
    text += fmt::format(",{}={}", key, quoted);
  }
  return text;
}

Result<void> read_tiers(const YAML::Node& section, const fs::path& file, bool is_own_section,
                        const SiteNames& known, SiteFile& site) {
  if (section.IsNull()) return success();
  if (!section.IsMap()) return bad_file(file, "'tiers' needs a mapping from names to TIERs");
  for (const auto& entry : section) {
    const auto name = entry.first.as<std::string>();
    if (is_among(with_dashes(name), known.flags_of_tiers)) {
      if (is_own_section) PENSTOCK_TRY(add_flag(entry.second, name, file, site.flags));
      continue;
    }
    PENSTOCK_ASSIGN(std::string text, tier_text(entry.second, name, file));
    const Result<void> name_check = check_named_tier(name, text);
    if (!name_check) return bad_file(file, "{}", name_check.error().message());
    site.tiers.push_back({name, std::move(text)});
  }
  return success();
}

Result<std::vector<std::string>> launcher_of(const YAML::Node& value, const fs::path& file) {
  std::vector<std::string> words;
  if (value.IsSequence()) {
    for (const auto& word : value) words.push_back(word.as<std::string>());
  } else if (value.IsScalar()) {
    std::istringstream text(value.as<std::string>());
    for (std::string word; text >> word;) words.push_back(word);
  }
  if (std::none_of(words.begin(), words.end(),
                   [](const std::string& word) { return word.find(kRanksPlaceholder) != std::string::npos; }))
    return bad_file(file,
                    "'launcher' needs the command that starts ranks, with {} for the number of ranks: {}",
                    kRanksPlaceholder, "mpirun -n {ranks}");
  return words;
}

Result<void> read_section(const std::string& key, const YAML::Node& value, const fs::path& file,
                          std::string_view command, const SiteNames& known, SiteFile& site) {
  if (key == "tiers") return read_tiers(value, file, key == command, known, site);
  if (key == "launcher") {
    PENSTOCK_ASSIGN(site.launcher, launcher_of(value, file));
    return success();
  }
  if (key == "defaults") {
    PENSTOCK_ASSIGN(site.defaults, flags_of(value, file));
    for (const OptionWord& word : site.defaults)
      if (!is_among(word.key, known.flags))
        return unknown_name(fmt::format("default in '{}'", file.string()), word.key, known.flags);
    return success();
  }
  if (!is_among(key, known.commands)) {
    std::vector<std::string_view> sections = known.commands;
    for (const char* section : {"defaults", "launcher", "tiers"})
      if (!is_among(section, sections)) sections.emplace_back(section);
    return unknown_name(fmt::format("section of '{}'", file.string()), key, sections);
  }
  if (key == command) {
    PENSTOCK_ASSIGN(site.flags, flags_of(value, file));
  }
  return success();
}

}  // namespace

Result<std::vector<OptionWord>> read_config_file(const fs::path& file) {
  try {
    PENSTOCK_ASSIGN(const YAML::Node document, load_document(file));
    return flags_of(document, file);
  } catch (const std::exception& error) {
    return bad_file(file, "{}", error.what());
  }
}

Result<SiteFile> read_site_file(const fs::path& file, std::string_view command, const SiteNames& known) {
  SiteFile site;
  try {
    PENSTOCK_ASSIGN(const YAML::Node document, load_document(file));
    if (document.IsNull()) return site;
    if (!document.IsMap()) return bad_file(file, "expected sections named after commands");
    for (const auto& entry : document)
      PENSTOCK_TRY(read_section(entry.first.as<std::string>(), entry.second, file, command, known, site));
    return site;
  } catch (const std::exception& error) {
    return bad_file(file, "{}", error.what());
  }
}

#else
namespace {

Error no_yaml_error(const std::filesystem::path& file) {
  return make_error(Errc::unsupported,
                    "cannot read '{}': this build lacks yaml-cpp; pass the flags on the command line",
                    file.string());
}

}  // namespace

Result<std::vector<OptionWord>> read_config_file(const std::filesystem::path& file) {
  return no_yaml_error(file);
}

Result<SiteFile> read_site_file(const std::filesystem::path& file, std::string_view, const SiteNames&) {
  return no_yaml_error(file);
}

#endif

}  // namespace penstock
