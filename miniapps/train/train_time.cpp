#include "miniapps/train/train_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/format/sample_opener.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/train/find_accelerators.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kInputLook{100};
constexpr uint64_t kMostSamplesLooked = 16;
constexpr double kFasterInput = 0.7;  // the tolerance of the estimate of the input
constexpr double kSlowerInput = 1.5;
constexpr TimeRange kInputBytes_per_s{3e9, 30e6};  // assumed if nothing could be read: fastest and slowest
// Of one sample on one processor, for an accelerator that trains a network on the processors.
constexpr TimeRange kNetworkSample_s{0.02, 0.2};
constexpr TimeRange kSavedByte_s{1 / 2e9, 1 / 100e6};  // to save one byte of a checkpoint
constexpr double kFurtherProcessor = 0.8;  // what each processor after the first adds to the speed
constexpr double kLongestAlone_s = 20;     // of the run of the input alone (measure_training())
constexpr uint64_t kFewestAloneBatches = 8;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a sample costs one thread that loads it. With FileInput, a sample is a file.
struct SampleCost {
  double read_s = 0;
  double transform_s = 0;
};

// Loads a few samples, and adds up what they cost. Returns how many there were.
Result<uint64_t> load_some(const TrainPlan& plan, Backend& backend, SampleCost& cost) {
  PENSTOCK_ASSIGN(const SampleList samples, corpus_samples(plan.corpus.manifest));
  PENSTOCK_ASSIGN(SampleOpener opener, SampleOpener::make(plan.corpus.manifest));
  const Transform& app_transform = plan.transform();
  std::unique_ptr<SampleTransform> transform;
  if (app_transform.slot_bytes != 0) {
    PENSTOCK_ASSIGN(transform, app_transform.make());
  }
  Buffer stored(std::max<size_t>(samples.largest_bytes(), 1));
  Buffer slot(std::max<size_t>(app_transform.slot_bytes, 1));
  StageTimer timer(app_transform.stages.size() + kFirstOwnPart + 1);
  const Clock::time_point start = Clock::now();
  uint64_t loaded = 0;
  while (loaded < std::min(kMostSamplesLooked, samples.size()) && !interrupted()) {
    // From the whole corpus, because neighbours may be alike.
    const uint64_t index = samples.size() * loaded / kMostSamplesLooked;
    const SampleList::Sample& sample = samples[index];
    const std::span<std::byte> bytes = stored.first(sample.length);
    const Clock::time_point read_at = Clock::now();
    PENSTOCK_ASSIGN(const std::unique_ptr<Reader> reader, backend.open(samples.name(sample.object)));
    PENSTOCK_TRY(reader->read_at(sample.offset, bytes));
    cost.read_s += since(read_at);
    const Clock::time_point transform_at = Clock::now();
    if (transform) {
      timer.restart();
      PENSTOCK_ASSIGN(const std::span<const std::byte> payload, opener.open(index, bytes));
      PENSTOCK_TRY(transform->apply({.epoch = 0, .index = index}, payload,
                                    slot.first(app_transform.slot_bytes), timer));
    }
    cost.transform_s += since(transform_at);
    ++loaded;
    if (Clock::now() - start >= kInputLook) break;
  }
  return loaded;
}

// The seconds in which all threads together load one sample of a step.
TimeRange input_seconds(const TrainPlan& plan, const Tier& tier) {
  const auto files =
      double(plan.files() != nullptr ? plan.files()->training.files.largest_sample_count() : 1);
  SampleCost cost;
  const auto look = [&]() -> Result<uint64_t> {
    // The other ranks follow rank 0's times.
    if (!plan.ranks->root() || !may_try_speed(tier) || may_hang(tier)) return uint64_t{0};
    try {
      return load_some(plan, *tier.backend, cost);
    } catch (const std::bad_alloc&) {
      return make_error(Errc::exhausted, "no memory");
    }
  };
  const uint64_t bytes_before = tier.backend->moved_bytes().read;
  const Result<uint64_t> loaded = look();
  plan.time_plan->count_read(tier.backend->moved_bytes().read - bytes_before);
  const double threads = double(std::max<uint64_t>(plan.threads, 1));
  if (!loaded.ok() || *loaded == 0) {
    const double bytes = double(plan.corpus.manifest.payload_bytes()) /
                         double(std::max<uint64_t>(1, plan.corpus.manifest.samples()));
    return 1 / files * TimeRange{bytes / kInputBytes_per_s.low_s, bytes / kInputBytes_per_s.high_s};
  }
  const auto count = double(*loaded);
  // Threads on processors that share a core do not add up.
  double processors = 1 + kFurtherProcessor * (double(usable_cpus()) - 1);
  if (plan.steps_are_work()) processors = std::max(0.5, processors / 2);  // they share the processors
  const double all_s = (cost.read_s + cost.transform_s) / count;
  const double seconds =
      std::max(cost.transform_s / count / std::min(threads, processors), all_s / threads) / files;
  return {kFasterInput * seconds, kSlowerInput * seconds};
}

// The nominal time of a step, or an assumption about it.
TimeRange step_seconds(const TrainPlan& plan) {
  const Result<std::unique_ptr<Accelerator>> accelerator =
      make_accelerator(plan.accelerator, {.count = plan.accelerators});
  if (!accelerator.ok() || !(*accelerator)->computes()) return {};
  const double nominal_s = std::chrono::duration<double>((*accelerator)->nominal_step()).count();
  if (nominal_s > 0) return {nominal_s, 1.02 * nominal_s};
  return double(plan.step_samples()) / double(usable_cpus()) * kNetworkSample_s;
}

// The time from the start of one step to the start of the next.
double period_seconds(const TrainPlan& plan, double step_s, double input_s) {
  return plan.prefetch > 0 && !plan.in_memory() ? std::max(step_s, input_s) : step_s + input_s;
}

TimeRange training_seconds(const TrainPlan& plan, const TimeRange& step, const TimeRange& input) {
  const auto steps = double(plan.planned_steps());
  if (plan.in_memory()) {  // all samples are loaded first
    const double load = double(plan.corpus.manifest.samples()) / double(plan.step_samples());
    return load * input + steps * step + TimeRange{0, 0.1 * steps * input.high_s};
  }
  const auto end_to_end = [&](double step_s, double input_s) {
    return input_s + steps * period_seconds(plan, step_s, input_s);
  };
  TimeRange all{end_to_end(step.low_s, input.low_s), end_to_end(step.high_s, input.high_s)};
  if (plan.saving) {
    const double saves = std::floor(steps / double(plan.saving->every_steps));
    all += saves * double(plan.saving->payload.bytes) * kSavedByte_s;
  }
  return all;
}

TimeRange alone_seconds(const TrainPlan& plan, const TimeRange& input) {
  const double steps = double(plan.planned_steps());
  const auto alone = [&](double input_s) {
    return std::min(steps * input_s, std::max(kLongestAlone_s, kFewestAloneBatches * input_s));
  };
  return {alone(input.low_s), alone(input.high_s)};
}

// Does the search with accelerators of which `fed` are kept busy, and adds up the time of its runs.
double search_seconds(const TrainPlan& plan, double fed, double step_s, double input_s) {
  double sum_s = 0;
  const double enough_s = std::chrono::duration<double>(plan.enough_time).count();
  const KeepsBusy count_run = [&](uint64_t accelerators) -> Result<bool> {
    const double input_of_all_s = double(accelerators) * input_s;
    const double period_s = period_seconds(plan, step_s, input_of_all_s);
    double run_s = double(plan.limits.batches) * period_s;
    if (plan.enough_steps > 0)
      run_s = std::min(run_s, std::max(enough_s, double(plan.enough_steps) * period_s));
    sum_s += input_of_all_s + run_s;
    return double(accelerators) <= fed;
  };
  const uint64_t most = std::max<uint64_t>(1, plan.samples_an_epoch() / std::max<uint64_t>(1, plan.batch));
  const Result<uint64_t> found = most_fed(most, count_run);
  if (found.ok() && *found > 0) static_cast<void>(most_fed_in_a_row(*found, kRunsInARow, count_run));
  return sum_s;
}

TimeRange search_range(const TrainPlan& plan, const TimeRange& step, const TimeRange& input) {
  TimeRange range{1e300, 0};
  for (const double input_s : {input.low_s, (input.low_s + input.high_s) / 2, input.high_s}) {
    const double fed = plan.prefetch > 0 ? step.low_s / std::max(input_s, 1e-9) : 1;
    const double seconds = search_seconds(plan, fed, step.low_s, input_s);
    range.low_s = std::min(range.low_s, seconds);
    range.high_s = std::max(range.high_s, seconds);
  }
  return {range.low_s, 1.2 * range.high_s};
}

}  // namespace

bool may_hang(const Tier& tier) {
  constexpr std::chrono::seconds kLongLatency{1};
  if (tier.facts.network || tier.backend->caps().on_network) return true;
  const auto spec = parse_tier(tier.spec, kNoNamedTiers);
  return !spec.ok() || std::any_of(spec->options.begin(), spec->options.end(), [&](const OptionWord& option) {
    if (option.key != "latency") return false;
    const auto latency = parse_duration(option.value);
    return !latency.ok() || *latency >= kLongLatency;
  });
}

void plan_training_time(const TrainPlan& plan) {
  std::vector<const Tier*> tiers;
  if (!plan.only_other_tiers) tiers.push_back(&plan.corpus.tier);
  for (const Tier& tier : plan.other_tiers) tiers.push_back(&tier);
  const TimeRange step = step_seconds(plan);
  TimeRange trainings;
  TimeRange alone;
  for (const Tier* tier : tiers) {
    const TimeRange input = double(plan.step_samples()) * input_seconds(plan, *tier);
    trainings +=
        plan.searches_accelerators ? search_range(plan, step, input) : training_seconds(plan, step, input);
    alone += alone_seconds(plan, input);
  }
  const auto count = double(tiers.size());
  TimePlan& time_plan = *plan.time_plan;
  time_plan.add({.name = std::string(plan.searches_accelerators ? kSearchPart : kTrainingPart),
                 .asked = tiers.size(),
                 .each = 1 / count * trainings,
                 .least = 1});
  // Half of it comes before the training and half after it.
  if (!plan.searches_accelerators && step.high_s > 0)
    time_plan.add({.name = std::string(kInputAlonePart),
                   .asked = 2 * tiers.size(),
                   .each = 0.5 / count * alone,
                   .group = 2 * tiers.size()});
}

bool begin_part(const TrainPlan& plan, std::string_view part, const Tier& tier) {
  return plan.time_plan == nullptr || plan.time_plan->begin(part, fmt::format("{}: {}", tier.name, part));
}

}  // namespace penstock
