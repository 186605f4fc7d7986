#include "miniapps/pipeline/accelerator.hpp"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/random.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/precise_timers.hpp"
#include "miniapps/pipeline/accelerator_metrics.hpp"
#include "miniapps/pipeline/burner.hpp"
#include "miniapps/pipeline/cpu_accelerator.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::chrono::microseconds kLongestSpin{20};
constexpr std::chrono::milliseconds kStepInterruptPoll{50};
constexpr std::chrono::hours kLongestStep{24};

constexpr OptionSpec kEmulatedOptions[] = {
    {.name = "step",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .help = "step time: how long one batch keeps the accelerator busy"},
    {.name = "jitter",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "0s",
     .help = "largest random deviation of a step time"},
    {.name = "stdev",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "0s",
     .help = "standard deviation of random step times"},
    {.name = "distribution",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "normal|gamma|poisson",
     .fallback = "normal",
     .help = "distribution of step times with stdev; poisson: whole seconds"},
    {.name = "burn",
     .role = OptionRole::work,
     .value = "cpu:CORES",
     .fallback = "",
     .help = "CPUs that are busy during a step; the step ends when their work is done"}};
constexpr std::string_view kBurnCpu = "cpu:";
constexpr double kMostBurnedCores = 4096;

void sleep_until(SteadyTime until) {
  const auto since_epoch = std::chrono::duration_cast<nanoseconds>(until.time_since_epoch()).count();
  const timespec end_time{static_cast<time_t>(since_epoch / 1'000'000'000),
                          long(since_epoch % 1'000'000'000)};
  // A signal may end the sleep early. So the caller of this function tests the clock and interrupted() again.
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end_time, nullptr);
}

Result<void> wait_until(SteadyTime deadline) {
  const SteadyTime wake = deadline - kLongestSpin;
  for (SteadyTime now = Clock::now(); now < wake; now = Clock::now()) {
    PENSTOCK_TRY(check_interrupt());
    sleep_until(std::min(wake, now + kStepInterruptPoll));
  }
  while (Clock::now() < deadline) {
  }
  return {};
}

// How long steps take.
struct StepDistribution {
  nanoseconds mean{0};
  nanoseconds jitter{0};  // a step takes up to this more or less, evenly spread
  nanoseconds deviation{0};
  std::string kind{};  // "normal", "gamma" or "poisson"; counts if `deviation` is above 0
};

// Draws a number with a gamma distribution of mean 1, by the method of Marsaglia and Tsang ("A simple method
// for generating gamma variables", 2000).
double draw_gamma(const RandomStream& random, double shape) {
  if (shape < 1) {
    const double power = std::pow(1 - random.uniform(0), 1 / shape);
    return draw_gamma(random.substream(1), shape + 1) * (shape + 1) / shape * power;
  }
  const double d = shape - 1.0 / 3;
  for (uint64_t i = 0;; i += 2) {
    const double x = random.normal(i);
    const double root = 1 + x / std::sqrt(9 * d);
    const double v = root * root * root;
    if (v > 0 && std::log(1 - random.uniform(i + 1)) < x * x / 2 + d * (1 - v + std::log(v)))
      return d * v / shape;
  }
}

// Draws a number with a Poisson distribution: how many events come in a time in which `mean` come on average.
uint64_t draw_poisson(const RandomStream& random, double mean) {
  uint64_t events = 0;
  for (double time = 0;; ++events) {
    time -= std::log(1 - random.uniform(events));
    if (time > mean) return events;
  }
}

nanoseconds draw_step(const StepDistribution& times, const RandomStream& random) {
  const auto mean_ns = double(times.mean.count());
  const auto deviation_ns = double(times.deviation.count());
  double ns = mean_ns;
  if (times.deviation.count() == 0)
    ns += (2 * random.uniform(0) - 1) * double(times.jitter.count());
  else if (times.kind == "gamma")
    ns *= draw_gamma(random, (mean_ns / deviation_ns) * (mean_ns / deviation_ns));
  else if (times.kind == "poisson")
    ns = 1e9 * double(draw_poisson(random, mean_ns * 1e-9));
  else
    ns = std::abs(mean_ns + deviation_ns * random.normal(0));  // as DLIO: no step takes less than no time
  return nanoseconds(std::llround(std::clamp(ns, 1.0, double(nanoseconds(kLongestStep).count()))));
}

class EmulatedAccelerator final : public Accelerator {
 public:
  EmulatedAccelerator(StepDistribution times, std::unique_ptr<Burner> burner, const AcceleratorGroup& group)
      : times_(std::move(times)),
        burner_(std::move(burner)),
        group_(group),
        random_(group.seed, "train.accelerator") {}

  nanoseconds nominal_step() const override { return times_.mean; }
  Result<void> prepare(std::string_view layout, size_t /*samples*/) override {
    PENSTOCK_TRY(check_layout(layout));
    if (!burner_) return success();
    PENSTOCK_TRY(burner_->calibrate());
    calibrated_ = true;
    return success();
  }
  Result<Step> step(const Batch& batch) override {
    if (burner_ && !calibrated_) PENSTOCK_TRY(prepare({}, 0));
    Step step;
    step.begin = idle_since_ && batch.filled_at <= *idle_since_ ? *idle_since_ : Clock::now();
    draw_times(step);
    if (burner_) {
      PENSTOCK_TRY(burner_->work(step.nominal));
      step.end = step.deadline = Clock::now();
      step.busy = std::min<nanoseconds>(step.busy, step.end - step.begin);
    } else {
      const PreciseTimers precise;
      step.deadline = step.begin + step.nominal;
      PENSTOCK_TRY(wait_until(step.deadline));
      step.end = Clock::now();
    }
    idle_since_ = step.deadline;
    return step;
  }
  void set_step_end(SteadyTime when) override { idle_since_ = when; }
  void record(Trial& trial) const override {
    if (!calibrated_) return;
    trial.sample(accelerator_metrics::kBurnRate, burner_->rounds_per_s());
    trial.sample(accelerator_metrics::kBurnSpread, burner_->spread());
  }

 private:
  // Draws how long each accelerator of this process takes for the next step. Sets step.nominal to the longest
  // of these times and step.busy to their mean.
  void draw_times(Step& step) {
    step.nominal = step.busy = times_.mean;
    if (times_.jitter.count() == 0 && times_.deviation.count() == 0) return;
    nanoseconds longest_step{0};
    nanoseconds sum_of_steps{0};
    for (uint64_t i = 0; i < group_.count; ++i) {
      const uint64_t draw = steps_ * group_.total_count + group_.first_number + i;
      const nanoseconds step_time = draw_step(times_, random_.substream(draw));
      longest_step = std::max(longest_step, step_time);
      sum_of_steps += step_time;
    }
    ++steps_;
    step.nominal = longest_step;
    step.busy = sum_of_steps / int64_t(group_.count);
  }

  const StepDistribution times_;
  const std::unique_ptr<Burner> burner_;
  const AcceleratorGroup group_;
  const RandomStream random_;
  bool calibrated_ = false;
  uint64_t steps_ = 0;
  // When the accelerator last became idle: at the deadline of the previous step, or at the time given to
  // set_step_end().
  std::optional<SteadyTime> idle_since_;
};

Result<std::unique_ptr<Burner>> make_burner(const std::string& text, uint64_t accelerators) {
  if (text.empty()) return std::unique_ptr<Burner>();
  double cores = 0;
  const char* const end = text.data() + text.size();
  const bool is_valid = text.starts_with(kBurnCpu) &&
                        std::from_chars(text.data() + kBurnCpu.size(), end, cores).ptr == end && cores > 0 &&
                        cores <= kMostBurnedCores;
  if (!is_valid)
    return make_error(
        Errc::invalid_argument,
        "'" + text + "' is not a value of burn: burn=cpu:0.5 keeps half a CPU busy during each step");
  return Burner::make(cores * double(accelerators));
}

std::vector<OptionWord> option_list(std::string_view options_text) {
  std::vector<OptionWord> words;
  while (!options_text.empty()) {
    const std::string_view word = options_text.substr(0, options_text.find(','));
    options_text.remove_prefix(std::min(options_text.size(), word.size() + 1));
    const size_t equals = std::min(word.find('='), word.size());
    words.push_back(
        {std::string(word.substr(0, equals)), std::string(word.substr(std::min(word.size(), equals + 1)))});
  }
  return words;
}

Result<std::unique_ptr<Accelerator>> make_emulated(const std::vector<OptionWord>& words,
                                                   const AcceleratorGroup& group) {
  PENSTOCK_ASSIGN(const Options options, Options::parse(kEmulatedOptions, words, "accelerator option"));
  if (!options.given("step") || options.duration("step") <= nanoseconds{0} ||
      options.duration("step") > kLongestStep) {
    return make_error(
        Errc::invalid_argument,
        "an emulated accelerator needs a step time above 0 and up to 24h: --accelerator emulated:step=10ms");
  }
  const StepDistribution times{.mean = options.duration("step"),
                               .jitter = options.duration("jitter"),
                               .deviation = options.duration("stdev"),
                               .kind = options.text("distribution")};
  if (times.jitter < nanoseconds{0} || times.jitter >= times.mean)
    return make_error(Errc::invalid_argument, "an accelerator's jitter must be smaller than its step time");
  if (times.deviation > nanoseconds{0} && times.jitter > nanoseconds{0})
    return make_error(Errc::invalid_argument, "an accelerator has either jitter or stdev, not both");
  if (options.given("distribution") && times.deviation <= nanoseconds{0})
    return make_error(Errc::invalid_argument,
                      "an accelerator's distribution needs a stdev: --accelerator "
                      "emulated:step=10ms,stdev=2ms,distribution=gamma");
  PENSTOCK_ASSIGN(std::unique_ptr<Burner> burner, make_burner(options.text("burn"), group.count));
  return std::unique_ptr<Accelerator>(std::make_unique<EmulatedAccelerator>(times, std::move(burner), group));
}

}  // namespace

Result<std::unique_ptr<Accelerator>> make_accelerator(std::string_view text, const AcceleratorGroup& group) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view kind = text.substr(0, colon);
  if (kind == "none" && colon == text.size()) return no_accelerator();
  if (kind == "none") return make_error(Errc::invalid_argument, "accelerator 'none' takes no options");
  const std::vector<OptionWord> words = option_list(text.substr(std::min(text.size(), colon + 1)));
  if (kind == "emulated") return make_emulated(words, group);
  if (kind == "cpu") return make_cpu_accelerator(words, group);
  return unknown_name("accelerator", kind, {"none", "emulated", "cpu"});
}

}  // namespace penstock
