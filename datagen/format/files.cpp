// Format: one file a sample, named after its key.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <utility>

#include "datagen/format/format.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/name_hash.hpp"

namespace penstock {

extern const FormatInfo format_files;

namespace {

constexpr OptionSpec kOptions[] = {
    {.name = "dirs",
     .type = OptionType::text,
     .value = "class|flat|hash:K",
     .fallback = "class",
     .help = "folders: one a class, none, or K by a hash of the name"},
    {.name = "types",
     .type = OptionType::text,
     .value = "EXT,...|any",
     .fallback = kDefaultSampleTypes,
     .help = "extensions that --scan takes for samples, in any case; any: every file"},
};

enum class Dirs : std::uint8_t { of_class, flat, hash };

class FileWriter final : public ObjectWriter {
 public:
  FileWriter(Backend& backend, std::string_view name) : backend_(backend), name_(name) {}

  Result<Placement> add(const SampleBytes& sample) override {
    if (writer_ != nullptr)
      return make_error(Errc::internal, fmt::format("a second sample for the file '{}'", name_));
    const FieldBytes& file = sample.fields.front();
    PENSTOCK_ASSIGN(writer_, backend_.create(name_, file.bytes));
    PENSTOCK_TRY(writer_->append(file.pieces));
    bytes_ = file.bytes;
    return Placement{0, bytes_};
  }

  Result<std::uint64_t> publish(Durability durability) override {
    if (writer_ == nullptr)
      return make_error(Errc::internal, fmt::format("no sample for the file '{}'", name_));
    PENSTOCK_TRY(writer_->publish(durability));
    return bytes_;
  }

 private:
  Backend& backend_;
  const std::string name_;
  std::unique_ptr<Writer> writer_;
  std::uint64_t bytes_ = 0;
};

class Files final : public Format {
 public:
  Files(Dirs dirs, std::uint64_t folders, SampleTypes types)
      : dirs_(dirs), folders_(folders), types_(std::move(types)) {}

  Result<void> check(std::span<const Field> fields) const override {
    if (fields.size() == 1) return success();
    return make_error(Errc::invalid_argument,
                      fmt::format("a file holds one field, and these samples have {} ({}, {} ...)",
                                  fields.size(), fields[0].name, fields[1].name));
  }

  std::uint64_t objects(std::uint64_t samples) const override { return samples; }
  std::uint64_t first_sample(std::uint64_t object, std::uint64_t /*samples*/) const override {
    return object;
  }

  std::string object_name(std::uint64_t /*object*/, std::uint64_t /*objects*/, std::string_view /*recipe*/,
                          std::string_view first_key, std::string_view extension) const override {
    std::string name = fmt::format("{}{}", first_key, extension);
    if (dirs_ == Dirs::of_class) return name;
    std::replace(name.begin(), name.end(), '/', '_');
    if (dirs_ == Dirs::flat) return name;
    const std::size_t digits = fmt::formatted_size("{:x}", folders_ - 1);
    return fmt::format("{:0{}x}/{}", name_hash(first_key) % folders_, digits, name);
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    return std::make_unique<FileWriter>(backend, plan.name);
  }

  bool claims(std::string_view object_name) const override { return types_.take(object_name); }

  Result<void> scan(Backend& /*backend*/, const Entry& object,
                    const std::function<void(const Found&)>& found) const override {
    found({.label_name = {}, .placement = {0, object.bytes}});
    return success();
  }

 private:
  const Dirs dirs_;
  const std::uint64_t folders_;
  const SampleTypes types_;
};

Result<std::unique_ptr<Format>> make_files(const Options& options) {
  const std::string& dirs = options.text("dirs");
  PENSTOCK_ASSIGN(SampleTypes types, SampleTypes::parse(options.text("types")));
  if (dirs == "class") return std::make_unique<Files>(Dirs::of_class, 0, std::move(types));
  if (dirs == "flat") return std::make_unique<Files>(Dirs::flat, 0, std::move(types));
  constexpr std::string_view kHash = "hash:";
  std::uint64_t folders = 0;
  if (dirs.starts_with(kHash)) {
    const char* const end = dirs.data() + dirs.size();
    const auto [stop, failure] = std::from_chars(dirs.data() + kHash.size(), end, folders);
    if (failure != std::errc{} || stop != end || folders > 1'000'000) folders = 0;
  }
  if (folders == 0)
    return make_error(Errc::invalid_argument,
                      fmt::format("dirs={}: say class, flat or hash:K with K from 1 to 1000000", dirs));
  return std::make_unique<Files>(Dirs::hash, folders, std::move(types));
}

}  // namespace

const FormatInfo format_files{
    .name = "files",
    .summary = "one file a sample, in folders by class",
    .options = kOptions,
    .make = make_files,
};

}  // namespace penstock
