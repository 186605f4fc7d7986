#include "datagen/staging/sealed_object.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "io_backends/core/json_text.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

constexpr int kDepth = 6;

}  // namespace

std::string sealed_object_text(std::string_view kind, std::uint64_t format, const Json& members) {
  Json whole{{"penstock", kind}, {"format", format}};
  whole.update(members);
  return seal_line(one_line(whole), 1, 1) + "\n";
}

Result<Json> parse_sealed_object(std::string_view kind, std::uint64_t format, std::string_view text,
                                 std::string_view where) {
  const auto no_good = [&](std::string_view why) {
    return make_error(Errc::corrupt, fmt::format("'{}' {}", where, why));
  };
  if (text.size() > kMostSealedObject) return no_good("is too large");
  while (text.ends_with('\n')) text.remove_suffix(1);
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kDepth;
    return depth <= kDepth;
  };
  Json json = Json::parse(text.begin(), text.end(), watch, false);
  if (json.is_discarded() || too_deep || !json.is_object())
    return no_good(fmt::format("is no {}, or is cut short", kind));
  const auto is = json.find("penstock");
  if (is == json.end() || *is != kind) return no_good(fmt::format("is no {}", kind));
  if (const auto of = json.find("format"); of == json.end() || *of != format)
    return make_error(Errc::unsupported,
                      fmt::format("'{}' is a {} of another format than {}: use the penstock that wrote it",
                                  where, kind, format));
  const auto seal = check_seal(text, json);
  if (!seal.ok() || !seal->has_value()) return no_good("is not what was written: its checksum does not hold");
  return json;
}

std::uint64_t count_of(const Json& json, const char* key) {
  const Json& number = json.at(key);
  if (!number.is_number_unsigned()) throw std::invalid_argument(fmt::format("'{}' is no count", key));
  return number.get<std::uint64_t>();
}

double number_of(const Json& json, const char* key) {
  const Json& number = json.at(key);
  if (!number.is_number()) throw std::invalid_argument(fmt::format("'{}' is no number", key));
  return number.get<double>();
}

}  // namespace penstock
