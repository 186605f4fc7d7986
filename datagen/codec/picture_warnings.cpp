#include "datagen/codec/picture_warnings.hpp"

#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

// The names in records and the texts in messages.
constexpr std::array<NamedText, kPictureWarnings> kNames{{
    {"stray_bytes", "stray bytes between markers"},
    {"early_end", "picture data that end early"},
    {"no_end_marker", "no end marker"},
    {"wrong_restarts", "wrong restart markers"},
    {"bad_codes", "codes that are in no table"},
    {"odd_scans", "scans that do not fit together"},
    {"unknown_colours", "unknown colour transform"},
    {"cmyk_without_adobe", "CMYK without Adobe's marker"},
    {"more_pictures", "more pictures after the first"},
    {"bytes_after_end", "bytes after the end"},
    {"odd_chunks", "odd PNG chunks"},
    {"other", "another warning"},
}};

}  // namespace

std::string_view picture_warning_name(size_t warning) {
  return kNames[warning].name;
}

void PictureWarningCounts::add(const PictureWarnings& warnings, std::string_view sample) {
  ++samples;
  const bool is_first = first.empty();
  if (is_first) first = sample;
  const char* separator = ": ";
  for (size_t i = 0; i < kPictureWarnings; ++i) {
    if (!warnings[i]) continue;
    ++by_warning[i];
    if (!is_first) continue;
    first.append(separator).append(kNames[i].text);
    separator = ", ";
  }
}

void PictureWarningCounts::add(const PictureWarningCounts& more) {
  samples += more.samples;
  for (size_t i = 0; i < kPictureWarnings; ++i) by_warning[i] += more.by_warning[i];
  if (first.empty()) first = more.first;
}

std::string PictureWarningCounts::text() const {
  std::string list;
  for (size_t i = 0; i < kPictureWarnings; ++i)
    if (by_warning[i] > 0)
      list += (list.empty() ? "" : "; ") + std::string(kNames[i].text) + ": " + std::to_string(by_warning[i]);
  return std::to_string(samples) + " decoded with warnings (" + list + "); the first: " + first;
}

Json PictureWarningCounts::json() const {
  return {{"samples", samples}, {"by_warning", by_warning}, {"first", first}};
}

PictureWarningCounts PictureWarningCounts::from_json(const Json& json) {
  return {json["samples"].get<uint64_t>(), json["by_warning"].get<std::array<uint64_t, kPictureWarnings>>(),
          json["first"].get<std::string>()};
}

}  // namespace penstock
