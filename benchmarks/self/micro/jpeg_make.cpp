// Micro-benchmark: composes imagenet's pictures of strips that are already coded. The baseline is a bare
// libjpeg-turbo loop that encodes pixels which are already in memory. These are the pixels of the composed
// pictures, which were decoded before. They are encoded with their own quantizers into files of about the
// same sizes. Decoding and encoding adds noise, so a picture that would become larger gets slightly coarser
// quantizers. Measures the processor time of one thread. Repeats of composing and of encoding alternate.
// clang-format off
#include <cstdio>  // jpeglib.h needs FILE and size_t before it
#include <jpeglib.h>
// clang-format on

#include <algorithm>
#include <array>

#include "benchmarks/self/micro/microbench.hpp"
#include "datagen/codec/jpeg.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_jpeg_make;

namespace {

// as many as the strata from which the recipe draws sizes, so that all sizes occur
constexpr size_t kPictures = 256;
constexpr size_t kSmokePictures = 4;
// Rounds of composing for each round of encoding, so that both last long enough to be timed.
constexpr uint64_t kComposingRounds = 16;
// After these, the strips of nearly all widths and quantizers are made.
constexpr size_t kWarmUpRounds = 8;
constexpr JDIMENSION kRowsAtOnce = 16;

using Quantizers = std::array<JQUANT_TBL, 2>;  // luma, colour

struct Picture {
  Image image;
  Quantizers quantizers{};
};

Quantizers quantizers_of(std::span<const std::byte> jpeg) {
  jpeg_error_mgr errors{};
  jpeg_decompress_struct codec{};
  codec.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&codec);
  jpeg_mem_src(&codec, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&codec, TRUE);
  const Quantizers tables{*codec.quant_tbl_ptrs[0], *codec.quant_tbl_ptrs[1]};
  jpeg_destroy_decompress(&codec);
  return tables;
}

// The bare encoding loop. If libjpeg finds an error, it prints a message and exits the program.
class BareEncoder {
 public:
  BareEncoder() {
    codec_.err = jpeg_std_error(&errors_);
    jpeg_create_compress(&codec_);
  }
  ~BareEncoder() { jpeg_destroy_compress(&codec_); }
  BareEncoder(const BareEncoder&) = delete;
  BareEncoder& operator=(const BareEncoder&) = delete;

  size_t encode(const Picture& picture) {
    const Image& image = picture.image;
    if (out_.size() < image.pixels.size()) out_.resize(image.pixels.size());
    unsigned char* out = out_.data();
    unsigned long bytes = out_.size();
    jpeg_mem_dest(&codec_, &out, &bytes);
    codec_.image_width = image.width;
    codec_.image_height = image.height;
    codec_.input_components = 3;
    codec_.in_color_space = JCS_RGB;
    jpeg_set_defaults(&codec_);  // 4:2:0, fixed Huffman tables
    for (size_t i = 0; i < picture.quantizers.size(); ++i) {
      *codec_.quant_tbl_ptrs[i] = picture.quantizers[i];
      codec_.quant_tbl_ptrs[i]->sent_table = FALSE;
    }
    jpeg_start_compress(&codec_, TRUE);
    const size_t stride = size_t{image.width} * 3;
    std::array<JSAMPROW, kRowsAtOnce> rows{};
    while (codec_.next_scanline < codec_.image_height) {
      const JDIMENSION count = std::min(kRowsAtOnce, codec_.image_height - codec_.next_scanline);
      for (JDIMENSION i = 0; i < count; ++i)
        rows[i] = const_cast<JSAMPROW>(image.pixels.data() + (codec_.next_scanline + i) * stride);
      jpeg_write_scanlines(&codec_, rows.data(), count);
    }
    jpeg_finish_compress(&codec_);
    return bytes;
  }

 private:
  jpeg_error_mgr errors_{};
  jpeg_compress_struct codec_{};
  std::vector<unsigned char> out_;
};

Quantizers coarser(Quantizers tables, unsigned sixteenths) {
  for (JQUANT_TBL& table : tables)
    for (UINT16& step : table.quantval) step = static_cast<UINT16>((step * sixteenths + 8U) / 16);
  return tables;
}

// Sets the finest quantizers with which the picture takes at most `bytes` bytes. Starts with the picture's
// own quantizers and makes them coarser step by step.
void fit_quantizers(BareEncoder& encoder, Picture& picture, size_t bytes) {
  const Quantizers own = picture.quantizers;
  constexpr unsigned kCoarsest = 64;
  for (unsigned sixteenths = 16; sixteenths <= kCoarsest; sixteenths += std::max(1U, sixteenths / 16)) {
    picture.quantizers = coarser(own, sixteenths);
    if (encoder.encode(picture) <= bytes) return;
  }
}

Result<std::vector<Picture>> decoded_pictures(BareEncoder& encoder, size_t count) {
  PENSTOCK_ASSIGN(const std::vector<std::vector<std::byte>> jpegs, first_payloads("imagenet", count));
  std::vector<Picture> pictures(jpegs.size());
  JpegDecoder decoder;
  for (size_t i = 0; i < jpegs.size(); ++i) {
    PENSTOCK_TRY(decoder.decode(jpegs[i], pictures[i].image));
    pictures[i].quantizers = quantizers_of(jpegs[i]);
    fit_quantizers(encoder, pictures[i], jpegs[i].size());
  }
  return pictures;
}

struct Round {
  double seconds = 0;
  size_t samples = 0;
  size_t bytes = 0;
  double rate() const { return double(samples) / seconds; }
};

void encode_round(BareEncoder& encoder, const std::vector<Picture>& pictures, Round& sum) {
  const double start = thread_seconds();
  for (const Picture& picture : pictures) sum.bytes += encoder.encode(picture);
  sum.seconds += thread_seconds() - start;
  sum.samples += pictures.size();
}

Result<void> compose_round(SampleMaker& maker, uint64_t samples, uint64_t& next, Round& sum) {
  const double start = thread_seconds();
  for (const uint64_t end = next + samples; next < end; ++next) {
    PENSTOCK_ASSIGN(const std::span<const FieldBytes> made, maker.make(next));
    sum.bytes += made.front().bytes;
  }
  sum.seconds += thread_seconds() - start;
  sum.samples += samples;
  return success();
}

void compare(benchmark::State& state, size_t count) {
  BareEncoder encoder;
  const auto pictures = decoded_pictures(encoder, count);
  if (!pictures.ok()) return give_up(state, pictures.error());
  const auto recipe = default_recipe("imagenet");
  if (!recipe.ok()) return give_up(state, recipe.error());
  const auto maker = (*recipe)->maker();
  if (!maker.ok()) return give_up(state, maker.error());
  uint64_t next = 0;
  Round encoded;
  Round composed;
  Round warm_up;
  encode_round(encoder, *pictures, warm_up);
  if (const auto made = compose_round(**maker, count * kWarmUpRounds, next, warm_up); !made.ok())
    return give_up(state, made.error());
  for (auto _ : state) {
    encode_round(encoder, *pictures, encoded);
    if (const auto made = compose_round(**maker, count * kComposingRounds, next, composed); !made.ok())
      return give_up(state, made.error());
  }
  const auto mean_bytes = [](const Round& round) { return double(round.bytes) / double(round.samples); };
  state.counters["encoded_per_s"] = encoded.rate();
  state.counters["composed_per_s"] = composed.rate();
  state.counters["times"] = composed.rate() / encoded.rate();
  state.counters["encoded_bytes"] = mean_bytes(encoded);
  state.counters["composed_bytes"] = mean_bytes(composed);
}

void add(Microbench& to) {
  const size_t count = to.smoke() ? kSmokePictures : kPictures;
  to.add("", [count](benchmark::State& state) { compare(state, count); })->Unit(benchmark::kMillisecond);
}

}  // namespace

const MicrobenchInfo microbench_jpeg_make{
    .name = "jpeg_make",
    .summary = "pictures composed against pictures encoded, samples/s of one core",
    .add = add};

}  // namespace penstock
