// For tests and fuzzers: scans given bytes as an object of a format.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/form_reader.hpp"
#include "datagen/format/format.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

class ScanFixture {
 public:
  struct Sample {
    std::string label;
    Placement placement;
    std::string codec;
    bool operator==(const Sample& other) const {
      return label == other.label && placement.offset == other.placement.offset &&
             placement.length == other.placement.length && codec == other.codec;
    }
  };

  explicit ScanFixture(std::string_view format) : tier_(open_tier("mem:scan", kNoNamedTiers).value()) {
    const FormatInfo* const info = format_registry().find(format).value();
    format_ = info->make(Options::parse(info->options, {}, "format option").value()).value();
    name_ = format_->object_name(0, 1, "object", "key", ".jpg");
  }

  Format& format() { return *format_; }
  const std::string& name() const { return name_; }

  // Scans `bytes` and returns the samples or the error. Reads the first samples that have forms. Ends the
  // program if the format does not claim the name that it gave to the object, or if a placement is outside
  // the object. Does so too if an error does not name the object, or is not `corrupt`, `truncated` or
  // `unsupported`.
  Result<std::vector<Sample>> scan(std::span<const std::byte> bytes) {
    require(format_->claims(name_), "an object whose name it made is not its own");
    PENSTOCK_ASSIGN(const auto writer, tier_.backend->create(name_));
    PENSTOCK_TRY(writer->append(bytes));
    PENSTOCK_TRY(writer->publish(Durability::visible));
    std::vector<Sample> samples;
    std::vector<SampleInForm> in_forms;
    const Result<void> scanned = format_->scan(
        *tier_.backend, {.name = name_, .bytes = bytes.size()}, [&](const Format::FoundSample& found) {
          const Placement& at = found.placement;
          require(at.offset <= bytes.size() && at.length <= bytes.size() - at.offset,
                  "a placement outside the object");
          samples.push_back({std::string(found.label_name), at, std::string(found.codec)});
          if (found.form && in_forms.size() < 16) in_forms.push_back({found.form, found.extent, at});
        });
    for (const SampleInForm& one : in_forms)
      if (scanned.ok()) read_in_form(bytes, one);
    if (scanned.ok()) return samples;
    const Error& error = scanned.error();
    require(error.code == Errc::corrupt || error.code == Errc::truncated || error.code == Errc::unsupported,
            "damage is told as something else");
    require(error.what.find(name_) != std::string::npos, "an error that does not name the object");
    return error;
  }

 private:
  struct SampleInForm {
    SampleForm form;
    SampleExtent extent;
    Placement stored;
  };

  // Reads a sample by its form. It must not read bytes outside its placement, or return another number of
  // bytes.
  static void read_in_form(std::span<const std::byte> object, const SampleInForm& sample) {
    std::optional<StoredForm> form = decode_form(*sample.form);
    require(form.has_value(), "a form that contradicts itself");
    require(sample.extent.offset + sample.extent.bytes <= form_bytes(*form), "a sample outside its form");
    FormReader reader;
    if (!reader.use(*std::move(form)).ok()) return;
    constexpr uint64_t kMostBytes = uint64_t{1} << 22;
    const SampleExtent extent{sample.extent.offset, std::min(sample.extent.bytes, kMostBytes)};
    MemoryWindow stored{object.subspan(size_t(sample.stored.offset), size_t(sample.stored.length)),
                        sample.stored.offset};
    const auto read = reader.read(stored, extent);
    require(!read.ok() || read->size() == extent.bytes, "a sample of another size");
  }

  static void require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "ScanFixture: %s\n", what);
    std::abort();
  }

  Tier tier_;
  std::unique_ptr<Format> format_;
  std::string name_;
};

}  // namespace penstock
