// For tests only: option tables of a few commands, with the options that the tests' records use.
#include <vector>

#include "io_backends/core/cli/command.hpp"

namespace penstock {
namespace {

constexpr OptionSpec kTestOptions[] = {
    {.name = "tier", .role = OptionRole::target},
    {.name = "threads", .role = OptionRole::work},
    {.name = "cache", .role = OptionRole::work},
    {.name = "verify", .role = OptionRole::work, .type = OptionType::flag},
    {.name = "live-csv", .role = OptionRole::output},
    {.name = "min-time", .role = OptionRole::repeat, .type = OptionType::duration},
    {.name = "repeat", .role = OptionRole::repeat, .type = OptionType::integer},
};
constexpr std::string_view kTestFindings[] = {"ceiling_rung"};

constexpr CommandInfo kRead{.name = "read",
                            .summary = {},
                            .options = kTestOptions,
                            .run = nullptr,
                            .synopsis = {},
                            .examples = {},
                            .findings = kTestFindings};
constexpr CommandInfo kTrain{.name = "train",
                             .summary = {},
                             .options = kTestOptions,
                             .run = nullptr,
                             .synopsis = {},
                             .examples = {},
                             .findings = {}};

}  // namespace

const Registry<CommandInfo>& command_registry() {
  static const std::vector<const CommandInfo*> present{&kRead, &kTrain};
  static const std::vector<MissingPlugin> missing;
  static const Registry<CommandInfo> registry{"command", present, missing};
  return registry;
}

}  // namespace penstock
