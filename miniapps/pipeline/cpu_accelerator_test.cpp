#include "miniapps/pipeline/cpu_accelerator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/pipeline/network_trainer.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

constexpr size_t kSamples = 6;
constexpr uint32_t kSide = 20;
constexpr uint32_t kClasses = 5;

// Has one layer of each kind, pools before convolutions and before dense layers, and odd sizes.
Network small_network() {
  using Kind = Layer::Kind;
  const Layer pool{.kind = Kind::max_pool, .kernel = 3, .stride = 2};
  return {
      .side = kSide,
      .layers = {
          {.kind = Kind::convolution, .outputs = 16, .kernel = 5, .stride = 2, .padding = 2, .relu = true},
          pool,
          {.kind = Kind::convolution, .outputs = 24, .kernel = 3, .padding = 1, .relu = true},
          pool,
          {.kind = Kind::dense, .outputs = 32, .relu = true},
          {.kind = Kind::dense, .outputs = kClasses}}};
}

PictureTensor picture(Axes axes) {
  return {.width = kSide, .height = kSide, .type = PixelType::f32, .axes = axes};
}

// A batch of noise, with the same values in both orders of axes.
Batch some_batch(Axes axes, size_t samples = kSamples) {
  Batch batch;
  batch.slot_bytes = picture(axes).bytes();
  batch.memory.grow(samples * batch.slot_bytes);
  const RandomStream random(11, "pictures");
  std::vector<float> values(batch.slot_bytes / sizeof(float));
  for (size_t i = 0; i < samples; ++i) {
    batch.index.push_back(i);
    batch.label.push_back(uint32_t(i) % kClasses);
    batch.length.push_back(1000);
    for (size_t n = 0; n < values.size(); ++n) {
      const size_t pixel = n / kPictureChannels;
      const size_t channel = n % kPictureChannels;
      const size_t at = axes == Axes::nhwc ? n : channel * kSide * kSide + pixel;
      values[at] = float(random.normal(i * values.size() + n));
    }
    std::memcpy(batch.slot_memory(i).data(), values.data(), batch.slot_bytes);
  }
  return batch;
}

class CpuAccelerator : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<void> available = network_trainer_available();
    if (!available.ok()) GTEST_SKIP() << available.error().what;
  }

  // Uses one thread, because the thread sanitizer does not understand the threads of OpenMP.
  static std::unique_ptr<Accelerator> prepared(Axes axes, uint64_t seed = 1, size_t samples = kSamples) {
    auto made = make_training_accelerator(small_network(), 1, seed);
    const Result<void> ready = made->prepare(picture(axes).text(), samples);
    EXPECT_TRUE(ready.ok()) << (ready.ok() ? "" : ready.error().what);
    return made;
  }

  static std::vector<double> losses(Axes axes, uint64_t seed, int steps) {
    const std::unique_ptr<NetworkTrainer> trainer =
        make_network_trainer(
            {.network = small_network(), .samples = kSamples, .axes = axes, .threads = 1, .seed = seed})
            .value();
    const Batch batch = some_batch(axes);
    std::vector<float> pictures(kSamples * batch.slot_bytes / sizeof(float));
    std::memcpy(pictures.data(), batch.memory.data(), kSamples * batch.slot_bytes);
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) all.push_back(trainer->step(pictures, batch.label).value());
    return all;
  }
};

// The metrics that the accelerator adds to a record, by name.
auto recorded(const Accelerator& accelerator) {
  Trial trial;
  accelerator.record(trial);
  return trial.record().metrics;
}

TEST_F(CpuAccelerator, LossFallsOnARepeatedBatch) {
  const auto accelerator = prepared(Axes::nhwc);
  const Batch batch = some_batch(Axes::nhwc);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(accelerator->step(batch).ok());
  const auto metrics = recorded(*accelerator);
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_GT(metrics.at("loss_first").value(), std::log(kClasses) / 2) << "it knows nothing yet";
  EXPECT_LT(metrics.at("loss_last").value(), 0.1) << "by chance it were " << std::log(kClasses);
}

// Computes a network's initial weights and its loss by the textbook formulas: slowly, and independent of the
// tested code.
class Reference {
 public:
  Reference(const Network& network, uint64_t seed) : network_(network) {
    size_t inputs = kPictureChannels;
    size_t side = network.side;
    for (size_t i = 0; i < network.layers.size(); ++i) {
      const Layer& layer = network.layers[i];
      const bool dense = layer.kind == Layer::Kind::dense;
      const size_t fan_in = inputs * (dense ? side * side : size_t{layer.kernel} * layer.kernel);
      const RandomStream random = RandomStream(seed, "train.network").substream(i);
      const double bound = std::sqrt(3.0 / double(fan_in));
      std::vector<double>& drawn = weights.emplace_back(layer.outputs * fan_in);
      for (size_t n = 0; n < drawn.size(); ++n) drawn[n] = bound * (2 * random.uniform(n) - 1);
      biases.emplace_back(layer.outputs, 0.0);
      if (layer.outputs != 0) inputs = layer.outputs;
      side = dense ? 1 : (side + 2 * layer.padding - layer.kernel) / layer.stride + 1;
    }
  }

  // `pictures` in the order channel, height, width.
  double loss(const std::vector<std::vector<double>>& pictures, const std::vector<uint32_t>& labels) const {
    double sum = 0;
    for (size_t i = 0; i < pictures.size(); ++i) {
      const std::vector<double> said = answer(pictures[i]);
      double all = 0;
      for (const double one : said) all += std::exp(one);
      sum += std::log(all) - said[labels[i]];
    }
    return sum / double(pictures.size());
  }

  std::vector<std::vector<double>> weights;  // the weights of each layer; empty for pools
  std::vector<std::vector<double>> biases;

 private:
  std::vector<double> answer(std::vector<double> values) const {
    size_t channels = kPictureChannels;
    size_t side = network_.side;
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      const Layer& layer = network_.layers[i];
      const bool dense = layer.kind == Layer::Kind::dense;
      const size_t kernel = dense ? side : layer.kernel;
      const size_t out_side = dense ? 1 : (side + 2 * layer.padding - kernel) / layer.stride + 1;
      const size_t outputs = layer.outputs != 0 ? layer.outputs : channels;
      std::vector<double> out;
      for (size_t place = 0; place < outputs * out_side * out_side; ++place)
        out.push_back(one(i, values, channels, side, kernel, place, out_side));
      values = std::move(out);
      channels = outputs;
      side = out_side;
    }
    return values;
  }

  // One output value of layer `i`.
  double one(size_t i, const std::vector<double>& values, size_t channels, size_t side, size_t kernel,
             size_t place, size_t out_side) const {
    const Layer& layer = network_.layers[i];
    const bool pool = layer.kind == Layer::Kind::max_pool;
    const size_t output = place / (out_side * out_side);
    const size_t top = place / out_side % out_side * layer.stride;
    const size_t left = place % out_side * layer.stride;
    double result = pool ? -1e9 : biases[i][output];
    for (size_t c = pool ? output : 0; c < (pool ? output + 1 : channels); ++c) {
      for (size_t n = 0; n < kernel * kernel; ++n) {
        const size_t y = top + n / kernel - layer.padding;  // wraps to a large number if negative
        const size_t x = left + n % kernel - layer.padding;
        if (y >= side || x >= side) continue;
        const double value = values[(c * side + y) * side + x];
        if (pool)
          result = std::max(result, value);
        else
          result += value * weights[i][(output * channels + c) * kernel * kernel + n];
      }
    }
    return layer.relu ? std::max(result, 0.0) : result;
  }

  const Network network_;
};

Network tiny_network() {
  using Kind = Layer::Kind;
  return {.side = 9,
          .layers = {
              {.kind = Kind::convolution, .outputs = 2, .kernel = 3, .stride = 1, .padding = 1, .relu = true},
              {.kind = Kind::max_pool, .kernel = 3, .stride = 2},
              {.kind = Kind::convolution, .outputs = 3, .kernel = 3, .stride = 2, .padding = 1, .relu = true},
              {.kind = Kind::dense, .outputs = 4, .relu = true},
              {.kind = Kind::dense, .outputs = 3}}};
}

// The reference gets its gradient by finite differences, so the test covers forward, backward and update.
TEST_F(CpuAccelerator, MatchesTheTextbookFormulas) {
  const Network network = tiny_network();
  constexpr size_t kPictures = 2;
  constexpr double kRate = 0.05;
  const std::vector<uint32_t> labels{2, 0};
  const RandomStream random(5, "pictures");
  const size_t each = size_t{network.side} * network.side * kPictureChannels;
  std::vector<float> together;
  std::vector<std::vector<double>> apart(kPictures);
  for (size_t n = 0; n < kPictures * each; ++n) {
    together.push_back(float(random.normal(n)));
    apart[n / each].push_back(together.back());
  }
  const auto trainer = make_network_trainer({.network = network,
                                             .samples = kPictures,
                                             .axes = Axes::nchw,
                                             .threads = 1,
                                             .seed = 8,
                                             .rate = float(kRate)})
                           .value();
  Reference reference(network, 8);
  for (int step = 0; step < 3; ++step) {
    EXPECT_NEAR(trainer->step(together, labels).value(), reference.loss(apart, labels), 1e-4) << step;
    const Reference before = reference;
    Reference moved = reference;
    const auto descend = [&](std::vector<std::vector<double>> Reference::*numbers) {
      for (size_t layer = 0; layer < (reference.*numbers).size(); ++layer) {
        for (size_t n = 0; n < (reference.*numbers)[layer].size(); ++n) {
          constexpr double kNudge = 1e-5;
          double& number = (moved.*numbers)[layer][n];
          const double was = number;
          number = was + kNudge;
          const double above = moved.loss(apart, labels);
          number = was - kNudge;
          const double below = moved.loss(apart, labels);
          number = was;
          (reference.*numbers)[layer][n] -= kRate * (above - below) / (2 * kNudge);
        }
      }
    };
    descend(&Reference::weights);
    descend(&Reference::biases);
    EXPECT_GT(before.loss(apart, labels) - reference.loss(apart, labels), 0.001) << "a step that tells";
  }
}

TEST_F(CpuAccelerator, TakesBothOrdersOfAxesForTheSamePictures) {
  const std::vector<double> one = losses(Axes::nhwc, 3, 10);
  const std::vector<double> other = losses(Axes::nchw, 3, 10);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-3 * one[i]);
  EXPECT_NE(losses(Axes::nhwc, 4, 1).front(), one.front()) << "other weights to begin with";
}

TEST_F(CpuAccelerator, IsBusyFromBeginToEnd) {
  const auto accelerator = prepared(Axes::nhwc);
  EXPECT_EQ(accelerator->nominal_step().count(), 0);
  EXPECT_TRUE(accelerator->computes());
  EXPECT_TRUE(recorded(*accelerator).empty());
  const Batch batch = some_batch(Axes::nhwc);
  const Step first = accelerator->step(batch).value();
  accelerator->set_step_end(first.end);
  const Step second = accelerator->step(batch).value();
  EXPECT_GE(second.begin, first.end);
  for (const Step& step : {first, second}) {
    EXPECT_GT(step.busy.count(), 0);
    EXPECT_EQ(step.busy, step.end - step.begin);
    EXPECT_EQ(step.deadline, step.end);
  }
}

TEST_F(CpuAccelerator, TakesABatchThatIsAView) {
  const Batch whole = some_batch(Axes::nhwc);
  Batch view = some_batch(Axes::nhwc);
  view.memory = Buffer();
  view.view = whole.tensor();
  const auto one = prepared(Axes::nhwc);
  const auto other = prepared(Axes::nhwc);
  ASSERT_TRUE(one->step(whole).ok());
  ASSERT_TRUE(other->step(view).ok());
  EXPECT_EQ(recorded(*one).at("loss_first").value(), recorded(*other).at("loss_first").value());
}

TEST_F(CpuAccelerator, ASampleWithoutALabelIsOfClass0) {
  Batch batch = some_batch(Axes::nhwc, 1);
  batch.label[0] = 0;
  const auto one = prepared(Axes::nhwc, 1, 1);
  const auto other = prepared(Axes::nhwc, 1, 1);
  ASSERT_TRUE(one->step(batch).ok());
  batch.label[0] = kNoLabel;
  ASSERT_TRUE(other->step(batch).ok());
  EXPECT_EQ(recorded(*one).at("loss_first").value(), recorded(*other).at("loss_first").value());
}

TEST_F(CpuAccelerator, RefusesALabelThatItHasNoClassFor) {
  const auto accelerator = prepared(Axes::nhwc);
  Batch batch = some_batch(Axes::nhwc);
  batch.label[2] = kClasses;
  const Result<Step> step = accelerator->step(batch);
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().code, Errc::invalid_argument);
  EXPECT_NE(step.error().what.find("classes=6"), std::string::npos) << step.error().what;
}

TEST_F(CpuAccelerator, StopsWithinAStepWhenInterrupted) {
  const Batch batch = some_batch(Axes::nhwc);
  std::vector<float> pictures(kSamples * batch.slot_bytes / sizeof(float));
  static int asked;
  asked = 0;
  const auto trainer = make_network_trainer({.network = small_network(),
                                             .samples = kSamples,
                                             .threads = 1,
                                             .may_go_on = []() -> Result<void> {
                                               if (++asked < 5) return success();
                                               return make_error(Errc::interrupted, "enough");
                                             }})
                           .value();
  const Result<double> step = trainer->step(pictures, batch.label);
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().code, Errc::interrupted);
  EXPECT_EQ(asked, 5);

  const auto accelerator = prepared(Axes::nhwc);
  simulate_interrupt(2);
  const Result<Step> stopped = accelerator->step(batch);
  simulate_interrupt(0);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
}

TEST_F(CpuAccelerator, ExistsOnceInAProcess) {
  EXPECT_TRUE(make_accelerator("cpu:threads=1,classes=10").ok());
  const auto two = make_accelerator("cpu", {.count = 2});
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.error().code, Errc::invalid_argument);
}

// Arguments are checked before oneDNN is needed.
TEST(CpuAcceleratorArguments, AreChecked) {
  for (const char* wrong : {"cpu:thread=1", "cpu:threads=0", "cpu:threads=5000", "cpu:classes=1",
                            "cpu:classes=2000000", "cpu:step=1ms"}) {
    const auto made = make_accelerator(wrong);
    ASSERT_FALSE(made.ok()) << wrong;
    EXPECT_EQ(made.error().code, Errc::invalid_argument) << wrong;
  }
}

TEST(CpuAcceleratorArguments, OtherLayoutsAreRefusedWithTheRemedy) {
  const auto accelerator = make_training_accelerator(alexnet(10), 1, 1);
  EXPECT_TRUE(accelerator->check_layout("f32 NHWC 224x224x3").ok());
  EXPECT_TRUE(accelerator->check_layout("f32 NCHW 3x224x224").ok());
  for (const char* other : {"f16 NHWC 224x224x3", "u8 NCHW 3x224x224", "f32 NHWC 64x64x3", "as stored"}) {
    const Result<void> taken = accelerator->check_layout(other);
    ASSERT_FALSE(taken.ok()) << other;
    EXPECT_EQ(taken.error().code, Errc::invalid_argument);
    EXPECT_NE(taken.error().what.find("f32 NHWC 224x224x3"), std::string::npos) << taken.error().what;
    EXPECT_FALSE(accelerator->prepare(other, 1).ok());
  }
}

TEST(CpuAcceleratorNetwork, AlexNetMatchesThePaper) {
  const Network network = alexnet(1000);
  uint64_t weights = 0;
  uint64_t side = network.side;
  uint64_t inputs = kPictureChannels;
  for (const Layer& layer : network.layers) {
    if (layer.kind == Layer::Kind::dense) {
      weights += inputs * side * side * layer.outputs + layer.outputs;
      side = 1;
    } else {
      side = (side + 2 * uint64_t{layer.padding} - layer.kernel) / layer.stride + 1;
      if (layer.kind == Layer::Kind::convolution)
        weights += inputs * layer.kernel * layer.kernel * layer.outputs + layer.outputs;
    }
    if (layer.outputs != 0) inputs = layer.outputs;
    if (&layer == &network.layers[7]) {
      EXPECT_EQ(inputs * side * side, 9216U);
    }
  }
  EXPECT_EQ(weights, 62'378'344U) << "in one tower";
  EXPECT_EQ(network.classes(), 1000U);
}

}  // namespace
}  // namespace penstock
