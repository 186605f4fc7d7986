// A run of `train`, resolved: the request with its data open, and what follows from both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "datagen/reading/sampler.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/memory_batches.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/file_input.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/resume.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {

// Batches come straight from samples, one slot each.
struct SampleInput {
  Transform transform;
};
// All samples are loaded before the first step, and batches are copied together from them.
struct MemoryInput {
  Transform transform;
};

// Const while a cell runs; a search changes `accelerators` between its runs.
struct TrainPlan : TrainRequest {
  Corpus corpus;             // on its own tier; of FileInput its samples are the files to train on
  std::vector<Tier> others;  // --tier: they hold the same objects
  std::optional<Corpus> validation_corpus{};
  std::variant<SampleInput, FileInput, MemoryInput> input{};
  std::optional<Resumed> resumed{};  // with --resume

  const FileInput* files() const { return std::get_if<FileInput>(&input); }
  bool in_memory() const { return std::holds_alternative<MemoryInput>(input); }
  const Transform& transform() const;

  // The order of this rank's samples.
  Sampler sampler() const;
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

// Opens what the options name, and checks that it fits the app: invalid_argument, with the remedy, where it
// does not. Not collective.
Result<TrainPlan> make_plan(TrainRequest request, const Options& options);

// invalid_argument, with the remedy, where an epoch has fewer samples than a step takes.
Result<void> check_epoch(const TrainPlan& plan);

// invalid_argument where the ranks were started with different flags. Collective.
Result<void> check_same_work(const TrainPlan& plan, const Options& options);

// The batches of this rank on one tier, whose workers run from here on. Borrows everything. `room` is what
// MemoryInput holds its samples in, and not used by others. With `spans`, one buffer a worker and one more,
// the workers record there what they do.
Result<std::unique_ptr<BatchSource>> make_batches(const TrainPlan& plan, const Tier& tier, BatchPool& pool,
                                                  MemoryRoom& room, const PlanLimits& limits,
                                                  SpanLog* spans = nullptr);

}  // namespace penstock
