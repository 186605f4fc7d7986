// For tests and fuzzers: scans given bytes as an object of a format.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

  // Scans `bytes` and returns the samples or the error. Ends the program if the format does not claim the
  // name that it gave to the object, or if a placement is outside the object. Does so too if an error does
  // not name the object, or is not `corrupt`, `truncated` or `unsupported`.
  Result<std::vector<Sample>> scan(std::span<const std::byte> bytes) {
    require(format_->claims(name_), "an object whose name it made is not its own");
    PENSTOCK_ASSIGN(const auto writer, tier_.backend->create(name_));
    PENSTOCK_TRY(writer->append(bytes));
    PENSTOCK_TRY(writer->publish(Durability::visible));
    std::vector<Sample> samples;
    const Result<void> scanned = format_->scan(
        *tier_.backend, {.name = name_, .bytes = bytes.size()}, [&](const Format::FoundSample& found) {
          const Placement& at = found.placement;
          require(at.offset <= bytes.size() && at.length <= bytes.size() - at.offset,
                  "a placement outside the object");
          samples.push_back({std::string(found.label_name), at, std::string(found.codec)});
        });
    if (scanned.ok()) return samples;
    const Error& error = scanned.error();
    require(error.code == Errc::corrupt || error.code == Errc::truncated || error.code == Errc::unsupported,
            "damage is told as something else");
    require(error.what.find(name_) != std::string::npos, "an error that does not name the object");
    return error;
  }

 private:
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
