// Registers a back end. The source of each back end defines one BackendInfo.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Describes a back end to the registry of back ends. make() returns the back end, or an error if it cannot
// work on this machine. The root folder need not exist yet, and make() does not create it. `path` is the part
// of a TIER after "NAME=BACKEND:".
struct BackendInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options = {};
  Result<std::unique_ptr<Backend>> (*make)(std::string_view path, const Options& options);
  // Returns a path for the contract test inside a scratch folder. If it returns "", the test is skipped.
  std::string (*test_path)(const std::filesystem::path& scratch) = [](const std::filesystem::path& scratch) {
    return scratch.string();
  };
};

const Registry<BackendInfo>& backend_registry();

}  // namespace penstock
