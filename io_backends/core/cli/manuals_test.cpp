#include "io_backends/core/cli/manuals.hpp"

#include <gtest/gtest.h>

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
constexpr CommandInfo kPlain{.name = "plain",
                             .summary = "does it",
                             .options = kOptions,
                             .run = nullptr,
                             .synopsis = "penstock plain DIR",
                             .examples = {"one", "two"}};
constexpr CommandInfo kSave{.name = "grouped save",
                            .summary = "saves it",
                            .options = kOptions,
                            .run = nullptr,
                            .synopsis = "penstock grouped save DIR",
                            .examples = {"one"}};
constexpr CommandInfo kLs{.name = "grouped ls",
                          .summary = "lists it",
                          .run = nullptr,
                          .synopsis = "penstock grouped ls",
                          .examples = {"one"}};
constexpr const CommandInfo* kSubcommands[] = {&kSave, &kLs};
constexpr CommandInfo kGrouped{
    .name = "grouped",
    .summary = "does them",
    .synopsis = "penstock grouped SUBCOMMAND",
    .examples = {"one", "two"},
    .subcommands = [] { return std::span<const CommandInfo* const>(kSubcommands); }};

bool has(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

TEST(Manuals, AManPageHasTheOptionsOfTheTable) {
  const std::string page = man_page(kSave, "2026-11-20");
  EXPECT_TRUE(has(page, ".TH PENSTOCK-GROUPED-SAVE 1 2026-11-20"));
  EXPECT_TRUE(has(page, "penstock\\-grouped\\-save \\- saves it\n"));
  EXPECT_TRUE(has(
      page,
      "\\fB\\-t\\fR, \\fB\\-\\-threads\\fR \\fILIST\\fR\n\\&.begins with a dot, it's \\e so (default 1)\n"));
  EXPECT_TRUE(has(page, ".SS Order\n"));
  EXPECT_TRUE(has(man_page_of_all({&kPlain, &kGrouped}, "2026-11-20"),
                  ".BR penstock\\-plain (1),\n.BR penstock\\-grouped (1)\n"));
}

TEST(Manuals, AManPageOfACommandListsItsSubcommands) {
  const std::string page = man_page(kGrouped, "2026-11-20");
  EXPECT_TRUE(has(page, "\\fBpenstock\\-grouped\\-save\\fR(1)\nsaves it\n"));
  EXPECT_TRUE(has(page, ".BR penstock\\-grouped\\-ls (1)\n"));
  EXPECT_FALSE(has(page, "threads"));
}

TEST(Manuals, AReferencePageHasTheOptionsOfAllSubcommands) {
  const std::string page = command_page(kGrouped);
  EXPECT_TRUE(page.starts_with("# penstock grouped\n\ndoes them\n"));
  EXPECT_TRUE(has(page, "\n## penstock grouped save\n"));
  EXPECT_TRUE(has(page, "- `-t, --threads LIST`: .begins with a dot, it's \\\\ so (default `1`)\n"));
  EXPECT_TRUE(has(page, "- `--order sequential|shuffled`: which \\[first\\]: then\n"));
  EXPECT_TRUE(has(page, "- `--to TIER ...`: where\n"));
}

TEST(Manuals, TheMetricsPageHasEachCommandThatMeasures) {
  constexpr MetricInfo kRates[] = {{"reads_per_s.*", "1/s", Better::higher, "repeat", kHeadline}};
  CommandInfo measuring = kPlain;
  measuring.metrics = kRates;
  const std::string page = metrics_page({&measuring, &kGrouped});
  EXPECT_TRUE(has(page, "\n## plain\n"));
  EXPECT_TRUE(has(page, "\n| `reads_per_s.*` | 1/s | higher | repeat | yes |\n"));
  EXPECT_FALSE(has(page, "grouped"));
}

TEST(Manuals, CompletionsOfferSubcommandsChoicesAndPaths) {
  const std::vector<const CommandInfo*> commands{&kPlain, &kGrouped};
  const std::string bash = bash_completion(commands, {{"plain", {"alexnet", "cosmo"}}});
  EXPECT_TRUE(has(bash, "plain) echo 'alexnet cosmo' ;;"));
  EXPECT_TRUE(has(bash, "grouped) echo 'save ls' ;;"));
  EXPECT_TRUE(has(bash, "grouped:ls) echo '--json "));
  EXPECT_TRUE(has(bash, "grouped:save) echo '--threads --order --to --quiet --json "));
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
      has(fish, "-n '__fish_seen_subcommand_from grouped; and __fish_seen_subcommand_from save' -l order"));
}

}  // namespace
}  // namespace penstock
