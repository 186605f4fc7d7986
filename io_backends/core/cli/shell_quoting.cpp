#include "io_backends/core/cli/shell_quoting.hpp"

#include "io_backends/core/text.hpp"

namespace penstock {

std::string shell_word(std::string_view word) {
  constexpr std::string_view kSafeChars =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kSafeChars) == std::string_view::npos) return std::string(word);
  return "'" + with_escapes(word, [](char c) { return std::string_view(c == '\'' ? "'\\''" : ""); }) + "'";
}

std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace penstock
