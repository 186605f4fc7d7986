// Format: TFRecord shards of tf.Example records. Pictures have the features of TensorFlow's own ImageNet
// script, or those that DLIO reads if an option says so. docs/reference/formats.md lists the features.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datagen/codec/gzip.hpp"
#include "datagen/format/byte_order.hpp"
#include "datagen/format/coalescing_writer.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/object_names.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/format/sharded_format.hpp"
#include "datagen/format/tf_example.hpp"
#include "datagen/format/tfrecord_gzip.hpp"
#include "datagen/format/unpacked_window.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {

extern const FormatInfo format_tfrecord;

namespace {

constexpr OptionSpec kTfrecordOptions[] = {
    kDirsOption,
    kShardsOption,
    kSamplesPerFileOption,
    {.name = "features",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "tf|dlio",
     .fallback = "tf",
     .help = "feature names: those of TensorFlow's ImageNet script, or image and size as DLIO reads them"},
    {.name = "compression",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "none|gzip",
     .fallback = "none",
     .help = "gzip: each record is a separate gzip member, level 6"}};

constexpr std::string_view kImageName = "image";

bool is_image(const Field& field) {
  return field.name == kImageName && (field.codec == "jpeg" || field.codec == "png" || field.codec == "raw");
}

// The name of a feature that DLIO reads in addition to the payload, which it reads under the name "image".
// DLIO takes the payload as a square picture. This feature is the length of the picture's side in pixels: the
// square root of the number of bytes.
constexpr std::string_view kSizeName = "size";

uint64_t side_of_square(uint64_t bytes) {
  return uint64_t(std::sqrt(double(bytes)));
}

// The names of the features of a field. They are made once per object.
struct FieldNames {
  std::string bytes;
  std::string shape;
  std::string dtype;
};

class TfRecordWriter final : public ObjectWriter {
 public:
  // `gzip` compresses each record. If it is not set, records are stored uncompressed.
  TfRecordWriter(std::unique_ptr<Writer> writer, const ObjectPlan& plan, bool is_dlio,
                 std::optional<GzipMaker> gzip)
      : name_(plan.name),
        writer_(std::move(writer)),
        fields_(plan.fields),
        is_dlio_(is_dlio),
        gzip_(std::move(gzip)),
        size_only_(plan.size_only) {
    for (const Field& field : fields_) {
      const std::string name(is_dlio_ && names_.empty() ? kImageName : field.name);
      const bool is_named_image = !is_dlio_ && is_image(field);
      names_.push_back({is_named_image ? name + "/encoded" : name, name + "/shape", name + "/dtype"});
      has_image_names_ = has_image_names_ || is_named_image;
      has_label_field_ = has_label_field_ || field.name == "label";
    }
  }

  Result<Placement> add(const SampleBytes& sample) override {
    example_.clear();
    describe(sample);
    for (size_t i = 0; i < fields_.size(); ++i) add_field(i, sample.fields[i]);
    pieces_.clear();
    const TfExampleWriter::Message message = example_.finish(pieces_);
    if (message.bytes > kMostExampleBytes)
      return make_error(Errc::invalid_argument,
                        "sample '{}' for '{}' has {} bytes, and a tf.Example at most {}", sample.key, name_,
                        message.bytes, kMostExampleBytes);
    const auto header = tfrecord_header(message.bytes);
    const auto footer = tfrecord_footer(message.crc32c);
    if (gzip_ && !size_only_) return add_member(header, footer);
    const uint64_t payload_offset = writer_.offset() + header.size() + message.first_field_offset;
    PENSTOCK_TRY(writer_.append(header));
    PENSTOCK_TRY(writer_.append({.pieces = pieces_, .bytes = message.bytes, .crc32c = message.crc32c}));
    PENSTOCK_TRY(writer_.append(footer));
    if (gzip_) PENSTOCK_TRY(append_gzip_overhead(header.size() + message.bytes + footer.size()));
    return Placement{payload_offset, sample.fields.front().bytes};
  }

  Result<PublishedObject> publish(Durability durability, const Approval& approve) override {
    return writer_.publish(durability, approve);
  }

 private:
  // Adds the features that describe the sample. They come before the sample's bytes, so that a scan need not
  // read past the bytes.
  void describe(const SampleBytes& sample) {
    file_name_.assign(sample.key);
    file_name_ += fields_.front().extension;
    example_.add(has_image_names_ ? "image/filename" : "filename", file_name_);
    if (is_dlio_) {
      const uint64_t side = side_of_square(sample.fields.front().bytes);
      example_.add(kSizeName, std::span(&side, 1));
    }
    if (sample.label == kNoLabel) return;
    const uint64_t label = sample.label;
    if (has_image_names_ || !has_label_field_)
      example_.add(has_image_names_ ? "image/class/label" : "label", std::span(&label, 1));
    if (!sample.label_name.empty())
      example_.add(has_image_names_ ? "image/class/text" : "label/text", sample.label_name);
  }

  // Compresses header, pieces_ and footer as one gzip member and writes it.
  Result<Placement> add_member(std::span<const std::byte> header, std::span<const std::byte> footer) {
    pieces_.insert(pieces_.begin(), header);
    pieces_.push_back(footer);
    const uint64_t begin = writer_.offset();
    uint32_t crc = 0;
    PENSTOCK_TRY(gzip_->make(pieces_, [this, &crc](std::span<const std::byte> bytes) {
      const uint32_t piece_crc = crc32c(bytes);
      crc = crc32c_combine(crc, piece_crc, bytes.size());
      return writer_.append(FieldBytes{.pieces = {&bytes, 1}, .bytes = bytes.size(), .crc32c = piece_crc});
    }));
    return Placement{begin, writer_.offset() - begin, crc};
  }

  Result<void> append_gzip_overhead(uint64_t record_bytes) {
    static constexpr std::array<std::byte, 4096> kZeros{};
    for (uint64_t bytes_left = gzip_->max_member_bytes(record_bytes) - record_bytes; bytes_left > 0;) {
      const auto zero_bytes = size_t(std::min<uint64_t>(bytes_left, kZeros.size()));
      PENSTOCK_TRY(writer_.append(std::span(kZeros).first(zero_bytes)));
      bytes_left -= zero_bytes;
    }
    return success();
  }

  void add_field(size_t i, const FieldBytes& bytes) {
    const Field& field = fields_[i];
    if (has_image_names_ && is_image(field)) example_.add("image/format", upper_case(field.codec));  // "JPEG"
    if (!field.varies) {
      example_.add(names_[i].shape, field.shape);
      example_.add(names_[i].dtype, element_name(field.element));
    }
    example_.add(names_[i].bytes, bytes);
  }

  const std::string name_;
  CoalescingWriter writer_;
  const std::span<const Field> fields_;
  const bool is_dlio_;
  std::vector<FieldNames> names_;
  bool has_image_names_ = false;  // whether fields have the names of TensorFlow's ImageNet script
  bool has_label_field_ = false;
  TfExampleWriter example_;
  std::string file_name_;
  std::vector<std::span<const std::byte>> pieces_;
  std::optional<GzipMaker> gzip_;
  const bool size_only_;
};

bool has_tfrecord_extension(std::string_view name) {
  return has_extension(name, ".tfrecord") || has_extension(name, ".tfrecords") ||
         has_extension(name, ".tfrec") || has_extension(name, ".tfr") || has_extension(name, ".record") ||
         has_extension(name, ".records");
}

// Removes a number after the last dot: "train.tfrecord" for "train.tfrecord.1".
std::string_view without_number(std::string_view name) {
  const size_t last_of_stem = name.find_last_not_of("0123456789");
  const bool has_number =
      last_of_stem != std::string_view::npos && last_of_stem + 1 < name.size() && name[last_of_stem] == '.';
  return has_number ? name.substr(0, last_of_stem) : name;
}

// Whether the name looks like that of a TFRecord object. Accepts the extensions of TFRecord, also with a
// number after them ("train.tfrecord.1"), the shards of TensorFlow's own scripts ("train-00003-of-01024"),
// and those of TensorFlow Datasets
// ("mnist-train.tfrecord-00000-of-00001"). Does not accept a shard number after any other extension, because
// checkpoints have such names ("model.data-00000-of-00001").
bool is_tfrecord_name(std::string_view object_name) {
  if (has_tfrecord_extension(without_number(object_name))) return true;
  // If the name has no '/', rfind() returns npos, npos + 1 is 0, and the whole name is taken.
  const std::optional<std::string_view> stem =
      before_shard_number(object_name.substr(object_name.rfind('/') + 1));
  return stem && (stem->find('.') == std::string_view::npos || has_tfrecord_extension(*stem));
}

class TfRecord final : public ShardedFormat {
 public:
  TfRecord(Shards shards, bool is_dlio, bool gzip)
      : ShardedFormat(shards, gzip ? kTfRecordGzip : ".tfrecord"), is_dlio_(is_dlio), gzip_(gzip) {}

  Result<void> check(std::span<const Field> fields) const override {
    uint64_t bytes = 0;
    for (const Field& field : fields) {
      const uint64_t one_field_bytes = field.varies ? 0 : field_bytes(field);
      if (one_field_bytes > kMostExampleBytes || (bytes += one_field_bytes) > kMostExampleBytes)
        return make_error(
            Errc::invalid_argument,
            "a tf.Example has at most {} bytes, and these samples have more: choose another --format",
            kMostExampleBytes);
      if (is_dlio_ && &field != fields.data() && (field.name == kImageName || field.name == kSizeName))
        return make_error(
            Errc::invalid_argument,
            "features=dlio adds a feature '{}', and these samples already have a field of that name",
            field.name);
    }
    return success();
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    PENSTOCK_ASSIGN(auto writer, backend.create(plan.name));
    if (!gzip_) return std::make_unique<TfRecordWriter>(std::move(writer), plan, is_dlio_, std::nullopt);
    PENSTOCK_ASSIGN(GzipMaker gzip, GzipMaker::start());
    return std::make_unique<TfRecordWriter>(std::move(writer), plan, is_dlio_, std::move(gzip));
  }

  std::string_view wrapping() const override { return gzip_ ? kTfRecordGzip : std::string_view{}; }

  bool claims(std::string_view object_name) const override {
    std::string_view uncompressed_name = object_name;
    for (const std::string_view suffix : kCompressionSuffixes)
      if (has_extension(object_name, suffix)) uncompressed_name.remove_suffix(suffix.size());
    return !is_hidden(object_name) && is_tfrecord_name(uncompressed_name);
  }

  Result<void> scan(Backend& backend, const Entry& object, const Visit& visit_sample) const override {
    PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, object));
    PENSTOCK_ASSIGN(const std::optional<DeflateFormat> compression, compression_of(window));
    if (compression) return scan_tfrecord_stream(window, *compression, visit_sample);
    for (uint64_t at = 0; at < window.size();) {
      PENSTOCK_ASSIGN(const Extent message, next_message(window, at));
      PENSTOCK_ASSIGN(const TfExampleParts example, find_in_record(window, message));
      const Extent payload = example.payload.value_or(message);
      visit_sample({.label_name = example.label,
                    .placement = {payload.offset, payload.length},
                    .codec = example.codec,
                    .holds_statistics = example.holds_statistics});
      at = message.offset + message.length + kTfRecordFooterBytes;
    }
    return success();
  }

 private:
  // Of these gzip and zlib are read; the others are named as what they are.
  static constexpr std::string_view kCompressionSuffixes[] = {".gz",  ".zlib", ".zz", ".z",
                                                              ".bz2", ".xz",   ".zst"};

  // How the object is compressed; nothing if it is not. The content decides, not the name. An object that
  // begins with the two bytes of gzip or zlib is still uncompressed if its first record has a length with a
  // correct checksum.
  static Result<std::optional<DeflateFormat>> compression_of(ObjectWindow& window) {
    const auto inspected = size_t(std::min<uint64_t>(window.size(), kTfRecordHeaderBytes));
    PENSTOCK_ASSIGN(const auto bytes, window.at(0, inspected));
    const bool is_record =
        inspected == kTfRecordHeaderBytes && tfrecord_payload_bytes(bytes.first<kTfRecordHeaderBytes>());
    if (is_record) return std::optional<DeflateFormat>();
    if (begins_as_gzip(bytes)) return std::optional(DeflateFormat::gzip);
    if (!begins_as_zlib(bytes)) return std::optional<DeflateFormat>();
    // Other bytes often begin so, too. What is inflated must begin as a record.
    PENSTOCK_ASSIGN(const auto stream, StreamWindow::make(window, DeflateFormat::zlib, {0, window.size()}));
    const Result<bool> is_empty = stream->ends_at(0);
    if (is_empty.ok() && *is_empty) return std::optional(DeflateFormat::zlib);
    const auto header = stream->at(0, kTfRecordHeaderBytes);
    const bool is_stream = header.ok() && tfrecord_payload_bytes(header->first<kTfRecordHeaderBytes>());
    return is_stream || !kVerifyChecksums ? std::optional(DeflateFormat::zlib) : std::nullopt;
  }

  static Result<Extent> next_message(ObjectWindow& window, uint64_t at) {
    PENSTOCK_ASSIGN(const auto bytes, window.at(at, kTfRecordHeaderBytes));
    const uint64_t length = number_at(bytes, 0, 8);
    const bool is_valid = tfrecord_payload_bytes(bytes.first<kTfRecordHeaderBytes>()) == length;
    if (kVerifyChecksums && !is_valid)
      return window.corrupt(at, "not a TFRecord: the checksum of a record's length is wrong");
    const uint64_t bytes_left = window.size() - at - kTfRecordHeaderBytes;
    if (bytes_left < kTfRecordFooterBytes || length > bytes_left - kTfRecordFooterBytes)
      return window.error(
          Errc::truncated, at,
          fmt::format("a record of {} bytes, but the object ends at {}", length, window.size()));
    return Extent{at + kTfRecordHeaderBytes, length};
  }

  const bool is_dlio_;
  const bool gzip_;
};

Result<std::unique_ptr<Format>> make_tfrecord(const Options& options) {
  PENSTOCK_ASSIGN(const Shards shards, Shards::parse(options));
  const bool gzip = options.text("compression") == "gzip";
  if (gzip) {
    if (const Result<void> available = gzip_available(); !available.ok())
      return make_error(available.error().code, "compression=gzip: " + available.error().what);
  }
  return std::make_unique<TfRecord>(shards, options.text("features") == "dlio", gzip);
}

}  // namespace

const FormatInfo format_tfrecord{
    .name = "tfrecord",
    .summary = "TFRecord shards of tf.Example records, as in TensorFlow",
    .options = kTfrecordOptions,
    .make = make_tfrecord,
};

}  // namespace penstock
