// Helpers for text: they change the case of ASCII letters whatever the locale is, remove blanks, split at
// separators, and parse numbers.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>

namespace penstock {

constexpr char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
}
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_case(c);
  return lower;
}
inline std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  return upper;
}
// Whether `text` equals `lower`, which is in lower case, if the case of letters is ignored.
inline bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return lower_case(a) == b; });
}

// Returns `text` without the blanks at its start and end.
inline std::string_view trim(std::string_view text, std::string_view blanks = " \t\r\n") {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  // if all are blanks, find_last_not_of() returns npos, and npos + 1 is 0
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

// Removes the part up to the first `divider` and the divider from `text`, and returns that part. If there is
// no divider, it takes all of `text`.
inline std::string_view take_part(std::string_view& text, char divider) {
  const std::string_view part = text.substr(0, text.find(divider));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

// Replaces each character by the text that `escape` returns for it; "" leaves the character unchanged.
template <class Escape>
std::string with_escapes(std::string_view text, Escape escape) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const std::string_view replacement = escape(c);
    if (replacement.empty())
      out += c;
    else
      out += replacement;
  }
  return out;
}

// Parses a text that consists of digits only. Returns no value if the text is not a number, or if the number
// is too large for the type.
template <class Number>
std::optional<Number> parse_digits(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number, base);
  if (failure != std::errc{} || stop != end) return std::nullopt;
  return number;
}

// A row of a table of names: what each is called elsewhere, or what it means.
struct NamedText {
  std::string_view name;
  std::string_view text;
};

// A hash function for tables with std::string keys. With it, a std::string_view can be looked up, and no
// std::string is made for the look-up.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <class T>
using ByName = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;

}  // namespace penstock
