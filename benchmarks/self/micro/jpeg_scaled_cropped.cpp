// Micro-benchmark: decodes imagenet's pictures whole, scaled down by the decoder, and of each a part alone.
// It measures the processor time of one thread. Each way and the whole decode of the same pictures run
// directly after each other, in changing order.
#include <string>

#include "benchmarks/self/micro/microbench.hpp"
#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_jpeg_scaled_cropped;

namespace {

constexpr size_t kPictures = 64;
constexpr size_t kSmokePictures = 4;

struct Way {
  unsigned shrink = 1;
  bool part = false;  // half of each side, from the middle: about what random resized crops take
};

Result<void> decode(JpegDecoder& decoder, std::span<const std::byte> jpeg, const Way& way, Image& out) {
  if (!way.part) return decoder.decode(jpeg, out, way.shrink);
  PENSTOCK_ASSIGN(const JpegHeader header, decoder.read_header(jpeg));
  const uint32_t width = (header.width + 1) / 2;
  const uint32_t height = (header.height + 1) / 2;
  return decoder.decode_part(jpeg, {(header.width - width) / 2, (header.height - height) / 2, width, height},
                             out);
}

void compare(benchmark::State& state, size_t count, const Way& way) {
  const auto jpegs = first_payloads("imagenet", count);
  if (!jpegs.ok()) return give_up(state, jpegs.error());
  JpegDecoder decoder;
  Image image;
  double whole_s = 0;
  double this_s = 0;
  uint64_t bytes = 0;
  size_t turn = 0;
  for (auto _ : state) {
    for (const auto& jpeg : *jpegs) {
      const bool whole_first = turn++ % 2 == 0;
      for (const bool whole : {whole_first, !whole_first}) {
        const double start = thread_seconds();
        const auto done = decode(decoder, jpeg, whole ? Way{} : way, image);
        (whole ? whole_s : this_s) += thread_seconds() - start;
        if (!done.ok()) return give_up(state, done.error());
      }
      bytes += jpeg.size();
    }
    ++turn;  // what came first last time comes second now
  }
  state.counters["bytes_per_s"] = double(bytes) / this_s;
  state.counters["of_whole"] = whole_s / this_s;  // how many times as fast
}

void add(Microbench& to) {
  const size_t count = to.smoke() ? kSmokePictures : kPictures;
  const auto add_way = [&](std::string_view name, const Way& way) {
    to.add(name, [count, way](benchmark::State& state) {
        compare(state, count, way);
      })->Unit(benchmark::kMillisecond);
  };
  add_way("whole", {});
  for (const unsigned shrink : {2U, 4U, 8U}) add_way("scaled_" + std::to_string(shrink), {.shrink = shrink});
  add_way("cropped", {.part = true});
}

}  // namespace

const MicrobenchInfo microbench_jpeg_scaled_cropped{
    .name = "jpeg_scaled_cropped",
    .summary =
        "pictures decoded whole, to 1/2, 1/4 and 1/8 of each side, and the middle half, bytes/s and times as "
        "fast",
    .add = add};

}  // namespace penstock
