// The request of a `train` run (TrainRequest), and its plan (TrainPlan): the request together with the opened
// data and the values that follow from both.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "miniapps/pipeline/picture.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/file_input.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/step_saving.hpp"
#include "profiling/spans/span_log.hpp"
#include "results/record/time_plan.hpp"

namespace penstock {

// The values of the flags of one call of `train`. A flag that is not given has the value of the workload file
// or of the app. The values are checked as far as possible without the data.
struct TrainRequest {
  const MiniAppInfo* app = nullptr;
  Options app_options{};      // options of the app (--set)
  std::string data{};         // the corpus as the user gave it
  NamedTiers named_tiers{};   // the value of CommandContext::named_tiers
  std::string workload{};     // file that describes the run; "": only flags
  std::string accelerator{};  // --accelerator as the user gave it; its kind is known to be valid
  uint64_t batch = 1;         // samples that one accelerator takes in a step
  uint64_t accelerators = 1;  // accelerators of this process, which share each step
  uint64_t prefetch = 1;
  // From 1 to 4096. While parse_request() runs it may be 0, the app's default: one thread for each processor.
  uint64_t threads = 0;
  size_t depth = 0;  // reads in flight for each thread; 0: the best depth for the tier
  // The run fails if a back end returns nothing for this time. 0: no limit.
  std::chrono::nanoseconds stall_timeout{0};
  bool searches_accelerators = false;
  // For --find-accelerators: the run ends as soon as it has lasted `enough_time` and made `enough_steps`
  // steps. If `enough_steps` is 0, only `limits` end it.
  std::chrono::nanoseconds enough_time{0};
  uint64_t enough_steps = 0;
  double required_utilization = 0.9;  // accelerators with at least this utilization count as fed
  PlanLimits limits{};
  Shuffle shuffle = Shuffle::none;
  DecodeMode decode = DecodeMode::full;
  ResizeFilter resize = ResizeFilter::bilinear;
  BadSample bad_sample = BadSample::fail;
  CacheRequest cache = CacheRequest::asis;
  uint64_t seed = 0;
  Communicator* ranks = nullptr;
  // The tier for checkpoints after every epoch, if the app writes them.
  std::optional<Tier> checkpoint_tier{};
  std::optional<StepSaving> saving{};  // set for --checkpoint-every; then `checkpoint_tier` is empty
  std::string sample_log{};            // "" for none
  std::string timeline{};              // "" for none; a valid name for timeline_format()
  uint64_t timeline_memory_bytes = 0;
  bool progress = false;
  TimePlan* time_plan = nullptr;  // which parts of the run are made; null: all

  uint64_t described_samples = 0;  // samples that the workload file describes; 0 and "": none
  std::string described_format{};
  double described_sample_bytes = 0;  // 0: not given
  ExcludedSteps excluded_steps{};     // left out of the AU as DLIO calculates it

  std::vector<std::string> notes{};  // for the user; parse_request() and make_plan() add to them
  // log() is called at once with a note for the user, and warn() with a warning.
  std::function<void(std::string_view)> log{};
  std::function<void(std::string_view)> warn{};

  uint64_t step_samples() const { return batch * accelerators; }
  bool burns_processors() const { return accelerator.find("burn=") != std::string::npos; }
  // Whether the steps use processors, so that other programs can make them longer. False only for an emulated
  // accelerator without burn=, whose steps sleep.
  bool steps_are_work() const { return burns_processors() || !accelerator.starts_with("emulated"); }
  // The largest allowed median overshoot of an emulated accelerator, as a share of the step. A larger
  // overshoot means that this machine was too busy to emulate it. With burn= the allowed overshoot is larger,
  // since processors are not always as fast as during the calibration.
  double overshoot_tolerance() const { return burns_processors() ? 0.05 : 0.01; }
};

// Everything that a run needs to know. Nothing in it changes while a cell runs. --find-accelerators changes
// `accelerators` between its runs.
struct TrainPlan : TrainRequest {
  // The corpus includes its tier. With FileInput, each sample of the corpus is a file to train on.
  Corpus corpus;
  std::vector<Tier> other_tiers;  // the tiers of --tier, which have the same objects as the corpus
  bool only_other_tiers = false;  // whether the corpus's own tier is not measured
  std::optional<Corpus> validation_corpus{};
  // How samples are loaded: one by one (Transform), or by whole files (FileInput).
  std::variant<Transform, FileInput> input{};

  const FileInput* files() const { return std::get_if<FileInput>(&input); }
  // True: all samples are loaded before the first step, and batches are copied from memory.
  bool in_memory() const { return app->in_memory; }
  const Transform& transform() const;

  // Makes the sampler that orders this rank's part of `samples` samples.
  Sampler sampler(uint64_t samples) const;
  Sampler sampler() const { return sampler(corpus.manifest.samples()); }
  // How many samples this rank has in an epoch, including those that fill no batch. If files hold different
  // numbers of samples, this is the smallest possible number.
  uint64_t samples_an_epoch() const;
  uint64_t steps_an_epoch() const;
  // How many steps the run makes if nothing fails. After --resume: how many steps remain.
  uint64_t planned_steps() const;
  double planned_loads() const;  // the most samples or files that the workers try to load

  // Reads in flight for each thread.
  size_t queue_depth(const Tier& tier) const;
  // The shape of the loader's batches; pool_prefetch() is how many of them may be prepared ahead.
  BatchShape batch_shape(bool in_place) const;
  uint64_t pool_prefetch() const;
  // Returns why samples without a transform are copied on this tier; "" if they are not copied but used in
  // place.
  std::string_view why_copied(const Tier& tier) const;
};

// Parses the flags. invalid_argument if flags contradict each other, or if the accelerator cannot use the
// samples of the app. For an app that loads whole files, make_plan() makes the second check.
Result<TrainRequest> parse_request(const CommandContext& context, const MiniAppInfo& app);

// Opens the data that the options name, and checks that they fit the app. If they do not, the error is
// invalid_argument and says what to change. Not collective.
Result<TrainPlan> make_plan(TrainRequest request, const Options& options);

// If an epoch has fewer samples than a step, returns invalid_argument with advice. Otherwise success.
Result<void> check_epoch_size(const TrainPlan& plan);

// Makes the source of this rank's batches on one tier, and starts its workers. Borrows all arguments. For an
// app with in_memory() BatchPool::allocate_all_samples() must have been called on the pool.
// The workers record their spans in `spans`, which has one buffer for each worker and one more. It may be
// null.
Result<std::unique_ptr<BatchSource>> make_batches(const TrainPlan& plan, const Tier& tier, BatchPool& pool,
                                                  const PlanLimits& limits, SpanLog* spans = nullptr);

}  // namespace penstock
