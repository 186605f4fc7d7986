#include "datagen/format/sample_type.hpp"

#include <algorithm>
#include <utility>

#include "io_backends/core/text.hpp"

namespace penstock {

namespace {

constexpr NamedText kCodecs[] = {{"jpg", "jpeg"}, {"jpeg", "jpeg"}, {"jpe", "jpeg"},  {"jfif", "jpeg"},
                                 {"png", "png"},  {"gif", "gif"},   {"webp", "webp"}, {"bmp", "bmp"},
                                 {"tif", "tiff"}, {"tiff", "tiff"}, {"ppm", "pnm"},   {"pgm", "pnm"},
                                 {"npy", "npy"}};

}  // namespace

std::string_view extension_of(std::string_view object_name) {
  // If the name has no '/', rfind() returns npos, npos + 1 is 0, and the whole name is taken.
  const std::string_view last = object_name.substr(object_name.rfind('/') + 1);
  const size_t dot = last.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view{} : last.substr(dot);
}

std::string_view codec_of(std::string_view object_name) {
  const std::string_view extension = extension_of(object_name);
  if (!extension.empty())
    for (const auto& [known, codec] : kCodecs)
      if (equals_ignoring_case(extension.substr(1), known)) return codec;
  return "raw";
}

bool is_hidden(std::string_view object_name) {
  return object_name.starts_with('.') || object_name.find("/.") != std::string_view::npos;
}

bool has_extension(std::string_view object_name, std::string_view extension) {
  return object_name.size() >= extension.size() &&
         equals_ignoring_case(object_name.substr(object_name.size() - extension.size()), extension);
}

Result<SampleTypes> SampleTypes::parse(std::string_view text) {
  SampleTypes types;
  for (std::string_view rest = text;;) {
    const bool is_last_extension = rest.find(',') == std::string_view::npos;
    std::string_view extension = take_part(rest, ',');
    if (extension.starts_with('.')) extension.remove_prefix(1);
    if (extension.empty() || extension.find_first_of("/.* ") != std::string_view::npos)
      return make_error(Errc::invalid_argument,
                        "types '{}': write extensions such as jpg,png, or any for every file", text);
    types.extensions_.push_back(lower_case(extension));
    types.accepts_any_ = types.accepts_any_ || types.extensions_.back() == "any";
    if (is_last_extension) return types;
  }
}

bool SampleTypes::accepts(std::string_view object_name) const {
  if (is_hidden(object_name)) return false;
  if (accepts_any_) return true;
  const std::string_view extension = extension_of(object_name);
  return !extension.empty() &&
         std::any_of(extensions_.begin(), extensions_.end(), [&](const std::string& wanted) {
           return equals_ignoring_case(extension.substr(1), wanted);
         });
}

}  // namespace penstock
