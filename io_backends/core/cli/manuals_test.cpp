#include "io_backends/core/cli/manuals.hpp"

#include <gtest/gtest.h>

#include <array>

namespace penstock {
namespace {

constexpr OptionSpec kOptions[] = {
    {.name = "threads",
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1",
     .help = ".begins with a dot, it's \\ so",
     .alias = "t"},
    {.name = "order",
     .type = OptionType::choice,
     .value = "sequential|shuffled",
     .help = "which [first]: then",
     .group = "Order"},
    {.name = "to", .value = "TIER", .help = "where", .repeated = true},
    {.name = "quiet", .type = OptionType::flag, .help = "less"},
};
constexpr std::array<std::string_view, 2> kOfSave{"order", "to"};

std::vector<SubcommandOptions> subcommands() {
  return {{"save", kOfSave}, {"ls", {}}};
}

constexpr CommandInfo kPlain{.name = "plain",
                             .summary = "does it",
                             .options = kOptions,
                             .run = nullptr,
                             .synopsis = "penstock plain DIR",
                             .examples = {"one", "two"}};
constexpr CommandInfo kVerbal{.name = "verbal",
                              .summary = "does them",
                              .options = kOptions,
                              .run = nullptr,
                              .synopsis = "penstock verbal SUBCOMMAND",
                              .examples = {"one", "two"},
                              .subcommands = subcommands};

std::vector<std::string_view> names(const std::vector<const OptionSpec*>& options) {
  std::vector<std::string_view> all;
  for (const OptionSpec* spec : options) all.push_back(spec->name);
  all.resize(std::min<std::size_t>(all.size(), 4));  // those in front of the common ones
  return all;
}

bool has(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

TEST(Manuals, ASubcommandHasItsOwnOptionsAndTheCommandsOwn) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(names(options_of(kPlain, "")), (Names{"threads", "order", "to", "quiet"}));
  EXPECT_EQ(names(options_of(kVerbal, "save")), (Names{"threads", "order", "to", "quiet"}));
  const auto of_ls = names(options_of(kVerbal, "ls"));
  EXPECT_EQ(of_ls[0], "threads");
  EXPECT_EQ(of_ls[1], "quiet");
}

TEST(Manuals, AManPageSaysWhatTheTableSays) {
  const std::string page = man_page(kVerbal, "2026-11-20");
  EXPECT_TRUE(has(page, ".TH PENSTOCK-VERBAL 1 2026-11-20"));
  EXPECT_TRUE(has(page, "penstock\\-verbal \\- does them\n"));
  EXPECT_TRUE(has(
      page,
      "\\fB\\-t\\fR, \\fB\\-\\-threads\\fR \\fILIST\\fR\n\\&.begins with a dot, it's \\e so (default 1)\n"));
  EXPECT_TRUE(has(page, ".SS Order\n"));
  EXPECT_TRUE(has(page, "takes \\-\\-order, \\-\\-to\n"));
  EXPECT_TRUE(has(man_page_of_all({&kPlain, &kVerbal}, "2026-11-20"),
                  ".BR penstock\\-plain (1),\n.BR penstock\\-verbal (1)\n"));
}

TEST(Manuals, CompletionsKnowSubcommandsChoicesAndPlaces) {
  const std::vector<const CommandInfo*> commands{&kPlain, &kVerbal};
  const std::string bash = bash_completion(commands, {{"plain", {"alexnet", "cosmo"}}});
  EXPECT_TRUE(has(bash, "plain) echo 'alexnet cosmo' ;;"));
  EXPECT_TRUE(has(bash, "verbal) echo 'save ls' ;;"));
  EXPECT_TRUE(has(bash, "plain:--order) _penstock_choices 'sequential shuffled' ;;"));
  EXPECT_TRUE(has(bash, "plain:--to) _penstock_tiers ;;"));
  EXPECT_TRUE(has(bash, "plain:--threads | plain:-t) _penstock_nothing ;;"));
  const std::string zsh = zsh_completion(commands, {});
  EXPECT_TRUE(has(zsh, "'--order=[which \\[first\\]\\: then]:sequential|shuffled:(sequential shuffled)'"));
  EXPECT_TRUE(has(zsh, "'*--to=[where]:TIER:_penstock_tiers'"));
  EXPECT_TRUE(has(zsh, "it'\\''s \\\\ so"));
  const std::string fish = fish_completion(commands, {});
  EXPECT_TRUE(has(fish, "-n '__fish_seen_subcommand_from plain' -l order -x -a 'sequential shuffled'"));
  EXPECT_TRUE(has(fish, "it\\'s \\\\ so"));
  EXPECT_TRUE(
      has(fish, "-n '__fish_seen_subcommand_from verbal; and __fish_seen_subcommand_from save' -l order"));
}

}  // namespace

// What the tests are linked with has no commands of its own.
const Registry<CommandInfo>& command_registry() {
  static const Registry<CommandInfo> none{"command", {}, {}};
  return none;
}

}  // namespace penstock
