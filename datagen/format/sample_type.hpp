// Decides from a file's name whether it is a sample and which codec it has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// The extensions of the pictures that Penstock decodes.
inline constexpr std::string_view kDefaultSampleTypes = "jpg,jpeg,jpe,jfif,png";

// The extension of a name, with its dot: ".JPEG" for "n01/n01_7.JPEG". "" if the last part of the name has no
// dot, or only one at its beginning (".config").
std::string_view extension_of(std::string_view object_name);

// The codec that the extension of the name stands for: "jpeg", "png" and so on. The case of the extension
// does not matter. "raw" for unknown extensions.
std::string_view codec_of(std::string_view object_name);

// Whether the name is hidden: a part of it starts with a dot (".penstock", ".git", "._x.jpg"). Scans skip
// such objects.
bool is_hidden(std::string_view object_name);

// Whether the name ends in `extension`, in upper or lower case. The caller passes `extension` in lower case.
bool has_extension(std::string_view object_name, std::string_view extension);

// The set of file extensions that samples have.
class SampleTypes {
 public:
  // Parses a list such as "jpg,png", or "any". A dot before an extension is allowed.
  static Result<SampleTypes> parse(std::string_view text);
  bool accepts(std::string_view object_name) const;

 private:
  bool accepts_any_ = false;
  std::vector<std::string> extensions_;  // lower case, without the dot
};

}  // namespace penstock
