// Registries of plug-ins. A plug-in is a constant structure with `name`, `summary` and `options`. CMake
// writes the registry from the penstock_plugin() lines (ci/cmake/PenstockPlugin.cmake).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// A plug-in that this build or machine lacks, with the reason.
struct MissingPlugin {
  std::string_view name;
  std::string_view reason;
};

// All plug-ins of one kind, sorted by name. It never changes, so any thread may use it.
template <class Info>
class Registry {
 public:
  Registry(std::string_view kind, std::span<const Info* const> present,
           std::span<const MissingPlugin> missing)
      : kind_(kind), present_(present), missing_(missing) {}

  std::string_view kind() const { return kind_; }
  std::span<const Info* const> present() const { return present_; }
  std::span<const MissingPlugin> missing() const { return missing_; }

  // Finds the plug-in called `name`. Fails with `unsupported` and the reason if this build lacks it. Fails
  // with `invalid_argument`, the nearest name and all valid names if no such plug-in exists.
  Result<const Info*> find(std::string_view name) const {
    for (const Info* info : present_)
      if (info->name == name) return info;
    for (const MissingPlugin& row : missing_)
      if (row.name == name)
        return make_error(Errc::unsupported, std::string(kind_) + " '" + std::string(name) +
                                                 "' is not available: " + std::string(row.reason));
    std::vector<std::string_view> names;
    for (const Info* info : present_) names.push_back(info->name);
    return unknown_name(kind_, name, names);
  }

 private:
  std::string_view kind_;
  std::span<const Info* const> present_;
  std::span<const MissingPlugin> missing_;
};

}  // namespace penstock
