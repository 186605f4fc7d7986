// What one invocation of `train` is asked to do, resolved and checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "datagen/cache/cache_control.hpp"
#include "datagen/reading/sampler.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/loader.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/resume.hpp"
#include "miniapps/train/step_saving.hpp"

namespace penstock {

// A median step that ended later than this part of it was not emulated: the machine was too busy. What is
// work takes what it takes, and processors do not always go as fast as when they were calibrated.
inline constexpr double kOvershootTolerance = 0.01;
inline constexpr double kWorkOvershootTolerance = 0.05;

// Samples on their way to memory.
inline constexpr std::uint64_t kLoadedAhead = 255;

class StepCheckpoints;

struct TrainSetup {
  const MiniAppInfo* app = nullptr;
  Options own;                               // the app's
  std::unique_ptr<Transform> app_transform;  // of samples; null of an app that loads whole files, which has
  std::optional<FileWork> files;             // this, once the corpus is open
  std::string data;                          // the corpus, as given
  std::string workload;                      // the file that describes the run; "" for flags alone
  std::string accelerator;                   // as given; known to be good
  std::uint64_t batch = 0;                   // samples a step, of one accelerator
  std::uint64_t accelerators = 1;            // of this process; all have a part of each step's samples
  std::uint64_t prefetch = 0;
  unsigned threads = 0;
  std::size_t depth = 0;                 // reads on their way a thread; 0: as the tier is best read
  std::chrono::nanoseconds patience{0};  // with a back end that gives nothing; 0: no end
  bool find_accelerators = false;
  std::chrono::nanoseconds enough{0};  // a run of a search may end after so long, and
  std::uint64_t enough_steps = 0;      // that many steps; 0: it goes to its limits
  double busy_at_least = 0;            // what utilization accelerators are fed at
  PlanLimits limits;
  Shuffle shuffle = Shuffle::none;
  BadSample bad_sample = BadSample::fail;
  CacheRequest cache = CacheRequest::asis;
  std::uint64_t seed = 0;
  Communicator* ranks = nullptr;
  std::optional<Tier> checkpoints;   // where they go, of an app that writes one behind every epoch
  std::optional<StepSaving> saving;  // --checkpoint-every; then there is no other
  StepCheckpoints* saves = nullptr;  // this, at work
  std::optional<Resumed> resumed;    // with --resume
  std::string sample_log;            // "" for none
  std::string timeline;              // likewise; ends as timeline_format() wants it
  std::uint64_t timeline_memory = 0;
  bool progress = false;

  std::uint64_t described_samples = 0;  // what the workload says of its data; 0, "": nothing
  std::string described_format;

  const Transform& treats() const { return files ? *files->plan.training.app_transform : *app_transform; }
  // What the loader's batches hold: a file, a sample on its way to memory, or all samples of a step.
  std::uint64_t pool_samples() const { return files || app->in_memory ? 1 : step_samples(); }
  std::uint64_t pool_prefetch() const { return app->in_memory ? kLoadedAhead : prefetch; }
  std::string checkpoint_name() const { return "penstock-" + std::string(app->name) + ".ckpt"; }
  std::uint64_t step_samples() const { return batch * accelerators; }
  bool burns() const { return accelerator.find("burn=") != std::string::npos; }
  // Whether something that takes processors away makes steps longer: not where they sleep.
  bool steps_are_work() const { return burns() || !accelerator.starts_with("emulated"); }
  // What step_overshoot may be, of accelerators that sleep and of those that work.
  double overshoot_tolerance() const { return burns() ? kWorkOvershootTolerance : kOvershootTolerance; }
};

// invalid_argument where the words make no sense together.
Result<TrainSetup> resolve_train_setup(const CommandContext& context, const MiniAppInfo& app);

// What a checkpoint of it has to say; of a setup whose corpus is open.
TrainedWork trained_work(const TrainSetup& setup, const Corpus& corpus);

// invalid_argument, naming what differs, where a run that goes on is not this one, or its very next sample
// cannot be told. Likewise.
Result<void> check_resumable(const TrainSetup& setup, const Corpus& corpus);

}  // namespace penstock
