#include "datagen/command_output.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "datagen/parallel.hpp"

namespace penstock {

unsigned threads_of(const CommandContext& context) {
  return worker_threads(
      context.options.has("threads") ? static_cast<std::uint64_t>(context.options.integer("threads")) : 0);
}

std::string printable(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else if (c == '\n')
      out += "\\n";
    else
      out += fmt::format("\\x{:02x}", byte);
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
