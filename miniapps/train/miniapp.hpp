// A mini-app: `penstock train <name>`: what it reads, how it treats a sample, and what it reproduces. The run
// itself (order, workers, batches, prefetching, accelerator, records) is the same for all and is in
// train_cell and in the pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/picture.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/file_work.hpp"

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

// The same for one run: those of the app, or what a description of the run says.
struct RunDefaults {
  std::uint64_t batch = 1;
  std::uint64_t prefetch = 1;
  std::uint64_t threads = 0;  // 0: as many as there are processors
  std::uint64_t epochs = 0;   // 0: one, where no steps are given either
  std::uint64_t steps = 0;    // 0: no bound
  std::string accelerator;
  std::string shuffle;
  std::string data;           // "" where only the user can say
  double au = 0.9;            // what utilization is asked for
  std::uint64_t samples = 0;  // what the data should be, for comparison; 0, "": not said
  std::string format;
  std::vector<std::string> notes;  // sentences for the user: what has no effect
};

// A description of a run, as --workload FILE and overrides behind the app's name.
struct WorkloadRequest {
  std::string file;
  std::vector<std::string> overrides;
  std::uint64_t accelerators = 1;  // over all ranks
};

// What `train` asks of all apps, of which each takes what concerns it.
struct AppRequest {
  DecodeMode decode = DecodeMode::full;
  ResizeFilter resize = ResizeFilter::bilinear;
  std::uint64_t seed = 0;
};

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
  Result<std::unique_ptr<Transform>> (*make)(const Options& options,
                                             const AppRequest& request) = nullptr;  // or, one of both:
  // Of an app that loads whole files, and takes its samples out of them.
  Result<FilePlan> (*plan_files)(const FileRequest& request) = nullptr;
  bool in_memory = false;    // all samples are loaded before the first step, and held
  bool checkpoints = false;  // writes one behind every epoch to --checkpoint-to; has kModelOption
  Result<RunDefaults> (*workload)(const WorkloadRequest& request) = nullptr;  // null: it takes none
};

const Registry<MiniAppInfo>& miniapp_registry();

}  // namespace penstock
