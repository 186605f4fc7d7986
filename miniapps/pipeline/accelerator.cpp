#include "miniapps/pipeline/accelerator.hpp"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
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
     .help = "how long one batch keeps the accelerator busy"},
    {.name = "jitter",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "0s",
     .help = "steps take up to so much more or less"},
    {.name = "burn",
     .role = OptionRole::work,
     .value = "cpu:CORES",
     .fallback = "",
     .help = "processors that work during a step, which is over when their work is done"}};
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

class EmulatedAccelerator final : public Accelerator {
 public:
  EmulatedAccelerator(nanoseconds step, nanoseconds jitter, std::unique_ptr<Burner> burner,
                      const AcceleratorGroup& group)
      : step_(step),
        jitter_(jitter),
        burner_(std::move(burner)),
        group_(group),
        random_(group.seed, "train.accelerator") {}

  nanoseconds nominal_step() const override { return step_; }
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
    step.nominal = step.busy = step_;
    if (jitter_.count() == 0) return;
    nanoseconds longest_step{0};
    nanoseconds sum_of_steps{0};
    for (uint64_t i = 0; i < group_.count; ++i) {
      const double share = 2 * random_.uniform(steps_ * group_.total_count + group_.first_number + i) - 1;
      const nanoseconds step_time = step_ + nanoseconds(int64_t(share * double(jitter_.count())));
      longest_step = std::max(longest_step, step_time);
      sum_of_steps += step_time;
    }
    ++steps_;
    step.nominal = longest_step;
    step.busy = sum_of_steps / int64_t(group_.count);
  }

  const nanoseconds step_;
  const nanoseconds jitter_;
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
        "'" + text + "' is nothing to burn: burn=cpu:0.5 occupies half a processor during each step");
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
        "an emulated accelerator needs a step above 0 and up to 24h: --accelerator emulated:step=10ms");
  }
  const nanoseconds step = options.duration("step");
  const nanoseconds jitter = options.duration("jitter");
  if (jitter < nanoseconds{0} || jitter >= step)
    return make_error(Errc::invalid_argument, "an accelerator's jitter must be shorter than its step");
  PENSTOCK_ASSIGN(std::unique_ptr<Burner> burner, make_burner(options.text("burn"), group.count));
  return std::unique_ptr<Accelerator>(
      std::make_unique<EmulatedAccelerator>(step, jitter, std::move(burner), group));
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
