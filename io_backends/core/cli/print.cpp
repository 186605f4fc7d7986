#include "io_backends/core/cli/print.hpp"

#include <cstdio>

namespace penstock {

void print_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_json(const Json& json) {
  print_text(one_line(json) + "\n");
}

}  // namespace penstock
