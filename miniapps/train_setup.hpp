// What one invocation of `train` is asked to do, resolved and checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "datagen/cache_control.hpp"
#include "io_backends/base/command.hpp"
#include "io_backends/base/result.hpp"
#include "miniapps/miniapp.hpp"
#include "miniapps/pipeline/loader.hpp"
#include "miniapps/pipeline/sampler.hpp"
#include "miniapps/pipeline/transform.hpp"

namespace penstock {

struct TrainSetup {
  const MiniAppInfo* app = nullptr;
  std::unique_ptr<Treatment> treatment;
  std::string accelerator;  // as given; known to be good
  std::uint64_t batch = 0;
  std::uint64_t prefetch = 0;
  unsigned threads = 0;
  std::size_t depth = 0;  // reads on their way a thread; 0: as the tier is best read
  PlanLimits limits;
  Shuffle shuffle = Shuffle::none;
  BadSample bad_sample = BadSample::fail;
  CacheWish cache = CacheWish::asis;
  std::uint64_t seed = 0;
  int rank = 0;
  int ranks = 1;
  std::string sample_log;  // "" for none
  bool progress = false;
};

// invalid_argument where the words make no sense together.
Result<TrainSetup> resolve_train_setup(const CommandContext& context, const MiniAppInfo& app);

}  // namespace penstock
