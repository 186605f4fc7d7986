#include "datagen/staging/sealed_object.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "io_backends/core/json.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {}  // namespace

std::string sealed_object_text(std::string_view kind, uint64_t format, const Json& members) {
  Json object{{"penstock", kind}, {"format", format}};
  object.update(members);
  return seal_line(one_line(object), 1, 1) + "\n";
}

Result<Json> parse_sealed_object(std::string_view kind, uint64_t format, std::string_view text,
                                 std::string_view where) {
  const auto corrupt_error = [&](std::string_view why) {
    return make_error(Errc::corrupt, "'{}' {}", where, why);
  };
  if (text.size() > kMostSealedBytes) return corrupt_error("is too large");
  while (text.ends_with('\n')) text.remove_suffix(1);
  Json json = Json::try_parse(text).value_or(nullptr);
  if (!json.is_object()) return corrupt_error(fmt::format("is not a {}, or is truncated", kind));
  const auto kind_member = json.find("penstock");
  if (kind_member == json.end() || *kind_member != kind)
    return corrupt_error(fmt::format("is not a {}", kind));
  if (const auto format_member = json.find("format"); format_member == json.end() || *format_member != format)
    return make_error(
        Errc::unsupported,
        "'{}' is a {} of another format version than {}: use the penstock version that wrote it", where, kind,
        format);
  const auto seal = check_seal(text, json);
  if (!seal.ok() || !seal->has_value()) return corrupt_error("is damaged: its checksum does not match");
  return json;
}

uint64_t count_member(const Json& json, const char* key) {
  const Json& member = json.at(key);
  if (!member.is_number_unsigned()) throw std::invalid_argument(fmt::format("'{}' is not a count", key));
  return member.get<uint64_t>();
}

double number_member(const Json& json, const char* key) {
  const Json& member = json.at(key);
  if (!member.is_number()) throw std::invalid_argument(fmt::format("'{}' is not a number", key));
  return member.get<double>();
}

}  // namespace penstock
