// Command lines in messages and scripts, as a shell takes them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace penstock {

// As it is where a shell does nothing to it, in single quotes otherwise.
std::string shell_word(std::string_view word);
// With a blank between them.
std::string shell_line(std::span<const std::string> words);

}  // namespace penstock
