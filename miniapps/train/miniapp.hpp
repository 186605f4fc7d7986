// Describes a mini-app, `penstock train <name>`: which data it reads, how it transforms a sample, and which
// program it reproduces. The run itself (order, workers, batches, prefetching, accelerator, records) is the
// same for all. Its code is in cell_run and in the pipeline.
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
  uint64_t threads = 0;  // 0: one for each processor
  uint64_t epochs = 0;   // 0: one epoch, unless `steps` is set
  uint64_t steps = 0;    // 0: no limit
};

struct TrainRequest;  // defined in train_plan.hpp

// The option of apps that write checkpoints: how large one is.
inline constexpr OptionSpec kModelOption{
    .name = "model",
    .role = OptionRole::work,
    .type = OptionType::size,
    .value = "SIZE",
    .fallback = "16MiB",
    .help = "of a checkpoint: the weights and what the optimiser keeps of them"};

// Descriptor of a mini-app plug-in. `options` are the app's own, given as `--set key=value`, in addition to
// the flags of `train`.
struct MiniAppInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options;
  std::string_view reproduces;  // the paper's application and figure
  // The required codec of samples, as in ManifestFacts::codec: "jpeg|png". "": any.
  std::string_view codec;
  std::string_view format{};  // the required format, as in ManifestFacts::format; "": any
  // The required recipe, if bytes alone do not show whether a sample fits. "": any. For a corpus of --scan, a
  // sample is tried instead.
  std::string_view recipe{};
  uint64_t sample_bytes = 0;    // the required bytes of every sample; 0: any
  bool takes_pictures = false;  // has the flags --decode and --resize
  MiniAppDefaults defaults;
  // Makes the transform of an app that loads single samples. Every app has either this or plan_files.
  Result<Transform> (*make)(const TrainRequest& request) = nullptr;
  // For an app that loads whole files and takes samples out of them. `validation` is the corpus of
  // --validation; null if that flag is not given.
  Result<FileInput> (*plan_files)(const TrainRequest& request, const Corpus& corpus,
                                  const Corpus* validation) = nullptr;
  bool in_memory = false;  // loads all samples into memory before the first step
  // Writes a checkpoint after every epoch to --checkpoint-to. Then the app has kModelOption.
  bool writes_checkpoints = false;
  // Reads the file request.workload, with `overrides` from the command line, into the request. Returns notes
  // for the user about settings without effect. Null: the app has no --workload.
  Result<std::vector<std::string>> (*workload)(const std::vector<std::string>& overrides,
                                               TrainRequest& request) = nullptr;
};

const Registry<MiniAppInfo>& miniapp_registry();

}  // namespace penstock
