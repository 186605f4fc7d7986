// Micro-benchmark: decodes imagenet's pictures, which are composed of strips that were coded before, and
// plain versions of the same pictures. A plain version has the same coefficients, but is written as by an
// encoder that makes a picture in one go. Measures the processor time of one thread. The two versions of a
// picture are decoded directly after each other, in alternating order.
// clang-format off
#include <cstdio>  // jpeglib.h needs FILE and size_t before it
#include <jpeglib.h>
// clang-format on

#include <cstdlib>
#include <memory>

#include "benchmarks/self/micro/microbench.hpp"
#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_jpeg_decode;

namespace {

// as many as the strata from which the recipe draws sizes, so that all sizes occur
constexpr size_t kPictures = 256;
constexpr size_t kSmokePictures = 4;

// Writes the coefficients of a JPEG again, in one go. If libjpeg finds an error, it prints a message and
// exits the program.
std::vector<std::byte> encode_in_one_go(std::span<const std::byte> jpeg) {
  jpeg_error_mgr errors{};
  jpeg_decompress_struct from{};
  jpeg_compress_struct to{};
  from.err = to.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&from);
  jpeg_create_compress(&to);
  jpeg_mem_src(&from, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&from, TRUE);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&from);
  jpeg_copy_critical_parameters(&from, &to);
  to.restart_interval = 0;
  to.restart_in_rows = 0;
  unsigned char* out = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&to, &out, &bytes);
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_finish_decompress(&from);
  const std::unique_ptr<unsigned char, decltype(&std::free)> owner(out, &std::free);
  const auto* const first = reinterpret_cast<const std::byte*>(out);
  std::vector<std::byte> plain(first, first + bytes);
  jpeg_destroy_compress(&to);
  jpeg_destroy_decompress(&from);
  return plain;
}

struct PictureVersions {
  std::vector<std::byte> composed;
  std::vector<std::byte> plain;
};

Result<std::vector<PictureVersions>> pairs_of(size_t count) {
  PENSTOCK_ASSIGN(std::vector<std::vector<std::byte>> jpegs, first_payloads("imagenet", count));
  std::vector<PictureVersions> pairs(jpegs.size());
  JpegDecoder decoder;
  Image composed;
  Image plain;
  for (size_t i = 0; i < jpegs.size(); ++i) {
    pairs[i] = {.composed = std::move(jpegs[i]), .plain = {}};
    pairs[i].plain = encode_in_one_go(pairs[i].composed);
    PENSTOCK_TRY(decoder.decode(pairs[i].composed, composed));
    PENSTOCK_TRY(decoder.decode(pairs[i].plain, plain));
    if (composed.pixels != plain.pixels)
      return make_error(Errc::internal, "a picture encoded plainly is another picture");
  }
  return pairs;
}

Result<void> decode(JpegDecoder& decoder, std::span<const std::byte> jpeg, Image& out, double& seconds) {
  const double start = thread_seconds();
  PENSTOCK_TRY(decoder.decode(jpeg, out));
  seconds += thread_seconds() - start;
  return success();
}

void compare(benchmark::State& state, size_t count) {
  const auto pairs = pairs_of(count);
  if (!pairs.ok()) return give_up(state, pairs.error());
  JpegDecoder decoder;
  Image image;
  double composed = 0;
  double plain = 0;
  double pixels = 0;
  double bytes = 0;
  size_t turn = 0;
  for (auto _ : state) {
    for (const PictureVersions& pair : *pairs) {
      const bool composed_first = turn++ % 2 == 0;
      for (const bool is_composed : {composed_first, !composed_first}) {
        const auto done = is_composed ? decode(decoder, pair.composed, image, composed)
                                      : decode(decoder, pair.plain, image, plain);
        if (!done.ok()) return give_up(state, done.error());
      }
      pixels += double(image.width) * image.height;
      bytes += double(pair.composed.size());
    }
    ++turn;  // so that the next iteration decodes the two versions in the other order
  }
  state.counters["bytes_per_s"] = bytes / composed;
  state.counters["composed_ns_pixel"] = composed * 1e9 / pixels;
  state.counters["plain_ns_pixel"] = plain * 1e9 / pixels;
  state.counters["dearer_by"] = composed / plain - 1;
}

void add(Microbench& to) {
  const size_t count = to.smoke() ? kSmokePictures : kPictures;
  to.add("", [count](benchmark::State& state) { compare(state, count); })->Unit(benchmark::kMillisecond);
}

}  // namespace

const MicrobenchInfo microbench_jpeg_decode{
    .name = "jpeg_decode",
    .summary = "composed pictures against the same ones encoded in one go, ns/pixel",
    .add = add};

}  // namespace penstock
