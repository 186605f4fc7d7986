#include "io_backends/core/cli/subcommands.hpp"

#include <algorithm>

namespace penstock {
namespace {

// Empty for what is no option.
std::string_view option_name(std::string_view word) {
  if (word == "-o") return "output";
  return word.starts_with("--") ? word.substr(2, word.find('=') - 2) : std::string_view{};
}

}  // namespace

Result<void> check_subcommand_options(std::string_view subcommand,
                                      const std::vector<SubcommandOptions>& subcommands,
                                      std::span<const std::string> argv) {
  for (const std::string& word : argv) {
    if (word == "--") break;
    const std::string_view name = option_name(word);
    if (name.empty()) continue;
    bool its_own = false;
    std::string takers;
    for (const SubcommandOptions& one : subcommands) {
      if (std::find(one.takes.begin(), one.takes.end(), name) == one.takes.end()) continue;
      its_own = its_own || one.subcommand == subcommand;
      takers += (takers.empty() ? ": that is for " : ", ") + std::string(one.subcommand);
    }
    if (its_own || takers.empty()) continue;
    return make_error(Errc::invalid_argument,
                      "'" + std::string(subcommand) + "' takes no --" + std::string(name) + takers);
  }
  return success();
}

}  // namespace penstock
