#include "datagen/content/content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/codec/zstd_size.hpp"
#include "datagen/format/sample_opener.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/objects/object_check.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {

namespace {

// bytes that are read at once; a multiple of the block size
constexpr uint64_t kPieceBytes = uint64_t{1} << 20U;

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

bool is_picture_codec(std::string_view codec) {
  return codec == "jpeg" || codec == "png";
}

// Decodes pictures, measures how long this takes, and collects the times and the sizes of the pictures.
class PictureMeter {
 public:
  void record_failure(const std::string& location, const std::string& why) {
    if (facts_.failed_count++ == 0) facts_.first_failure = location + ": " + why;
  }

  // Decodes the picture kDecodeRepeats times, and records its size and the times. If it cannot be decoded,
  // records a failure and returns no error. `location` says where the picture is; messages contain it.
  Result<void> add(std::span<const std::byte> picture, const std::string& location) {
    const Result<bool> is_png = is_png_not_jpeg(picture);
    if (!is_png.ok()) {
      record_failure(location, is_png.error().message());
      return success();
    }
    const bool png = *is_png;
    std::array<double, kDecodeRepeats> times_ns{};
    for (double& time_ns : times_ns) {
      PENSTOCK_TRY(check_interrupt());
      const double start = thread_seconds();
      const Result<void> decoded = png ? decode_png(picture, image_) : jpeg_.decode(picture, image_);
      time_ns = (thread_seconds() - start) * 1e9;
      if (!decoded.ok()) {
        record_failure(location, decoded.error().message());
        return success();
      }
    }
    if (image_.warnings.any()) facts_.warnings.add(image_.warnings, location);
    std::sort(times_ns.begin(), times_ns.end());
    const double time_ns = times_ns[kDecodeRepeats / 2];
    const auto bytes = double(picture.size());
    const double pixels = double(image_.width) * image_.height;
    bytes_per_pixel_.push_back(bytes / pixels);
    ns_per_pixel_.push_back(time_ns / pixels);
    ns_per_byte_.push_back(time_ns / bytes);
    ++(png ? facts_.png_count : facts_.jpeg_count);
    if (png) return success();
    PENSTOCK_ASSIGN(const JpegHeader header, jpeg_.read_header(picture));
    if (header.restart_interval > 0) ++facts_.with_restarts;
    return success();
  }

  PictureFacts facts() {
    facts_.bytes_per_pixel = median(bytes_per_pixel_);
    facts_.ns_per_pixel = median(ns_per_pixel_);
    facts_.ns_per_byte = median(ns_per_byte_);
    return std::move(facts_);
  }

 private:
  PictureFacts facts_;
  JpegDecoder jpeg_;
  Image image_;
  std::vector<double> bytes_per_pixel_;
  std::vector<double> ns_per_pixel_;
  std::vector<double> ns_per_byte_;
};

// Divides the corpus into `count` parts and selects one random sample from each. The numbers of samples of
// two parts differ by at most one. Returns the samples in the order of their objects and of their offsets in
// an object.
std::vector<uint64_t> draw_samples(const Manifest& manifest, uint64_t count, uint64_t seed) {
  const RandomStream random(seed, "describe content");
  const uint64_t part_samples = manifest.samples() / count;
  // number of parts with one sample more than the others; these parts come first
  const uint64_t longer_parts = manifest.samples() % count;
  std::vector<uint64_t> drawn(count);
  for (uint64_t i = 0; i < count; ++i)
    drawn[i] = i * part_samples + std::min(i, longer_parts) +
               random.below(i, part_samples + (i < longer_parts ? 1 : 0));
  std::sort(drawn.begin(), drawn.end(), [&](uint64_t a, uint64_t b) {
    const SampleEntry& first = manifest.sample(a);
    const SampleEntry& second = manifest.sample(b);
    return std::tuple(first.object, first.offset, a) < std::tuple(second.object, second.offset, b);
  });
  return drawn;
}

uint64_t samples_to_inspect(const Manifest& manifest, uint64_t requested) {
  if (requested > 0) return std::min(requested, manifest.samples());
  double bytes = 0;
  if (manifest.forms() == 0)
    for (uint64_t i = 0; i < manifest.objects(); ++i) bytes += double(manifest.object_bytes(i));
  else
    for (uint64_t i = 0; i < manifest.samples(); ++i) bytes += double(manifest.extent(i).bytes);
  const double fraction = double(kContentBytes) / std::max(bytes, 1.0);
  if (fraction >= 1) return manifest.samples();
  return std::max<uint64_t>(1, uint64_t(fraction * double(manifest.samples())));
}

struct ZstdMeters {
  ZstdSize each_sample;
  ZstdSize one_stream;

  static Result<ZstdMeters> start() {
    PENSTOCK_ASSIGN(ZstdSize each_sample, ZstdSize::start());
    PENSTOCK_ASSIGN(ZstdSize one_stream, ZstdSize::start());
    return ZstdMeters{std::move(each_sample), std::move(one_stream)};
  }
};

class ContentReader {
 public:
  ContentReader(Backend& backend, const Manifest& manifest, SampleOpener opener)
      : backend_(backend),
        manifest_(manifest),
        opener_(std::move(opener)),
        codec_(payload_codec(manifest.facts().codec)),
        piece_(kPieceBytes) {}

  Result<Content> run(const ContentRequest& request) {
    Content content{.seed = request.seed};
    const std::vector<uint64_t> drawn =
        draw_samples(manifest_, samples_to_inspect(manifest_, request.samples), request.seed);
    Progress progress_bar(request.progress, "content", drawn.size(), "samples");
    std::optional<Error> unreadable;
    for (const uint64_t index : drawn) {
      progress_bar.advance(1);
      if (Result<void> inspected = inspect(index); !inspected.ok()) {
        if (!concerns_object(inspected.error())) return std::move(inspected).error();
        ++content.unreadable_samples;
        if (!unreadable) unreadable = std::move(inspected).error();
        continue;
      }
      ++(manifest_.extent(index).bytes == 0 ? content.empty_samples : content.samples);
      content.bytes += inspected_bytes_;
    }
    if (unreadable && content.samples + content.empty_samples == 0) return *std::move(unreadable);
    if (unreadable) content.first_failure = unreadable->message();
    content.pictures = pictures_.facts();
    content.blocks = census_.counts();
    if (!zstd_.ok()) {
      content.zstd = zstd_.error();
      return content;
    }
    PENSTOCK_TRY(zstd_->one_stream.end_stream());
    content.zstd = Compression{zstd_->each_sample.ratio(), zstd_->one_stream.ratio()};
    return content;
  }

 private:
  // A byte range of an object.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  // The bytes from the beginning of the sample to the beginning of the next sample in its object. The first
  // sample of an object also gets all bytes before it, and the last sample all bytes after it.
  Range range_of(uint64_t index) const {
    const SampleEntry& sample = manifest_.sample(index);
    Range range{sample.offset, sample.offset + sample.length};
    if (index == 0 || manifest_.sample(index - 1).object != sample.object) range.begin = 0;
    const bool is_last =
        index + 1 == manifest_.samples() || manifest_.sample(index + 1).object != sample.object;
    range.end = std::max(
        range.end, is_last ? manifest_.object_bytes(sample.object) : manifest_.sample(index + 1).offset);
    return range;
  }

  Result<void> inspect(uint64_t index) {
    const SampleEntry& sample = manifest_.sample(index);
    if (sample.object != object_) {
      const std::string_view name = manifest_.object_name(sample.object, name_);
      PENSTOCK_ASSIGN(reader_, backend_.open(name));
      object_ = sample.object;
      object_codec_ = codec_of(name);
      counted_end_ = 0;
    }
    const uint64_t object_bytes = manifest_.object_bytes(sample.object);
    Range blocks = range_of(index);
    const Range pieces{std::min(blocks.begin, sample.offset) / kBlockBytes * kBlockBytes,
                       std::min((blocks.end + kBlockBytes - 1) / kBlockBytes * kBlockBytes, object_bytes)};
    blocks.begin = std::max(blocks.begin, counted_end_);
    counted_end_ = std::max(counted_end_, blocks.end);
    stored_.clear();
    bool is_packed = sample.form != 0;
    bool may_be_picture = false;
    for (uint64_t at = pieces.begin; at < pieces.end;) {
      PENSTOCK_TRY(check_interrupt());
      const auto piece = piece_.first(std::min(kPieceBytes, pieces.end - at));
      if (Result<void> read = reader_->read_at(at, piece); !read.ok()) {
        if (zstd_.ok() && at > sample.offset && !is_packed) PENSTOCK_TRY(zstd_->each_sample.end_stream());
        return read;
      }
      count_blocks(piece, at, blocks);
      const uint64_t begin = std::clamp(sample.offset, at, at + piece.size());
      const uint64_t end = std::clamp(sample.offset + sample.length, begin, at + piece.size());
      const auto payload = std::span<const std::byte>(piece).subspan(begin - at, end - begin);
      if (!payload.empty() && begin == sample.offset) {
        is_packed = is_packed || opener_.is_wrapped(payload);
        may_be_picture = is_picture(codec_, object_codec_, payload);
      }
      if (!is_packed) PENSTOCK_TRY(compress(payload));
      if (is_packed ? sample.length <= kMostUnpackedBytes
                    : may_be_picture && sample.length <= kMostPictureBytes)
        stored_.insert(stored_.end(), payload.begin(), payload.end());
      at += piece.size();
    }
    if (is_packed) return inspect_packed(index);
    inspected_bytes_ = sample.length;
    if (zstd_.ok() && sample.length > 0) PENSTOCK_TRY(zstd_->each_sample.end_stream());
    return may_be_picture ? inspect_picture(index, stored_, sample.length) : success();
  }

  Result<void> compress(std::span<const std::byte> payload) {
    if (!zstd_.ok()) return success();
    PENSTOCK_TRY(zstd_->each_sample.add(payload));
    return zstd_->one_stream.add(payload);
  }

  std::string location_of(uint64_t index) {
    const SampleEntry& sample = manifest_.sample(index);
    return fmt::format("'{}' at byte {}", manifest_.object_name(sample.object, name_), sample.offset);
  }

  // Undoes the form and the wrapping of the sample in stored_. Samples may share the bytes that they are
  // stored in, so its own bytes are those that count. Whether it is a picture is only known now.
  Result<void> inspect_packed(uint64_t index) {
    const uint64_t stored_bytes = manifest_.sample(index).length;
    if (stored_bytes > kMostUnpackedBytes)
      return make_error(Errc::unsupported, "{}: {} stored bytes are too many to decompress in memory",
                        location_of(index), stored_bytes);
    const Result<std::span<const std::byte>> opened = opener_.open(index, stored_);
    if (!opened.ok())
      return make_error(opened.error().code, "{}: {}", location_of(index), opened.error().what);
    inspected_bytes_ = opened->size();
    PENSTOCK_TRY(compress(*opened));
    if (zstd_.ok() && !opened->empty()) PENSTOCK_TRY(zstd_->each_sample.end_stream());
    if (!is_picture(codec_, object_codec_, *opened)) return success();
    return inspect_picture(index, *opened, opened->size());
  }

  // `picture` has all `bytes` bytes of the sample, unless there are more than kMostPictureBytes.
  Result<void> inspect_picture(uint64_t index, std::span<const std::byte> picture, uint64_t bytes) {
    if (bytes <= kMostPictureBytes) return pictures_.add(picture, location_of(index));
    pictures_.record_failure(location_of(index),
                             std::to_string(bytes) + " bytes are too large to decode in memory");
    return success();
  }

  void count_blocks(std::span<const std::byte> piece, uint64_t at, const Range& blocks) {
    for (uint64_t block = 0; block + kBlockBytes <= piece.size(); block += kBlockBytes)
      if (at + block >= blocks.begin && at + block < blocks.end)
        census_.add(piece.subspan(block).first<kBlockBytes>());
  }

  Backend& backend_;
  const Manifest& manifest_;
  SampleOpener opener_;
  std::string_view codec_;  // of the corpus, without wrapping
  PictureMeter pictures_;
  BlockCensus census_;
  Result<ZstdMeters> zstd_ = ZstdMeters::start();
  Buffer piece_;
  std::vector<std::byte> stored_;   // the bytes of a sample as they are stored, if it is a picture or packed
  uint64_t inspected_bytes_ = 0;    // bytes of the last sample, without its form and wrapping
  std::unique_ptr<Reader> reader_;  // reads the object with number object_
  uint32_t object_ = UINT32_MAX;
  std::string_view object_codec_;  // what the object's name says that it contains
  // Blocks of the object before this offset have been counted. They are not counted again: if two samples
  // overlap, their common bytes must not count as duplicates.
  uint64_t counted_end_ = 0;
  std::string name_;
};

}  // namespace

bool is_picture(std::string_view codec, std::string_view object_codec, std::span<const std::byte> beginning) {
  if (is_picture_codec(codec)) return true;
  return codec != "raw" &&
         (is_picture_codec(object_codec) || begins_with(beginning, "\xff\xd8\xff") || is_png(beginning));
}

Result<Content> measure_content(Backend& backend, const Manifest& manifest, const ContentRequest& request) {
  try {
    PENSTOCK_ASSIGN(SampleOpener opener, SampleOpener::make(manifest, kMostUnpackedBytes));
    return ContentReader(backend, manifest, std::move(opener)).run(request);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory to read the samples' content: choose fewer --samples");
  }
}

}  // namespace penstock
