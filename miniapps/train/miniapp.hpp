// Describes a mini-app, `penstock train NAME`: which data it reads, how it transforms a sample, and which
// program it reproduces. The run itself (order, workers, batches, prefetching, accelerator, records) is the
// same for all mini-apps; its code is in miniapps/train/cell_run.cpp and miniapps/pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/file_input.hpp"

namespace penstock {

// An app's values for the flags of `train` that the user does not give.
struct MiniAppDefaults {
  uint64_t batch = 64;
  uint64_t prefetch = 1;
  std::string_view accelerator = "none";
  std::string_view shuffle = "global";
  uint64_t threads = 0;  // 0: one thread for each processor
  uint64_t epochs = 0;   // 0: one epoch, unless `steps` is set
  uint64_t steps = 0;    // 0: no limit
};

struct TrainRequest;  // defined in train_plan.hpp

// The option `model` of apps that write checkpoints: how large a checkpoint is.
inline constexpr OptionSpec kModelOption{
    .name = "model",
    .role = OptionRole::work,
    .type = OptionType::size,
    .value = "SIZE",
    .fallback = "16MiB",
    .help = "size of a checkpoint: the weights and the state of the optimiser"};

// Describes one mini-app; each app registers one such object. `options` are the options of the app itself
// (`--set KEY=VALUE`), in addition to the flags of `train`.
struct MiniAppInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options;
  std::string_view reproduces;  // what the app reproduces: an application and a figure of a paper
  // The codec that samples must have, as in ManifestFacts::codec: "jpeg|png" allows both. "": any.
  std::string_view codec;
  std::string_view format{};  // the required format, as in ManifestFacts::format; "": any
  // The recipe by which the samples must be made; "": any. Needed if bytes alone do not show whether a sample
  // fits. A scanned corpus (--scan) has no known recipe; then the app tries one of its samples instead.
  std::string_view recipe{};
  uint64_t sample_bytes = 0;    // bytes that every sample must have; 0: any
  bool takes_pictures = false;  // the app has the flags --decode and --resize
  MiniAppDefaults defaults;
  // Makes the transform of an app that loads single samples. An app has either `make` or `plan_files`.
  Result<Transform> (*make)(const TrainRequest& request) = nullptr;
  // Plans the input of an app that loads whole files and takes samples out of them. `validation` is the
  // corpus of --validation; null if that flag is not given.
  Result<FileInput> (*plan_files)(const TrainRequest& request, const Corpus& corpus,
                                  const Corpus* validation) = nullptr;
  bool in_memory = false;  // all samples are loaded into memory before the first step
  // True: the app writes a checkpoint to --checkpoint-to after every epoch, and has the option kModelOption.
  bool writes_checkpoints = false;
  // Reads the workload file request.workload into the request. `overrides` are from the command line.
  // `options` are the flags of `train`: what they replace is not judged. Returns notes for the user about
  // settings without effect. Null if the app has no flag --workload.
  Result<std::vector<std::string>> (*workload)(const Options& options,
                                               const std::vector<std::string>& overrides,
                                               TrainRequest& request) = nullptr;
};

const Registry<MiniAppInfo>& miniapp_registry();

}  // namespace penstock
