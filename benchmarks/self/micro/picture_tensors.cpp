// Micro-benchmark: what remains to be done with a decoded picture. It is resized, normalised and written into
// a batch. Measures the processor time of one thread.
#include <string>
#include <vector>

#include "benchmarks/self/micro/microbench.hpp"
#include "io_backends/core/random.hpp"
#include "miniapps/pipeline/picture_tensor.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_picture_tensors;

namespace {

constexpr uint32_t kWidth = 500;  // width of most of imagenet's pictures
constexpr uint32_t kHeight = 375;
constexpr uint32_t kSide = 224;

void fill(benchmark::State& state, ResizeFilter filter, PixelType type, Axes axes) {
  Image image{kWidth, kHeight, std::vector<uint8_t>(size_t{3} * kWidth * kHeight)};
  const RandomStream random(1, 1);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = uint8_t(random.bits(i));
  const PictureTensor tensor{kSide, kSide, type, axes, {0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  Resizer resizer(filter, kSide, kSide);
  LineWriter writer(tensor);
  std::vector<float> line(size_t{3} * kSide + 1);
  std::vector<std::byte> slot(tensor.bytes());
  for (auto _ : state) {
    resizer.begin(image, {0, 0, kWidth, kHeight}, false);
    for (uint32_t y = 0; y < kSide; ++y) {
      resizer.line(y, line);
      writer.write(y, std::span(line).first(line.size() - 1), slot);
    }
    benchmark::DoNotOptimize(slot.data());
    benchmark::ClobberMemory();
  }
}

void add(Microbench& to) {
  const auto add_case = [&](std::string_view name, ResizeFilter filter, PixelType type, Axes axes) {
    to.add(name, [=](benchmark::State& state) {
        fill(state, filter, type, axes);
      })->Unit(benchmark::kMicrosecond);
  };
  add_case("bilinear", ResizeFilter::bilinear, PixelType::f32, Axes::nhwc);
  add_case("antialias", ResizeFilter::antialias, PixelType::f32, Axes::nhwc);
  add_case("bilinear_f16", ResizeFilter::bilinear, PixelType::f16, Axes::nhwc);
  add_case("bilinear_u8", ResizeFilter::bilinear, PixelType::u8, Axes::nhwc);
  add_case("bilinear_nchw", ResizeFilter::bilinear, PixelType::f32, Axes::nchw);
  add_case("bilinear_f16_nchw", ResizeFilter::bilinear, PixelType::f16, Axes::nchw);
}

}  // namespace

const MicrobenchInfo microbench_picture_tensors{
    .name = "picture_tensors",
    .summary =
        "a decoded picture of 500x375 resized to 224x224, normalised and put into a batch, by filter, type "
        "and axes",
    .add = add};

}  // namespace penstock
