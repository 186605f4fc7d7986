// Format: TFRecord shards of tf.Example records, with the features of TensorFlow's own ImageNet script where
// samples are pictures. docs/formats.md says which.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/gathering_writer.hpp"
#include "datagen/format/object_names.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/format/sharded_format.hpp"
#include "datagen/format/tf_example.hpp"
#include "io_backends/base/tfrecord_framing.hpp"

namespace penstock {

extern const FormatInfo format_tfrecord;

namespace {

constexpr OptionSpec kOptions[] = {kDirsOption, kShardsOption, kSamplesPerFileOption};

constexpr std::string_view kImage = "image";

bool is_image(const Field& field) {
  return field.name == kImage && (field.codec == "jpeg" || field.codec == "png" || field.codec == "raw");
}

// TensorFlow's script says "JPEG".
std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

// The names of a field's features, made once an object.
struct FieldNames {
  std::string bytes;
  std::string shape;
  std::string dtype;
};

class TfRecordWriter final : public ObjectWriter {
 public:
  TfRecordWriter(std::unique_ptr<Writer> writer, const ObjectPlan& plan)
      : name_(plan.name), writer_(std::move(writer)), fields_(plan.fields) {
    for (const Field& field : fields_) {
      const std::string name(field.name);
      names_.push_back({is_image(field) ? name + "/encoded" : name, name + "/shape", name + "/dtype"});
      images_ = images_ || is_image(field);
      has_label_field_ = has_label_field_ || field.name == "label";
    }
  }

  Result<Placement> add(const SampleBytes& sample) override {
    example_.clear();
    describe(sample);
    for (std::size_t i = 0; i < fields_.size(); ++i) add_field(i, sample.fields[i]);
    pieces_.clear();
    const TfExampleWriter::Message message = example_.finish(pieces_);
    if (message.bytes > kMostExampleBytes)
      return make_error(Errc::invalid_argument,
                        fmt::format("sample '{}' for '{}' has {} bytes, and a tf.Example at most {}",
                                    sample.key, name_, message.bytes, kMostExampleBytes));
    const auto header = tfrecord_header(message.bytes);
    const auto footer = tfrecord_footer(message.crc32c);
    const std::uint64_t payload = writer_.offset() + header.size() + message.first_field_at;
    PENSTOCK_TRY(writer_.append(header));
    PENSTOCK_TRY(writer_.append({.pieces = pieces_, .bytes = message.bytes, .crc32c = message.crc32c}));
    PENSTOCK_TRY(writer_.append(footer));
    return Placement{payload, sample.fields.front().bytes};
  }

  Result<PublishedObject> publish(Durability durability) override { return writer_.publish(durability); }

 private:
  // What is said about the sample comes before its bytes, so that a scan need not go behind them.
  void describe(const SampleBytes& sample) {
    file_name_.assign(sample.key);
    file_name_ += fields_.front().extension;
    example_.add(images_ ? "image/filename" : "filename", file_name_);
    if (sample.label == kNoLabel || (has_label_field_ && !images_)) return;
    const std::uint64_t label = sample.label;
    example_.add(images_ ? "image/class/label" : "label", std::span(&label, 1));
    if (!sample.label_name.empty())
      example_.add(images_ ? "image/class/text" : "label/text", sample.label_name);
  }

  void add_field(std::size_t i, const FieldBytes& bytes) {
    const Field& field = fields_[i];
    if (is_image(field)) example_.add("image/format", upper(field.codec));
    if (!field.varies) {
      example_.add(names_[i].shape, field.shape);
      example_.add(names_[i].dtype, element_name(field.element));
    }
    example_.add(names_[i].bytes, bytes);
  }

  const std::string name_;
  GatheringWriter writer_;
  const std::span<const Field> fields_;
  std::vector<FieldNames> names_;
  bool images_ = false;
  bool has_label_field_ = false;
  TfExampleWriter example_;
  std::string file_name_;
  std::vector<std::span<const std::byte>> pieces_;
};

// "train-00003-of-01024", as TensorFlow's own scripts call their shards.
bool is_bare_shard(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  return extension_of(name).empty() && is_shard_name(name);
}

class TfRecord final : public ShardedFormat {
 public:
  explicit TfRecord(Shards shards) : ShardedFormat(shards, ".tfrecord") {}

  Result<void> check(std::span<const Field> fields) const override {
    std::uint64_t bytes = 0;
    for (const Field& field : fields) {
      const std::uint64_t its = field.varies ? 0 : field_bytes(field);
      if (its > kMostExampleBytes || (bytes += its) > kMostExampleBytes)
        return make_error(
            Errc::invalid_argument,
            fmt::format("a tf.Example has at most {} bytes, and these samples have more", kMostExampleBytes));
    }
    return success();
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    PENSTOCK_ASSIGN(auto writer, backend.create(plan.name));
    return std::make_unique<TfRecordWriter>(std::move(writer), plan);
  }

  bool claims(std::string_view object_name) const override {
    const std::string_view extension = extension_of(object_name);
    return !hidden(object_name) && (extension == ".tfrecord" || extension == ".tfrecords" ||
                                    extension == ".tfrec" || is_bare_shard(object_name));
  }

  Result<void> scan(Backend& backend, const Entry& object,
                    const std::function<void(const Found&)>& found) const override {
    PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, object));
    for (std::uint64_t at = 0; at < window.size();) {
      PENSTOCK_ASSIGN(const Extent message, next_message(window, at));
      PENSTOCK_ASSIGN(const TfExampleFound example, look_through_example(window, message));
      const Extent payload = example.payload.value_or(message);
      found({.label_name = example.label,
             .placement = {payload.offset, payload.length},
             .codec = example.codec,
             .statistics = example.statistics});
      at = message.offset + message.length + kTfRecordFooterBytes;
    }
    return success();
  }

 private:
  static Result<Extent> next_message(ObjectWindow& window, std::uint64_t at) {
    PENSTOCK_ASSIGN(const auto bytes, window.at(at, kTfRecordHeaderBytes));
    const std::uint64_t length = number_at(bytes, 0, 8);
    const bool right = tfrecord_payload_bytes(bytes.first<kTfRecordHeaderBytes>()) == length;
    if (kChecksumsCount && !right) {
      const bool gzip = at == 0 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
      if (gzip)
        return window.error(Errc::unsupported, at,
                            "compressed with gzip, where no sample has a place of its own; gunzip it first");
      return window.corrupt(at, "no TFRecord: the checksum of a record's length is wrong");
    }
    const std::uint64_t left = window.size() - at - kTfRecordHeaderBytes;
    if (left < kTfRecordFooterBytes || length > left - kTfRecordFooterBytes)
      return window.error(
          Errc::truncated, at,
          fmt::format("a record of {} bytes, but the object ends at {}", length, window.size()));
    return Extent{at + kTfRecordHeaderBytes, length};
  }
};

}  // namespace

const FormatInfo format_tfrecord{
    .name = "tfrecord",
    .summary = "TFRecord shards of tf.Example records, as TensorFlow reads them",
    .options = kOptions,
    .make = make_sharded<TfRecord>,
};

}  // namespace penstock
