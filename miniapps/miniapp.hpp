// A mini-app: `penstock train <name>`: what it reads, how it treats a sample, and what it reproduces.
#pragma once

#include <cstdint>
#include <string_view>

#include "io_backends/base/command.hpp"
#include "io_backends/base/options.hpp"
#include "io_backends/base/plugin.hpp"
#include "io_backends/base/result.hpp"

namespace penstock {

// Descriptor of a mini-app plug-in. `options` are its own, beside those that `train` gives to all; run() does
// the whole training run of one invocation.
struct MiniAppInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options;
  std::string_view reproduces;  // the paper's application and figure
  Result<int> (*run)(const CommandContext& context);
};

const Registry<MiniAppInfo>& miniapp_registry();

}  // namespace penstock
