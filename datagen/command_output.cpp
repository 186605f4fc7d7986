#include "datagen/command_output.hpp"

#include <cstdio>

#include "datagen/parallel.hpp"

namespace penstock {

unsigned threads_of(const CommandContext& context) {
  return worker_threads(
      context.options.has("threads") ? static_cast<std::uint64_t>(context.options.integer("threads")) : 0);
}

void print_json(const Json& json) {
  print_text(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace penstock
