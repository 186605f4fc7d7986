// Makes foreign text (names in archives, folders and records) safe for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock {

// Returns the length in bytes of the UTF-8 character at the beginning of the text. Returns 0 if the text does
// not begin with a valid one (RFC 3629: no surrogates, no overlong forms).
size_t utf8_length(std::string_view text);

// Returns the text as one line. Control characters and bytes that are not UTF-8 are escaped ("\n", "\x1b"),
// so that no name can control the terminal. A backslash in the text is not escaped.
std::string printable(std::string_view text);

// Returns a name of a file as UTF-8 text from which the name can be read back. Names may have any bytes;
// nearly all are UTF-8, and stay as they are. If a name has bytes that are not UTF-8, or holds "\x", each
// such byte becomes "\xe9" and each backslash becomes two. So a text with "\x" in it has to be read that way,
// and any other text is the name itself. All exports of names use it.
std::string utf8_name(std::string_view name);

}  // namespace penstock
