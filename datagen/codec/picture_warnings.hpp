// What a decoder finds wrong in a picture that it decodes all the same, as Pillow, TensorFlow and libjpeg do.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/json.hpp"

namespace penstock {

enum class PictureWarning : uint8_t {
  stray_bytes,
  early_end,
  no_end_marker,
  wrong_restarts,
  bad_codes,
  odd_scans,
  unknown_colours,
  cmyk_without_adobe,
  more_pictures,
  bytes_after_end,
  odd_chunks,
  other,
};
inline constexpr size_t kPictureWarnings = size_t(PictureWarning::other) + 1;

// The warnings of one picture: the bit of each PictureWarning.
using PictureWarnings = std::bitset<kPictureWarnings>;

std::string_view picture_warning_name(size_t warning);  // for records, such as "stray_bytes"

// How many samples were decoded with each warning. A sample that is decoded twice counts twice.
struct PictureWarningCounts {
  uint64_t samples = 0;  // samples with any warning
  std::array<uint64_t, kPictureWarnings> by_warning{};
  std::string first{};  // name and warnings of the first such sample

  // Adds a sample that has at least one warning. `sample` is its name in quotes.
  void add(const PictureWarnings& warnings, std::string_view sample);
  void add(const PictureWarningCounts& more);
  // Such as "3 decoded with warnings (stray bytes: 2; no end marker: 1); the first: 'a.jpg': stray bytes".
  std::string text() const;

  Json json() const;
  static PictureWarningCounts from_json(const Json& json);
};

}  // namespace penstock
