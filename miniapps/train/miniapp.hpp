// A mini-app: `penstock train <name>`: what it reads, how it treats a sample, and what it reproduces; and
// what a run of one is asked to do. The run itself (order, workers, batches, prefetching, accelerator,
// records) is the same for all and is in cell_run and in the pipeline.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/cache/cache_control.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/reading/sampler.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "miniapps/pipeline/loader.hpp"
#include "miniapps/pipeline/picture.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/file_input.hpp"
#include "miniapps/train/step_saving.hpp"

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

struct MiniAppInfo;

// What one invocation of `train` is asked to do: the flags, and what the app or its workload file says where
// a flag is not given. Checked, as far as that is possible without the data.
struct TrainRequest {
  const MiniAppInfo* app = nullptr;
  Options own{};                   // the app's options
  std::string data{};              // the corpus, as given
  NamedTiers named_tiers{};        // CommandContext::named_tiers
  std::string workload{};          // the file that describes the run; "" for flags alone
  std::string accelerator{};       // as given; known to be valid
  std::uint64_t batch = 1;         // samples a step, of one accelerator
  std::uint64_t accelerators = 1;  // of this process; all have a part of each step's samples
  std::uint64_t prefetch = 1;
  std::uint64_t threads = 0;             // from 1 to 4096; of a workload 0: as many as there are processors
  std::size_t depth = 0;                 // reads in flight for each thread; 0: as the tier is best read
  std::chrono::nanoseconds patience{0};  // with a back end that gives nothing; 0: no end
  bool find_accelerators = false;
  std::chrono::nanoseconds enough{0};  // a run of a search may end after this time, and
  std::uint64_t enough_steps = 0;      // this number of steps; 0: it goes to its limits
  double busy_at_least = 0.9;          // the utilization at which accelerators count as fed
  PlanLimits limits{};
  Shuffle shuffle = Shuffle::none;
  DecodeMode decode = DecodeMode::full;
  ResizeFilter resize = ResizeFilter::bilinear;
  BadSample bad_sample = BadSample::fail;
  CacheRequest cache = CacheRequest::asis;
  std::uint64_t seed = 0;
  Communicator* ranks = nullptr;
  std::optional<Tier> checkpoints{};   // where they go, of an app that writes one after every epoch
  std::optional<StepSaving> saving{};  // --checkpoint-every; then there is no other
  std::string sample_log{};            // "" for none
  std::string timeline{};              // likewise; ends as timeline_format() wants it
  std::uint64_t timeline_memory = 0;
  bool progress = false;

  std::uint64_t described_samples = 0;  // what the workload says of its data; 0, "": nothing
  std::string described_format{};

  std::string checkpoint_name() const;
  std::uint64_t step_samples() const { return batch * accelerators; }
  bool burns() const { return accelerator.find("burn=") != std::string::npos; }
  // Whether something that takes processors away makes steps longer: not where they sleep.
  bool steps_are_work() const { return burns() || !accelerator.starts_with("emulated"); }
  // A median step that ended later than this part of it was not emulated: the machine was too busy. What is
  // work takes what it takes, and processors do not always go as fast as when they were calibrated.
  double overshoot_tolerance() const { return burns() ? 0.05 : 0.01; }
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

// invalid_argument where the flags contradict each other, and where the accelerator does not take the samples
// of an app that has MiniAppInfo::make.
Result<TrainRequest> parse_request(const CommandContext& context, const MiniAppInfo& app);

}  // namespace penstock
