// Quotes command lines in messages and scripts for a shell.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace penstock {

// Returns the word unchanged if no character of it has a special meaning in a shell, and in single quotes
// otherwise.
std::string shell_word(std::string_view word);
// Quotes each word and joins them with blanks.
std::string shell_line(std::span<const std::string> words);

}  // namespace penstock
