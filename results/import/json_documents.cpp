#include "results/import/json_documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

// Each fault costs one search to the end of the text, so that a hostile text must not have many.
constexpr size_t kMostFaults = 16;
constexpr std::string_view kBlanks = " \t\r\n";

// How long the word for NaN or infinity is with which `text` begins, as C and Python print them: "-nan",
// "inf", "NaN", "-Infinity", "nan(ind)". 0: it begins with none.
size_t non_finite_length(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  for (const std::string_view word : {"infinity", "inf", "nan"}) {
    if (!equals_ignoring_case(text.substr(sign, word.size()), word)) continue;
    const size_t end = sign + word.size();
    if (!text.substr(end).starts_with('(')) return end;
    const size_t close = text.find_first_not_of(kLetters, end + 1);
    return close == std::string_view::npos || text[close] != ')' ? 0 : close + 1;
  }
  return 0;
}

// Replaces NaN and infinity by null.
std::string replace_non_finite_numbers(std::string_view text) {
  std::string json;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      json += text.substr(i, 2);
      ++i;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    const size_t length = in_string ? 0 : non_finite_length(text.substr(i));
    json += length == 0 ? std::string_view(&text[i], 1) : std::string_view("null");
    if (length > 0) i += length - 1;
  }
  return json;
}

std::optional<Json> parse_document(std::string_view text) {
  std::optional<Json> json = Json::try_parse(text);
  return json ? json : Json::try_parse(replace_non_finite_numbers(text));
}

// The length of the object or array with which `text` begins, by its brackets alone. Absent if it has no end.
std::optional<size_t> document_length(std::string_view text) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::nullopt;
}

std::string fault_at(std::string_view text, size_t begin) {
  const std::string_view document = text.substr(begin);
  try {
    std::ignore = Json::parse(document);
    return "";
  } catch (const JsonError& error) {
    if (error.byte == 0) return error.what();
    return fmt::format("byte {}{}: {}", begin + error.byte,
                       error.byte > document.size() ? ", at the end" : "", printable(error.what()));
  }
}

// Why the document at `begin` cannot be parsed. A word for NaN is not the reason.
std::string document_fault(std::string_view text, size_t begin) {
  if (!document_length(text.substr(begin))) {
    std::string fault = fault_at(replace_non_finite_numbers(text.substr(begin)), 0);
    const size_t colon = fault.find(": ");
    if (fault.find(", at the end") < colon)
      return fmt::format("byte {}, at the end{}", text.size() + 1, fault.substr(colon));
  }
  return fault_at(text, begin);
}

size_t next_line_with_object(std::string_view text, size_t from) {
  const size_t line = text.find("\n{", from);
  return line == std::string_view::npos ? line : line + 1;
}

}  // namespace

std::vector<JsonDocument> json_documents(std::string_view text, std::vector<std::string>& faults) {
  std::vector<JsonDocument> documents;
  const size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  if (text.substr(first).starts_with('[')) {
    const std::optional<Json> array = parse_document(text);
    for (const Json& element : array && array->is_array() ? *array : Json::array())
      if (element.is_object()) documents.push_back({element, text});
    if (!documents.empty()) return documents;
  }
  size_t begin = text.substr(first).starts_with('{') ? first : next_line_with_object(text, 0);
  while (begin != std::string_view::npos) {
    const auto length = document_length(text.substr(begin));
    std::optional<Json> json = length ? parse_document(text.substr(begin, *length)) : std::nullopt;
    if (!json) {
      faults.push_back(document_fault(text, begin));
      if (faults.size() == kMostFaults) break;
      begin = next_line_with_object(text, begin);
      continue;
    }
    documents.push_back({*std::move(json), text.substr(begin, *length)});
    const size_t end = begin + *length;
    const size_t next = text.find_first_not_of(kBlanks, end);
    begin = next != std::string_view::npos && text[next] == '{' ? next : next_line_with_object(text, end);
  }
  return documents;
}

bool is_json(std::string_view text) {
  if (Json::try_parse(text) || Json::try_parse(text.substr(0, text.find('\n')))) return true;
  std::vector<std::string> faults;
  return !json_documents(text, faults).empty();
}

std::string json_fault(std::string_view text) {
  const bool is_whole = text.starts_with('{') || text.starts_with('[');
  const size_t line = is_whole ? std::string_view::npos : next_line_with_object(text, 0);
  const size_t begin = line == std::string_view::npos ? 0 : line;
  return document_fault(text, begin);
}

}  // namespace penstock
