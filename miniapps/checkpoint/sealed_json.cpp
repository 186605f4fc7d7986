#include "miniapps/checkpoint/sealed_json.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/json.hpp"

namespace penstock {
namespace {

constexpr std::string_view kSealPrefix = "crc32c ";
constexpr size_t kSealBytes = kSealPrefix.size() + 8 + 1;  // the last byte is the newline

std::string checksum_line(std::string_view body) {
  return fmt::format("{}{:08x}\n", kSealPrefix, crc32c(std::as_bytes(std::span(body))));
}

Error not_sealed(std::string_view object, std::string_view why) {
  return make_error(Errc::corrupt, "'{}' {}", object, why);
}

}  // namespace

std::string seal_json(std::string_view kind, const Json& json) {
  Json sealed{{"penstock", kind}, {"format", kSealedFormat}};
  sealed.update(json);
  std::string text = indented(sealed, 1) + "\n";
  text += checksum_line(text);
  return text;
}

Result<Json> unseal_json(std::string_view kind, std::string_view text, std::string_view object) {
  if (text.empty()) return not_sealed(object, "is empty");
  if (text.size() < kSealBytes || !text.substr(text.size() - kSealBytes).starts_with(kSealPrefix))
    return not_sealed(object, "does not end with its checksum: it is truncated, or not a file of penstock");
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  if (text.substr(body.size()) != checksum_line(body))
    return not_sealed(object, "is damaged: its checksum does not match");
  Json json = Json::try_parse(body).value_or(nullptr);
  if (!json.is_object()) return not_sealed(object, "is not a JSON object of penstock");
  try {
    if (json.at("penstock").get<std::string>() != kind)
      return not_sealed(object, fmt::format("is not a {}", kind));
    if (const uint64_t format = count_at(json, "format"); format != kSealedFormat)
      return make_error(Errc::unsupported,
                        "'{}' has format {}, and this penstock reads {}: use the version that wrote it",
                        object, format, kSealedFormat);
  } catch (const std::exception& problem) {
    return not_sealed(object, fmt::format("is not a {} ({})", kind, problem.what()));
  }
  return json;
}

uint64_t count_at(const Json& json, const char* key) {
  const Json& number = json.at(key);
  // Without this check, get() would silently convert a negative or fractional number to another one.
  if (!number.is_number_unsigned()) throw std::invalid_argument(fmt::format("'{}' is not a count", key));
  return number.get<uint64_t>();
}

}  // namespace penstock
