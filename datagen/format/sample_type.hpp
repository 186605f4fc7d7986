// What a file is by its name: which files of a folder are samples, and what they are made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// What Penstock has a codec for.
inline constexpr std::string_view kDefaultSampleTypes = "jpg,jpeg,jpe,jfif,png";

// ".JPEG" of "n01/n01_7.JPEG"; "" when there is none or the name is hidden (".config").
std::string_view extension_of(std::string_view object_name);

// "jpeg", "png" ... by the extension, in any case; "raw" for all else.
std::string_view codec_of(std::string_view object_name);

// Hidden from scans: a part of the name starts with a dot (".penstock", ".git", "._x.jpg").
bool hidden(std::string_view object_name);

// Whether the name ends in `extension`, which is in lower case, in any case.
bool has_extension(std::string_view object_name, std::string_view extension);

// A set of extensions.
class SampleTypes {
 public:
  // "jpg,png" (a dot in front is fine), or "any".
  static Result<SampleTypes> parse(std::string_view text);
  bool take(std::string_view object_name) const;

 private:
  bool any_ = false;
  std::vector<std::string> extensions_;  // lower case, without the dot
};

}  // namespace penstock
