#include "miniapps/pipeline/cpu_accelerator.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/pipeline/accelerator_metrics.hpp"
#include "miniapps/pipeline/network_trainer.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr OptionSpec kCpuOptions[] = {{.name = "threads",
                                       .role = OptionRole::work,
                                       .type = OptionType::integer,
                                       .value = "N",
                                       .help = "compute threads (default: number of CPUs)",
                                       .at_least = 1},
                                      {.name = "classes",
                                       .role = OptionRole::work,
                                       .type = OptionType::integer,
                                       .value = "N",
                                       .fallback = "1000",
                                       .help = "number of classes: labels must be below it",
                                       .at_least = 2}};
constexpr int64_t kMostThreads = 4096;
constexpr int64_t kMostClasses = 1'000'000;

class CpuAccelerator final : public Accelerator {
 public:
  CpuAccelerator(Network network, unsigned threads, uint64_t seed)
      : network_(std::move(network)), threads_(threads), seed_(seed) {}

  std::chrono::nanoseconds nominal_step() const override { return std::chrono::nanoseconds{0}; }
  bool computes() const override { return true; }
  Result<void> check_layout(std::string_view layout) const override {
    PENSTOCK_TRY(axes_of(layout));
    return success();
  }
  Result<void> prepare(std::string_view layout, size_t samples) override;
  Result<Step> step(const Batch& batch) override;
  void set_step_end(SteadyTime /*when*/) override {}
  void record(Trial& trial) const override;

 private:
  Result<Axes> axes_of(std::string_view layout) const;
  Result<void> read_labels(const Batch& batch);

  const Network network_;
  const unsigned threads_;
  const uint64_t seed_;
  std::unique_ptr<NetworkTrainer> trainer_;
  std::vector<uint32_t> labels_;
  std::optional<double> first_loss_;
  double last_loss_ = 0;
};

PictureTensor network_input(const Network& network, Axes axes) {
  return {.width = network.side, .height = network.side, .type = PixelType::f32, .axes = axes};
}

Result<Axes> CpuAccelerator::axes_of(std::string_view layout) const {
  for (const Axes axes : {Axes::nhwc, Axes::nchw})
    if (layout == network_input(network_, axes).text()) return axes;
  return make_error(Errc::invalid_argument,
                    "the accelerator 'cpu' trains on " + network_input(network_, Axes::nhwc).text() + " or " +
                        network_input(network_, Axes::nchw).text() + ", not on batches '" +
                        std::string(layout) + "': use train alexnet with its default --set type and image");
}

Result<void> CpuAccelerator::prepare(std::string_view layout, size_t samples) {
  PENSTOCK_ASSIGN(const Axes axes, axes_of(layout));
  PENSTOCK_ASSIGN(trainer_, make_network_trainer({.network = network_,
                                                  .samples = samples,
                                                  .axes = axes,
                                                  .threads = threads_,
                                                  .seed = seed_,
                                                  .may_go_on = &check_interrupt}));
  labels_.resize(samples);
  return success();
}

Result<void> CpuAccelerator::read_labels(const Batch& batch) {
  if (trainer_ == nullptr || batch.samples() != labels_.size() ||
      batch.slot_bytes != network_input(network_, Axes::nhwc).bytes())
    return make_error(Errc::internal, "the accelerator 'cpu' received a batch of an unexpected shape");
  for (size_t i = 0; i < labels_.size(); ++i) {
    labels_[i] = batch.label[i] == kNoLabel ? 0 : batch.label[i];
    if (labels_[i] >= network_.classes())
      return make_error(Errc::invalid_argument,
                        "a sample has label " + std::to_string(labels_[i]) + ", the network has " +
                            std::to_string(network_.classes()) + " classes: --accelerator cpu:classes=" +
                            std::to_string(labels_[i] + uint64_t{1}) + " or more");
  }
  return success();
}

Result<Step> CpuAccelerator::step(const Batch& batch) {
  PENSTOCK_TRY(check_interrupt());
  PENSTOCK_TRY(read_labels(batch));
  const std::span<const std::byte> bytes = batch.tensor();
  const std::span<const float> pictures(static_cast<const float*>(static_cast<const void*>(bytes.data())),
                                        bytes.size() / sizeof(float));
  Step step;
  step.begin = Clock::now();
  PENSTOCK_ASSIGN(last_loss_, trainer_->step(pictures, labels_));
  step.end = step.deadline = Clock::now();
  step.busy = step.end - step.begin;
  if (!first_loss_) first_loss_ = last_loss_;
  return step;
}

void CpuAccelerator::record(Trial& trial) const {
  if (!first_loss_) return;
  trial.sample(accelerator_metrics::kLossFirst, *first_loss_);
  trial.sample(accelerator_metrics::kLossLast, last_loss_);
}

}  // namespace

Result<std::unique_ptr<Accelerator>> make_cpu_accelerator(std::span<const OptionWord> words,
                                                          const AcceleratorGroup& group) {
  PENSTOCK_ASSIGN(const Options options, Options::parse(kCpuOptions, words, "accelerator option"));
  const int64_t threads = options.given("threads") ? options.integer("threads") : 0;
  const int64_t classes = options.integer("classes");
  if (threads > kMostThreads || classes > kMostClasses)
    return make_error(Errc::invalid_argument,
                      "the accelerator 'cpu' takes at most threads=" + std::to_string(kMostThreads) +
                          " and classes=" + std::to_string(kMostClasses));
  if (group.count > 1)
    return make_error(Errc::invalid_argument,
                      "the accelerator 'cpu' uses the CPUs of this process, so there is only one: leave out "
                      "--accelerators, or start more ranks");
  PENSTOCK_TRY(network_trainer_available());
  return make_training_accelerator(alexnet(uint32_t(classes)), unsigned(threads), group.seed);
}

std::unique_ptr<Accelerator> make_training_accelerator(const Network& network, unsigned threads,
                                                       uint64_t seed) {
  return std::make_unique<CpuAccelerator>(network, threads, seed);
}

}  // namespace penstock
