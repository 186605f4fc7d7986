// Format: the binary files of CIFAR-10. A record has a label and a picture of 32 x 32 pixels in three planes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "datagen/format/coalescing_writer.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/object_names.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/format/scan_arrays.hpp"

namespace penstock {

extern const FormatInfo format_cifar;

namespace {

constexpr uint64_t kPictureBytes = 3072;  // 32 x 32 pixels, one plane each for red, green and blue
constexpr uint64_t kRecordBytes = 1 + kPictureBytes;
constexpr std::string_view kTrainPrefix = "data_batch_";
constexpr std::string_view kTestName = "test_batch";
constexpr std::string_view kCifarExtension = ".bin";

constexpr OptionSpec kCifarOptions[] = {
    {.name = "samples_per_file",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "10000",
     .help = "records per file; the last file is test_batch.bin, the others data_batch_1.bin and so on",
     .at_least = 1},
};

class CifarWriter final : public ObjectWriter {
 public:
  CifarWriter(Backend& backend, const ObjectPlan& plan)
      : backend_(backend), name_(plan.name), samples_(plan.samples) {}

  Result<Placement> add(const SampleBytes& sample) override {
    if (!writer_) {
      PENSTOCK_ASSIGN(auto writer, backend_.create(name_, samples_ * kRecordBytes));
      writer_.emplace(std::move(writer));
    }
    const FieldBytes& field = sample.fields.front();
    if (field.bytes != kPictureBytes || sample.label > 255)
      return make_error(Errc::invalid_argument,
                        "'{}' for '{}' has {} bytes and label {}; a CIFAR record has {} and a label up "
                        "to 255",
                        sample.key, name_, field.bytes, sample.label, kPictureBytes);
    const std::array label{static_cast<std::byte>(sample.label)};
    PENSTOCK_TRY(writer_->append(label));
    const Placement placement{writer_->offset(), kPictureBytes};
    PENSTOCK_TRY(writer_->append(field));
    return placement;
  }

  Result<PublishedObject> publish(Durability durability, const Approval& approve) override {
    if (!writer_ || writer_->offset() != samples_ * kRecordBytes)
      return make_error(Errc::internal, "'{}' is incomplete: it should have {} records", name_, samples_);
    return writer_->publish(durability, approve);
  }

 private:
  Backend& backend_;
  const std::string name_;
  const uint64_t samples_;
  std::optional<CoalescingWriter> writer_;
};

class Cifar final : public Format {
 public:
  explicit Cifar(uint64_t records_per_file) : records_per_file_(records_per_file) {}

  Result<void> check(std::span<const Field> fields) const override {
    if (fields.size() == 1 && !fields[0].varies && fields[0].element == Element::u8 &&
        field_bytes(fields[0]) == kPictureBytes)
      return success();
    return make_error(Errc::invalid_argument,
                      "a CIFAR record has one field of {} bytes (uint8, 3 x 32 x 32), and these samples have "
                      "{}, the first named {}: choose another --format",
                      kPictureBytes, fields.size(), fields[0].name);
  }

  uint64_t objects(uint64_t samples) const override {
    return samples / records_per_file_ + (samples % records_per_file_ != 0 ? 1 : 0);
  }
  uint64_t first_sample(uint64_t object, uint64_t /*samples*/) const override {
    return object * records_per_file_;
  }
  // Names the files as CIFAR-10 does. Of several files, the last is the one with test samples. A single file
  // gets the name of a file with training samples.
  std::string object_name(uint64_t object, uint64_t objects, std::string_view /*recipe*/,
                          std::string_view /*first_key*/, std::string_view /*extension*/) const override {
    if (objects > 1 && object + 1 == objects) return fmt::format("{}{}", kTestName, kCifarExtension);
    return fmt::format("{}{}{}", kTrainPrefix, object + 1, kCifarExtension);
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    return std::make_unique<CifarWriter>(backend, plan);
  }

  bool claims(std::string_view object_name) const override {
    if (is_hidden(object_name) || !object_name.ends_with(kCifarExtension)) return false;
    std::string_view base_name = object_name.substr(object_name.rfind('/') + 1);
    base_name.remove_suffix(kCifarExtension.size());
    if (base_name == kTestName) return true;
    return base_name.size() > kTrainPrefix.size() && base_name.starts_with(kTrainPrefix) &&
           base_name.find_first_not_of("0123456789", kTrainPrefix.size()) == std::string_view::npos;
  }

  Result<void> scan(Backend& backend, const Entry& object, const Visit& visit_sample) const override {
    PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, object));
    const uint64_t records = window.size() / kRecordBytes;
    if (records == 0 || window.size() % kRecordBytes != 0)
      return window.error(Errc::truncated, records * kRecordBytes,
                          fmt::format("the last CIFAR record has {} bytes instead of {}",
                                      window.size() % kRecordBytes, kRecordBytes));
    PENSTOCK_TRY(check_sample_count(window, records));
    for (uint64_t i = 0; i < records; ++i) {
      PENSTOCK_ASSIGN(const std::span<const std::byte> label, window.at(i * kRecordBytes, 1));
      visit_sample({.label_name = fmt::format("{}", std::to_integer<unsigned>(label[0])),
                    .placement = {i * kRecordBytes + 1, kPictureBytes},
                    .codec = "raw"});
    }
    return success();
  }

 private:
  const uint64_t records_per_file_;
};

Result<std::unique_ptr<Format>> make_cifar(const Options& options) {
  return std::make_unique<Cifar>(uint64_t(options.integer("samples_per_file")));
}

}  // namespace

const FormatInfo format_cifar{
    .name = "cifar",
    .summary = "CIFAR-10 binary files: records of a label and 3072 bytes of pixels",
    .options = kCifarOptions,
    .make = make_cifar,
};

}  // namespace penstock
