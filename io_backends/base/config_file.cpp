#include "io_backends/base/config_file.hpp"

#include <fmt/format.h>

#ifdef PENSTOCK_HAS_YAML
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <exception>
#endif

namespace penstock {

#ifdef PENSTOCK_HAS_YAML
namespace {

Result<std::vector<OptionWord>> flags_of(const YAML::Node& flags, const std::filesystem::path& file) {
  std::vector<OptionWord> words;
  if (flags.IsNull()) return words;
  if (!flags.IsMap())
    return make_error(Errc::invalid_argument,
                      fmt::format("'{}': expected a mapping of flags to values", file.string()));
  for (const auto& flag : flags) {
    const auto key = flag.first.as<std::string>();
    if (flag.second.IsScalar()) {
      words.push_back({key, flag.second.as<std::string>()});
    } else if (flag.second.IsSequence()) {
      for (const auto& item : flag.second) words.push_back({key, item.as<std::string>()});
    } else {
      return make_error(Errc::invalid_argument,
                        fmt::format("'{}': flag '{}' needs a value or a list of values", file.string(), key));
    }
  }
  return words;
}

}  // namespace

Result<std::vector<OptionWord>> read_config_file(const std::filesystem::path& file, std::string_view section,
                                                 const std::vector<std::string_view>& known_sections) {
  std::error_code none;
  if (std::filesystem::is_directory(file, none))
    return make_error(Errc::invalid_argument,
                      fmt::format("the configuration file '{}' is a folder", file.string()));
  if (::access(file.c_str(), R_OK) != 0)
    return Error{Errc::invalid_argument, errno,
                 fmt::format("cannot read the configuration file '{}'", file.string())};
  try {
    const YAML::Node document = YAML::LoadFile(file.string());
    if (section.empty()) return flags_of(document, file);
    if (document.IsNull()) return std::vector<OptionWord>{};
    if (!document.IsMap())
      return make_error(Errc::invalid_argument,
                        fmt::format("'{}': expected sections named after commands", file.string()));
    std::vector<OptionWord> words;
    for (const auto& entry : document) {
      const auto key = entry.first.as<std::string>();
      bool known = false;
      for (const std::string_view name : known_sections) known = known || name == key;
      if (!known) return unknown_name(fmt::format("section of '{}'", file.string()), key, known_sections);
      if (key != section) continue;
      PENSTOCK_ASSIGN(words, flags_of(entry.second, file));
    }
    return words;
  } catch (const std::exception& error) {
    return make_error(Errc::invalid_argument, fmt::format("'{}': {}", file.string(), error.what()));
  }
}

#else

Result<std::vector<OptionWord>> read_config_file(const std::filesystem::path& file, std::string_view,
                                                 const std::vector<std::string_view>&) {
  return make_error(
      Errc::unsupported,
      fmt::format("cannot read '{}': this build lacks yaml-cpp; give the flags on the line", file.string()));
}

#endif

}  // namespace penstock
