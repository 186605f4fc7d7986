// Makes foreign text (names in archives, folders and records) safe for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock {

// The bytes of the first UTF-8 character, or 0 if the text starts with none (RFC 3629: no surrogates, no
// overlong forms).
size_t utf8_length(std::string_view text);

// Returns the text as one line. Control characters and bytes that are not UTF-8 are escaped ("\n", "\x1b"),
// so that no name can control the terminal. Escapes that the text contains already are not escaped again.
std::string printable(std::string_view text);

}  // namespace penstock
