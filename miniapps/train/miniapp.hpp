// A mini-app: `penstock train <name>`: what it reads, how it treats a sample, and what it reproduces. The run
// itself (order, workers, batches, prefetching, accelerator, records) is the same for all and is in cell_run
// and in the pipeline.
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

// What `train` takes where the user says nothing.
struct MiniAppDefaults {
  std::uint64_t batch = 64;
  std::uint64_t prefetch = 1;
  std::string_view accelerator = "none";
  std::string_view shuffle = "global";
  std::uint64_t threads = 0;  // 0: as many as there are processors
  std::uint64_t epochs = 0;   // 0: one, where it has no steps either
  std::uint64_t steps = 0;    // 0: no bound
};

struct TrainRequest;  // train_plan.hpp

// Of apps that write checkpoints.
inline constexpr OptionSpec kModelOption{
    .name = "model",
    .role = OptionRole::work,
    .type = OptionType::size,
    .value = "SIZE",
    .fallback = "16MiB",
    .help = "of a checkpoint: the weights and what the optimiser keeps of them"};

// Descriptor of a mini-app plug-in. `options` are its own, given as `--set key=value`, besides those that
// `train` gives to all.
struct MiniAppInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options;
  std::string_view reproduces;  // the paper's application and figure
  std::string_view
      codec;  // what its samples must be, as ManifestFacts::codec has it: "jpeg|png"; "": anything
  std::string_view format{};       // what they must be in, as ManifestFacts::format has it; "": anything
  std::string_view recipe{};       // which makes them, where bytes do not tell; "": any. A scan's are tried
  std::uint64_t sample_bytes = 0;  // which all of them have; 0: any
  bool pictures = false;           // takes --decode and --resize
  MiniAppDefaults defaults;
  Result<Transform> (*make)(const TrainRequest& request) = nullptr;  // of samples; or, one of both:
  // Of an app that loads whole files, and takes its samples out of them. `validation` is the corpus of
  // --validation, and null where it is not given.
  Result<FileInput> (*plan_files)(const TrainRequest& request, const Corpus& corpus,
                                  const Corpus* validation) = nullptr;
  bool in_memory = false;    // all samples are loaded before the first step, and held
  bool checkpoints = false;  // writes one after every epoch to --checkpoint-to; has kModelOption
  // Reads the file request.workload with `overrides` from the command line into the request. Returns notes
  // for the user: what has no effect. Null: the app takes none.
  Result<std::vector<std::string>> (*workload)(const std::vector<std::string>& overrides,
                                               TrainRequest& request) = nullptr;
};

const Registry<MiniAppInfo>& miniapp_registry();

}  // namespace penstock
