// Recognizes what a file is by its first bytes, for messages about files that are not what their names say.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

struct ContentType {
  std::string_view name;    // as a message names it: "gzip data", "a GIF picture"
  std::string_view remedy;  // what to do with it: "decompress it first"; "" if there is nothing
};

// How many bytes from the start of a file content_type_of() may look at.
inline constexpr size_t kContentTypeBytes = 512;

// Returns the type of a file that begins with these bytes (fewer than kContentTypeBytes only if the file is
// shorter). Null: unknown. Any thread may call it. Sources: the formats' specifications; the file command's
// database for HEIC and AVIF (brands of ISO/IEC 14496-12) and for tar (offset 257).
const ContentType* content_type_of(std::span<const std::byte> beginning);

// Makes a text for a message about a file that should be `expected`, such as "a GIF picture, not JPEG or
// PNG" or "gzip data, not TFRecord: decompress it first". "" if the type of the file is unknown.
std::string describe_content(std::span<const std::byte> beginning, std::string_view expected);

}  // namespace penstock
