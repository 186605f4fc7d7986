#include "datagen/command_output.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "datagen/parallel.hpp"

namespace penstock {

namespace {

// Bytes of the UTF-8 character in front, 0 if there is none (RFC 3629: no surrogates, nothing overlong).
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xc0U) == 0x80U; };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead < 0xf0) {
    const bool allowed = !(lead == 0xe0 && at(1) < 0xa0) && !(lead == 0xed && at(1) >= 0xa0);
    return allowed && follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead < 0xf5) {
    const bool allowed = !(lead == 0xf0 && at(1) < 0x90) && !(lead == 0xf4 && at(1) >= 0x90);
    return allowed && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

unsigned threads_of(const CommandContext& context) {
  return worker_threads(
      context.options.has("threads") ? static_cast<std::uint64_t>(context.options.integer("threads")) : 0);
}

std::string printable(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const auto byte = static_cast<unsigned char>(name.front());
    const std::size_t length = utf8_length(name);
    if (byte == '\n')
      out += "\\n";
    else if (length == 0 || byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += name.substr(0, length);
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

void print_json(const Json& json) {
  print_text(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace penstock
