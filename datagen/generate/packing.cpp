#include "datagen/generate/packing.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {
namespace {

// The most samples of a trial object. format_overhead() writes trial objects to measure the bytes that a
// format adds.
constexpr uint64_t kTrialSamples = 256;
// check_largest_sample() first inspects the sizes of this many samples. If all are below
// kAlwaysStorableBytes, it assumes that the sizes of the other samples are too.
constexpr uint64_t kInspectedPlans = 16384;
// Every format can store a sample below this size.
constexpr uint64_t kAlwaysStorableBytes = uint64_t{128} << 20U;
constexpr size_t kZeroBytes = size_t{1} << 20U;

// A back end that discards everything written to it.
class DiscardBackend final : public Backend, private Namespace {
 public:
  DiscardBackend() { caps_.write_at = true; }

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Reader>> open(std::string_view /*name*/) override { return refuse(); }
  Result<std::unique_ptr<Writer>> create(std::string_view /*name*/, uint64_t /*bytes_hint*/) override {
    return std::unique_ptr<Writer>(std::make_unique<DiscardWriter>());
  }
  Namespace& names() override { return *this; }
  MovedBytes moved_bytes() const override { return {}; }

 private:
  class DiscardWriter final : public Writer {
   public:
    using Writer::append;
    Result<void> append(std::span<const std::byte> /*bytes*/) override { return success(); }
    Result<void> append(std::span<const std::span<const std::byte>> /*pieces*/) override { return success(); }
    Result<void> write_at(uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) override {
      return success();
    }
    Result<void> publish(Durability /*wanted*/, IfExists /*if_exists*/) override { return success(); }
  };

  static Error refuse() {
    return make_error(Errc::unsupported, "a back end that only counts bytes stores no objects");
  }

  Result<void> list_all(std::string_view, const std::function<bool(const Entry&)>&,
                        const std::function<void(std::string_view)>&) override {
    return refuse();
  }
  Result<Entry> stat(std::string_view) override { return refuse(); }
  Result<void> make_folders(std::string_view) override { return success(); }
  Result<void> rename_noreplace(std::string_view, std::string_view) override { return refuse(); }
  Result<void> remove(std::string_view) override { return refuse(); }
  Result<void> sync_dir(std::string_view) override { return success(); }
  Result<std::unique_ptr<Lock>> lock(std::string_view) override { return refuse(); }
  Result<uint64_t> free_bytes() override { return refuse(); }

  Caps caps_;
};

// Makes samples of any size. All bytes of their fields are zero. Only one thread at a time may use it. The
// result of sample_of() is valid until the next call.
class ZeroSamples final : public Crc32Source {
 public:
  explicit ZeroSamples(std::span<const Field> fields) : fields_(fields), pieces_(fields.size()) {}

  // Makes a sample whose fields have `payload` bytes together. Fields of fixed size get their size; the
  // others get equal parts of the rest.
  std::span<const FieldBytes> sample_of(uint64_t payload) {
    uint64_t fixed_bytes = 0;
    uint64_t varying_fields = 0;
    for (const Field& field : fields_) {
      if (field.varies)
        ++varying_fields;
      else
        fixed_bytes += field_bytes(field);
    }
    const uint64_t each_bytes =
        varying_fields == 0 ? 0 : (payload - std::min(fixed_bytes, payload)) / varying_fields;
    field_bytes_.clear();
    for (size_t i = 0; i < fields_.size(); ++i)
      field_bytes_.push_back(
          zero_field(fields_[i].varies ? each_bytes : field_bytes(fields_[i]), pieces_[i]));
    return field_bytes_;
  }

  uint32_t crc32() const override { return 0; }  // no reader checks it

 private:
  FieldBytes zero_field(uint64_t bytes, std::vector<std::span<const std::byte>>& pieces) const {
    pieces.clear();
    for (uint64_t left = bytes; left > 0; left -= pieces.back().size())
      pieces.emplace_back(zeros_.data(), size_t(std::min<uint64_t>(left, kZeroBytes)));
    return {.pieces = pieces, .bytes = bytes, .crc32c = 0, .crc32 = this};
  }

  const std::span<const Field> fields_;
  const std::vector<std::byte> zeros_ = std::vector<std::byte>(kZeroBytes);
  std::vector<std::vector<std::span<const std::byte>>> pieces_;
  std::vector<FieldBytes> field_bytes_;
};

// Returns how many bytes the format adds around samples in one object. The object has `samples` samples of
// the recipe, from number `first` on.
Result<double> overhead_of_object(const Recipe& recipe, const Format& format, uint64_t first,
                                  uint64_t samples, const std::vector<std::string>& labels) {
  DiscardBackend discard;
  ZeroSamples zeros(recipe.fields());
  PENSTOCK_ASSIGN(
      const auto writer,
      format.create(discard,
                    {.name = "object", .samples = samples, .fields = recipe.fields(), .size_only = true}));
  SamplePlan plan;
  double payload_bytes = 0;
  for (uint64_t i = first; i < first + samples; ++i) {
    recipe.plan(i, plan);
    const std::span<const FieldBytes> fields = zeros.sample_of(recipe.bytes_expected(i));
    for (const FieldBytes& field : fields) payload_bytes += double(field.bytes);
    const std::string_view label = plan.label < labels.size() ? std::string_view(labels[plan.label]) : "";
    PENSTOCK_TRY(writer->add({.key = plan.key, .label = plan.label, .label_name = label, .fields = fields}));
  }
  PENSTOCK_ASSIGN(const PublishedObject object, writer->publish(Durability::visible));
  return double(object.bytes) - payload_bytes;
}

}  // namespace

Result<void> check_largest_sample(const Recipe& recipe, const Format& format) {
  uint64_t largest_sample = 0;
  uint64_t largest_bytes = 0;
  for (uint64_t i = 0; i < recipe.samples(); ++i) {
    if (i == kInspectedPlans && largest_bytes < kAlwaysStorableBytes) return success();
    const uint64_t sample_bytes = recipe.bytes_expected(i);
    if (sample_bytes <= largest_bytes) continue;
    largest_sample = i;
    largest_bytes = sample_bytes;
  }
  if (largest_bytes < kAlwaysStorableBytes) return success();
  const Result<double> overhead = overhead_of_object(recipe, format, largest_sample, 1, recipe.label_names());
  return overhead.ok() ? success() : Result<void>(overhead.error());
}

Result<double> format_overhead(const Recipe& recipe, const Format& format) {
  const uint64_t samples = recipe.samples();
  const uint64_t objects = format.objects(samples);
  const uint64_t samples_of_first = objects > 1 ? format.first_sample(1, samples) : samples;
  if (samples_of_first == 0) return 0.0;
  const std::vector<std::string> labels = recipe.label_names();
  const uint64_t trial_samples = std::min(samples_of_first, kTrialSamples);
  PENSTOCK_ASSIGN(const double full_bytes, overhead_of_object(recipe, format, 0, trial_samples, labels));
  if (trial_samples == 1) return full_bytes * double(objects);
  PENSTOCK_ASSIGN(const double half_bytes, overhead_of_object(recipe, format, 0, trial_samples / 2, labels));
  const double per_sample = (full_bytes - half_bytes) / double(trial_samples - trial_samples / 2);
  const double per_object = full_bytes - per_sample * double(trial_samples);
  return per_object * double(objects) + per_sample * double(samples);
}

}  // namespace penstock
