// The option tables of everything in the program: each option has a role, so that a record can say what was
// measured.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/backend/backend_info.hpp"
#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/train/miniapp.hpp"

namespace penstock {
namespace {

struct NamedTable {
  std::string owner;
  OptionTable table;
};

template <class Info>
void add_tables(const Registry<Info>& registry, const std::string& kind, std::vector<NamedTable>& tables) {
  for (const Info* const info : registry.present())
    tables.push_back({kind + " " + std::string(info->name), info->options});
}

std::vector<NamedTable> all_tables() {
  std::vector<NamedTable> tables{{"all commands", common_options()},
                                 {"measuring commands", measuring_options()},
                                 {"tiers", tier_options()}};
  for (const CommandInfo* const command : command_registry().present()) {
    tables.push_back({"command " + std::string(command->name), command->options});
    for (const CommandInfo* const subcommand : subcommands_of(*command))
      tables.push_back({"command " + std::string(subcommand->name), subcommand->options});
  }
  add_tables(backend_registry(), "back end", tables);
  add_tables(recipe_registry(), "recipe", tables);
  add_tables(format_registry(), "format", tables);
  add_tables(miniapp_registry(), "mini-app", tables);
  return tables;
}

TEST(CommandTables, EveryOptionHasARole) {
  size_t options = 0;
  for (const NamedTable& named : all_tables())
    for (const OptionSpec& option : named.table) {
      EXPECT_NE(option.role, OptionRole::unset) << named.owner << ": " << option.name;
      ++options;
    }
  EXPECT_GT(options, 200U);
}

// A record has the command's name but not the subcommand. Words before the subcommand are parsed with the
// tables of all subcommands. So an option must have the same type and role in all of them.
TEST(CommandTables, SubcommandsAgreeOnWhatAnOptionIs) {
  for (const CommandInfo* const command : command_registry().present())
    for (const OptionTable table : tables_of(*command))
      for (const OptionSpec& option : table) {
        const OptionSpec* const first = find_option(*command, option.name);
        ASSERT_NE(first, nullptr) << command->name << ": " << option.name;
        EXPECT_EQ(first->type, option.type) << command->name << ": " << option.name;
        EXPECT_EQ(first->role, option.role) << command->name << ": " << option.name;
        EXPECT_EQ(first->alias, option.alias) << command->name << ": " << option.name;
        EXPECT_EQ(first->repeated, option.repeated) << command->name << ": " << option.name;
      }
}

TEST(CommandTables, ASubcommandIsACommandOfItsCommand) {
  size_t subcommands = 0;
  for (const CommandInfo* const command : command_registry().present()) {
    EXPECT_EQ(command->subcommands == nullptr, command->run != nullptr) << command->name;
    for (const CommandInfo* const subcommand : subcommands_of(*command)) {
      EXPECT_EQ(subcommand->name, std::string(command->name) + " " + std::string(last_word(*subcommand)));
      EXPECT_FALSE(subcommand->summary.empty()) << subcommand->name;
      EXPECT_NE(subcommand->run, nullptr) << subcommand->name;
      EXPECT_LE(subcommand->measures, command->measures) << subcommand->name;
      EXPECT_LE(subcommand->runs_on_ranks, command->runs_on_ranks) << subcommand->name;
      ++subcommands;
    }
  }
  EXPECT_GT(subcommands, 20U);
}

}  // namespace
}  // namespace penstock
