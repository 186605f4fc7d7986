#include "io_backends/core/cli/print.hpp"

namespace penstock {

void print_text(std::string_view text, std::FILE* to) {
  std::fwrite(text.data(), 1, text.size(), to);
}

void print_json(const Json& json) {
  print_text(one_line(json) + "\n");
}

}  // namespace penstock
