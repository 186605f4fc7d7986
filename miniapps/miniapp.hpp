// A mini-app: `penstock train <name>`: what it reads, how it treats a sample, and what it reproduces. The run
// itself (order, workers, batches, prefetching, accelerator, records) is the same for all and lies in
// train_cell and in the pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "io_backends/base/options.hpp"
#include "io_backends/base/plugin.hpp"
#include "io_backends/base/result.hpp"
#include "miniapps/pipeline/picture.hpp"
#include "miniapps/pipeline/transform.hpp"

namespace penstock {

// What `train` takes where the user says nothing.
struct MiniAppDefaults {
  std::uint64_t batch = 64;
  std::uint64_t prefetch = 1;
  std::string_view accelerator = "none";
  std::string_view shuffle = "global";
};

// What `train` asks of all apps, of which each takes what concerns it.
struct AppRequest {
  DecodeMode decode = DecodeMode::full;
  ResizeFilter resize = ResizeFilter::bilinear;
  std::uint64_t seed = 0;
};

// Descriptor of a mini-app plug-in. `options` are its own, given as `--set key=value`, beside those that
// `train` gives to all.
struct MiniAppInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options;
  std::string_view reproduces;  // the paper's application and figure
  std::string_view
      codec;  // what its samples must be, as ManifestFacts::codec has it: "jpeg|png"; "": anything
  MiniAppDefaults defaults;
  Result<std::unique_ptr<Treatment>> (*make)(const Options& options, const AppRequest& request);
};

const Registry<MiniAppInfo>& miniapp_registry();

}  // namespace penstock
