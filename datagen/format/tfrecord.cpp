// Format: TFRecord shards of tf.Example records. Pictures have the features of TensorFlow's own ImageNet
// script; an option selects those that DLIO reads. docs/formats.md lists them.
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
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {

extern const FormatInfo format_tfrecord;

namespace {

constexpr OptionSpec kOptions[] = {kDirsOption,
                                   kShardsOption,
                                   kSamplesPerFileOption,
                                   {.name = "features",
                                    .role = OptionRole::work,
                                    .type = OptionType::choice,
                                    .value = "tf|dlio",
                                    .fallback = "tf",
                                    .help = "names in a record: of TensorFlow's ImageNet script, or "
                                            "image and size, which DLIO reads"},
                                   {.name = "compression",
                                    .role = OptionRole::work,
                                    .type = OptionType::choice,
                                    .value = "none|gzip",
                                    .fallback = "none",
                                    .help = "gzip: each record a gzip member of its own, level 6"}};

constexpr std::string_view kImage = "image";

bool is_image(const Field& field) {
  return field.name == kImage && (field.codec == "jpeg" || field.codec == "png" || field.codec == "raw");
}

// DLIO reads two features of a record: the payload, and the side of the square that it represents.
constexpr std::string_view kSize = "size";

std::uint64_t side_of_square(std::uint64_t bytes) {
  return static_cast<std::uint64_t>(std::sqrt(static_cast<double>(bytes)));
}

// The names of a field's features, made once per object.
struct FieldNames {
  std::string bytes;
  std::string shape;
  std::string dtype;
};

class TfRecordWriter final : public ObjectWriter {
 public:
  // `gzip` compresses each record; nothing: records are stored uncompressed.
  TfRecordWriter(std::unique_ptr<Writer> writer, const ObjectPlan& plan, bool dlio,
                 std::optional<GzipMaker> gzip)
      : name_(plan.name),
        writer_(std::move(writer)),
        fields_(plan.fields),
        dlio_(dlio),
        gzip_(std::move(gzip)),
        for_size_(plan.for_size) {
    for (const Field& field : fields_) {
      const std::string name(dlio_ && names_.empty() ? kImage : field.name);
      const bool image = !dlio_ && is_image(field);
      names_.push_back({image ? name + "/encoded" : name, name + "/shape", name + "/dtype"});
      images_ = images_ || image;
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
    if (gzip_ && !for_size_) return add_member(header, footer);
    const std::uint64_t payload = writer_.offset() + header.size() + message.first_field_at;
    PENSTOCK_TRY(writer_.append(header));
    PENSTOCK_TRY(writer_.append({.pieces = pieces_, .bytes = message.bytes, .crc32c = message.crc32c}));
    PENSTOCK_TRY(writer_.append(footer));
    if (gzip_) PENSTOCK_TRY(append_gzip_overhead(header.size() + message.bytes + footer.size()));
    return Placement{payload, sample.fields.front().bytes};
  }

  Result<PublishedObject> publish(Durability durability, const Approval& approve) override {
    return writer_.publish(durability, approve);
  }

 private:
  // Features that describe the sample come before its bytes, so that a scan need not read past the bytes.
  void describe(const SampleBytes& sample) {
    file_name_.assign(sample.key);
    file_name_ += fields_.front().extension;
    example_.add(images_ ? "image/filename" : "filename", file_name_);
    if (dlio_) {
      const std::uint64_t side = side_of_square(sample.fields.front().bytes);
      example_.add(kSize, std::span(&side, 1));
    }
    if (sample.label == kNoLabel) return;
    const std::uint64_t label = sample.label;
    if (images_ || !has_label_field_)
      example_.add(images_ ? "image/class/label" : "label", std::span(&label, 1));
    if (!sample.label_name.empty())
      example_.add(images_ ? "image/class/text" : "label/text", sample.label_name);
  }

  // Writes the record in pieces_, compressed.
  Result<Placement> add_member(std::span<const std::byte> header, std::span<const std::byte> footer) {
    pieces_.insert(pieces_.begin(), header);
    pieces_.push_back(footer);
    const std::uint64_t at = writer_.offset();
    std::uint32_t crc = 0;
    PENSTOCK_TRY(gzip_->make(pieces_, [this, &crc](std::span<const std::byte> bytes) {
      const std::uint32_t its = crc32c(bytes);
      crc = crc32c_combine(crc, its, bytes.size());
      return writer_.append(FieldBytes{.pieces = {&bytes, 1}, .bytes = bytes.size(), .crc32c = its});
    }));
    return Placement{at, writer_.offset() - at, crc};
  }

  Result<void> append_gzip_overhead(std::uint64_t record_bytes) {
    static constexpr std::array<std::byte, 4096> kZeros{};
    for (std::uint64_t left = gzip_->most(record_bytes) - record_bytes; left > 0;) {
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(left, kZeros.size()));
      PENSTOCK_TRY(writer_.append(std::span(kZeros).first(some)));
      left -= some;
    }
    return success();
  }

  void add_field(std::size_t i, const FieldBytes& bytes) {
    const Field& field = fields_[i];
    if (images_ && is_image(field)) example_.add("image/format", upper_case(field.codec));  // "JPEG"
    if (!field.varies) {
      example_.add(names_[i].shape, field.shape);
      example_.add(names_[i].dtype, element_name(field.element));
    }
    example_.add(names_[i].bytes, bytes);
  }

  const std::string name_;
  CoalescingWriter writer_;
  const std::span<const Field> fields_;
  const bool dlio_;
  std::vector<FieldNames> names_;
  bool images_ = false;  // whether fields have the names of the script
  bool has_label_field_ = false;
  TfExampleWriter example_;
  std::string file_name_;
  std::vector<std::span<const std::byte>> pieces_;
  std::optional<GzipMaker> gzip_;
  const bool for_size_;
};

bool has_tfrecord_extension(std::string_view name) {
  return has_extension(name, ".tfrecord") || has_extension(name, ".tfrecords") ||
         has_extension(name, ".tfrec");
}

// Also accepts "train-00003-of-01024", the shards of TensorFlow's own scripts, and
// "mnist-train.tfrecord-00000-of-00001" of TensorFlow Datasets. With another extension, a shard number proves
// nothing: checkpoints are named "model.data-00000-of-00001".
bool is_tfrecord_name(std::string_view object_name) {
  if (has_tfrecord_extension(object_name)) return true;
  const std::optional<std::string_view> stem =
      before_shard_number(object_name.substr(object_name.rfind('/') + 1));  // also without '/': npos + 1 is 0
  return stem && (stem->find('.') == std::string_view::npos || has_tfrecord_extension(*stem));
}

class TfRecord final : public ShardedFormat {
 public:
  TfRecord(Shards shards, bool dlio, bool gzip)
      : ShardedFormat(shards, gzip ? kTfRecordGzip : ".tfrecord"), dlio_(dlio), gzip_(gzip) {}

  Result<void> check(std::span<const Field> fields) const override {
    std::uint64_t bytes = 0;
    for (const Field& field : fields) {
      const std::uint64_t its = field.varies ? 0 : field_bytes(field);
      if (its > kMostExampleBytes || (bytes += its) > kMostExampleBytes)
        return make_error(
            Errc::invalid_argument,
            fmt::format("a tf.Example has at most {} bytes, and these samples have more", kMostExampleBytes));
      if (dlio_ && &field != fields.data() && (field.name == kImage || field.name == kSize))
        return make_error(
            Errc::invalid_argument,
            fmt::format("features=dlio has a feature '{}' of its own, and these samples a second field of "
                        "that name",
                        field.name));
    }
    return success();
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    PENSTOCK_ASSIGN(auto writer, backend.create(plan.name));
    if (!gzip_) return std::make_unique<TfRecordWriter>(std::move(writer), plan, dlio_, std::nullopt);
    PENSTOCK_ASSIGN(GzipMaker gzip, GzipMaker::start());
    return std::make_unique<TfRecordWriter>(std::move(writer), plan, dlio_, std::move(gzip));
  }

  std::string_view wrapping() const override { return gzip_ ? kTfRecordGzip : std::string_view{}; }

  bool claims(std::string_view object_name) const override {
    const std::string_view plain = has_extension(object_name, kGz)
                                       ? object_name.substr(0, object_name.size() - kGz.size())
                                       : object_name;
    return !hidden(object_name) && is_tfrecord_name(plain);
  }

  Result<void> scan(Backend& backend, const Entry& object, const Visit& found) const override {
    PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, object));
    PENSTOCK_ASSIGN(const bool gzip, is_gzip(window));
    if (gzip) return scan_tfrecord_gzip(window, found);
    for (std::uint64_t at = 0; at < window.size();) {
      PENSTOCK_ASSIGN(const Extent message, next_message(window, at));
      PENSTOCK_ASSIGN(const TfExampleParts example, find_in_example(window, message));
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
  static constexpr std::string_view kGz = ".gz";

  // Decides by the content, not by the name. A plain record may begin with gzip's two bytes, but the checksum
  // of its length distinguishes it.
  static Result<bool> is_gzip(ObjectWindow& window) {
    const auto inspected =
        static_cast<std::size_t>(std::min<std::uint64_t>(window.size(), kTfRecordHeaderBytes));
    PENSTOCK_ASSIGN(const auto bytes, window.at(0, inspected));
    if (!begins_as_gzip(bytes)) return false;
    return inspected < kTfRecordHeaderBytes || !tfrecord_payload_bytes(bytes.first<kTfRecordHeaderBytes>());
  }

  static Result<Extent> next_message(ObjectWindow& window, std::uint64_t at) {
    PENSTOCK_ASSIGN(const auto bytes, window.at(at, kTfRecordHeaderBytes));
    const std::uint64_t length = number_at(bytes, 0, 8);
    const bool right = tfrecord_payload_bytes(bytes.first<kTfRecordHeaderBytes>()) == length;
    if (kChecksumsCount && !right)
      return window.corrupt(at, "no TFRecord: the checksum of a record's length is wrong");
    const std::uint64_t left = window.size() - at - kTfRecordHeaderBytes;
    if (left < kTfRecordFooterBytes || length > left - kTfRecordFooterBytes)
      return window.error(
          Errc::truncated, at,
          fmt::format("a record of {} bytes, but the object ends at {}", length, window.size()));
    return Extent{at + kTfRecordHeaderBytes, length};
  }

  const bool dlio_;
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
    .summary = "TFRecord shards of tf.Example records, as TensorFlow reads them",
    .options = kOptions,
    .make = make_tfrecord,
};

}  // namespace penstock
