// A run of `train`: what it is asked to do, and resolved: the request with its data open, and what follows
// from both.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "datagen/cache/cache_control.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/reading/sampler.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/loader.hpp"
#include "miniapps/pipeline/memory_batches.hpp"
#include "miniapps/pipeline/picture.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/file_input.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/resume.hpp"
#include "miniapps/train/step_saving.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {

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

  std::uint64_t step_samples() const { return batch * accelerators; }
  bool burns() const { return accelerator.find("burn=") != std::string::npos; }
  // Whether something that takes processors away makes steps longer: not where they sleep.
  bool steps_are_work() const { return burns() || !accelerator.starts_with("emulated"); }
  // A median step that ended later than this part of it was not emulated: the machine was too busy. What is
  // work takes what it takes, and processors do not always go as fast as when they were calibrated.
  double overshoot_tolerance() const { return burns() ? 0.05 : 0.01; }
};

// Const while a cell runs; a search changes `accelerators` between its runs.
struct TrainPlan : TrainRequest {
  Corpus corpus;             // on its own tier; of FileInput its samples are the files to train on
  std::vector<Tier> others;  // --tier: they hold the same objects
  std::optional<Corpus> validation_corpus{};
  std::variant<Transform, FileInput> input{};  // of samples one by one, or of whole files
  std::optional<Resumed> resumed{};            // with --resume

  const FileInput* files() const { return std::get_if<FileInput>(&input); }
  // All samples are loaded before the first step, and batches are copied together from them.
  bool in_memory() const { return app->in_memory; }
  const Transform& transform() const;

  // The order of this rank's part of that number of samples.
  Sampler sampler(std::uint64_t samples) const;
  Sampler sampler() const { return sampler(corpus.manifest.samples()); }
  // Its samples an epoch, the tail included; of files that hold different numbers, at least that many.
  std::uint64_t samples_an_epoch() const;
  std::uint64_t steps_an_epoch() const;
  // Steps of the run, unless something fails; of one that goes on with another, those that are left.
  std::uint64_t planned_steps() const;
  double planned_loads() const;  // samples, or files, that workers try at most

  // Reads in flight for each thread.
  std::size_t queue_depth(const Tier& tier) const;
  // What the loader's batches are, and how many may be ahead.
  BatchShape batch_shape(bool in_place) const;
  std::uint64_t pool_prefetch() const;
  // Why samples that are left as they are stored are not used where the tier has them; "" where they are.
  std::string_view why_copied(const Tier& tier) const;
};

// invalid_argument where the flags contradict each other, and where the accelerator does not take the samples
// of an app that has MiniAppInfo::make.
Result<TrainRequest> parse_request(const CommandContext& context, const MiniAppInfo& app);

// Opens what the options name, and checks that it fits the app: invalid_argument, with the remedy, where it
// does not. Not collective.
Result<TrainPlan> make_plan(TrainRequest request, const Options& options);

// invalid_argument, with the remedy, where an epoch has fewer samples than a step takes.
Result<void> check_epoch(const TrainPlan& plan);

// invalid_argument where the ranks were started with different flags. Collective.
Result<void> check_same_work(const TrainPlan& plan, const Options& options);

// The batches of this rank on one tier, whose workers run from here on. Borrows everything. `room` is what
// in_memory() holds its samples in, and not used by others. With `spans`, one buffer a worker and one more,
// the workers record there what they do.
Result<std::unique_ptr<BatchSource>> make_batches(const TrainPlan& plan, const Tier& tier, BatchPool& pool,
                                                  MemoryRoom& room, const PlanLimits& limits,
                                                  SpanLog* spans = nullptr);

}  // namespace penstock
