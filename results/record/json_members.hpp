// Reads JSON from an untrusted source. If a member is missing or has a wrong type, the functions treat it as
// absent.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/json.hpp"

namespace penstock {

inline const Json* member(const Json& json, std::string_view name) {
  if (!json.is_object()) return nullptr;
  const auto at = json.find(std::string(name));
  return at == json.end() ? nullptr : &*at;
}

// The member `name` if it is an object, else an empty object.
inline const Json& member_object(const Json& json, std::string_view name) {
  static const Json kEmptyObject = Json::object();
  const Json* const found = member(json, name);
  return found != nullptr && found->is_object() ? *found : kEmptyObject;
}

inline std::optional<double> member_number(const Json& json, std::string_view name) {
  const Json* const found = member(json, name);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  const double number = found->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

inline std::string member_text(const Json& json, std::string_view name) {
  const Json* const found = member(json, name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

inline bool member_true(const Json& json, std::string_view name) {
  const Json* const found = member(json, name);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

// Any value as text: a string as it is, "" for null, everything else as JSON.
inline std::string any_text(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : one_line(value);
}

inline std::string member_any_text(const Json& json, std::string_view name) {
  const Json* const found = member(json, name);
  return found == nullptr ? "" : any_text(*found);
}

}  // namespace penstock
