// Text of others (names in archives, folders and records) on its way to a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock {

// Bytes of the UTF-8 character in front, 0 if there is none (RFC 3629: no surrogates, nothing overlong).
std::size_t utf8_length(std::string_view text);

// One line of it: control characters and bytes that are no UTF-8 are escaped ("\n", "\x1b"), so that no name
// can play tricks on a terminal. What is escaped already stays as it is.
std::string printable(std::string_view text);

}  // namespace penstock
