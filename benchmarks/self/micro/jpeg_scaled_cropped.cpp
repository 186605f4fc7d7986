// Micro-benchmark: decodes imagenet's pictures completely, scaled down by the decoder, and only in part.
// Measures the processor time of one thread. Each of these ways and the complete decode of the same picture
// run directly after each other, in alternating order.
#include <string>

#include "benchmarks/self/micro/microbench.hpp"
#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_jpeg_scaled_cropped;

namespace {

constexpr size_t kPictures = 64;
constexpr size_t kSmokePictures = 4;

struct DecodeVariant {
  unsigned shrink = 1;
  // Decode only a part: the middle half of each side, which is about the size of a random resized crop.
  bool only_middle = false;
};

Result<void> decode(JpegDecoder& decoder, std::span<const std::byte> jpeg, const DecodeVariant& mode,
                    Image& out) {
  if (!mode.only_middle) return decoder.decode(jpeg, out, mode.shrink);
  PENSTOCK_ASSIGN(const JpegHeader header, decoder.read_header(jpeg));
  const uint32_t width = (header.width + 1) / 2;
  const uint32_t height = (header.height + 1) / 2;
  return decoder.decode_part(jpeg, {(header.width - width) / 2, (header.height - height) / 2, width, height},
                             out);
}

void compare(benchmark::State& state, size_t count, const DecodeVariant& mode) {
  const auto jpegs = first_payloads("imagenet", count);
  if (!jpegs.ok()) return give_up(state, jpegs.error());
  JpegDecoder decoder;
  Image image;
  double whole_s = 0;
  double mode_s = 0;
  uint64_t bytes = 0;
  size_t turn = 0;
  for (auto _ : state) {
    for (const auto& jpeg : *jpegs) {
      const bool whole_first = turn++ % 2 == 0;
      for (const bool whole : {whole_first, !whole_first}) {
        const double start = thread_seconds();
        const auto done = decode(decoder, jpeg, whole ? DecodeVariant{} : mode, image);
        (whole ? whole_s : mode_s) += thread_seconds() - start;
        if (!done.ok()) return give_up(state, done.error());
      }
      bytes += jpeg.size();
    }
    ++turn;  // so that the next iteration uses the other order
  }
  state.counters["bytes_per_s"] = double(bytes) / mode_s;
  state.counters["of_whole"] = whole_s / mode_s;  // how many times as fast as the complete decode
}

void add(Microbench& to) {
  const size_t count = to.smoke() ? kSmokePictures : kPictures;
  const auto add_mode = [&](std::string_view name, const DecodeVariant& mode) {
    to.add(name, [count, mode](benchmark::State& state) {
        compare(state, count, mode);
      })->Unit(benchmark::kMillisecond);
  };
  add_mode("whole", {});
  for (const unsigned shrink : {2U, 4U, 8U}) add_mode("scaled_" + std::to_string(shrink), {.shrink = shrink});
  add_mode("cropped", {.only_middle = true});
}

}  // namespace

const MicrobenchInfo microbench_jpeg_scaled_cropped{
    .name = "jpeg_scaled_cropped",
    .summary =
        "pictures decoded whole, to 1/2, 1/4 and 1/8 of each side, and the middle half, bytes/s and times as "
        "fast",
    .add = add};

}  // namespace penstock
