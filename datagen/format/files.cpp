// Format: one file per sample, named after its key.

#include <memory>
#include <string>
#include <utility>

#include "datagen/format/format.hpp"
#include "datagen/format/object_names.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/format/sharded_format.hpp"

namespace penstock {

extern const FormatInfo format_files;

namespace {

constexpr OptionSpec kFilesOptions[] = {
    kDirsOption,
    {.name = "types",
     .role = OptionRole::work,
     .type = OptionType::text,
     .value = "EXT,...|any",
     .fallback = kDefaultSampleTypes,
     .help = "file extensions that --scan treats as samples, in any case; any: every file"},
};

class FileWriter final : public ObjectWriter {
 public:
  FileWriter(Backend& backend, std::string_view name) : backend_(backend), name_(name) {}

  Result<Placement> add(const SampleBytes& sample) override {
    if (writer_ != nullptr) return make_error(Errc::internal, "a second sample for the file '{}'", name_);
    const FieldBytes& file = sample.fields.front();
    PENSTOCK_ASSIGN(writer_, backend_.create(name_, file.bytes));
    PENSTOCK_TRY(writer_->append(file.pieces));
    object_ = {file.bytes, crc32c_of(file)};
    return Placement{0, file.bytes};
  }

  Result<PublishedObject> publish(Durability durability, const Approval& approve) override {
    if (writer_ == nullptr) return make_error(Errc::internal, "no sample for the file '{}'", name_);
    if (approve) PENSTOCK_TRY(approve(object_));
    PENSTOCK_TRY(writer_->publish(durability));
    return object_;
  }

 private:
  Backend& backend_;
  const std::string name_;
  std::unique_ptr<Writer> writer_;
  PublishedObject object_;
};

class Files final : public ShardedFormat {
 public:
  Files(Dirs dirs, SampleTypes types) : ShardedFormat(Shards(dirs), ""), types_(std::move(types)) {}

  Result<void> check(std::span<const Field> fields) const override {
    if (fields.size() == 1) return success();
    return make_error(Errc::invalid_argument,
                      "a file has one field, and these samples have {} ({}, {} ...): choose another --format",
                      fields.size(), fields[0].name, fields[1].name);
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    return std::make_unique<FileWriter>(backend, plan.name);
  }

  bool claims(std::string_view object_name) const override { return types_.accepts(object_name); }

  Result<void> scan(Backend& /*backend*/, const Entry& object, const Visit& visit_sample) const override {
    visit_sample({.label_name = {}, .placement = {0, object.bytes}});
    return success();
  }

 private:
  const SampleTypes types_;
};

Result<std::unique_ptr<Format>> make_files(const Options& options) {
  PENSTOCK_ASSIGN(SampleTypes types, SampleTypes::parse(options.text("types")));
  PENSTOCK_ASSIGN(const Dirs dirs, Dirs::parse(options));
  return std::make_unique<Files>(dirs, std::move(types));
}

}  // namespace

const FormatInfo format_files{
    .name = "files",
    .summary = "one file per sample, in class folders",
    .options = kFilesOptions,
    .make = make_files,
};

}  // namespace penstock
