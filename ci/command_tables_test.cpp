// The option tables of everything in the program: each option has a role, so that a record can say what was
// measured.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/cli/command.hpp"
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
  add_tables(command_registry(), "command", tables);
  add_tables(backend_registry(), "back end", tables);
  add_tables(recipe_registry(), "recipe", tables);
  add_tables(format_registry(), "format", tables);
  add_tables(miniapp_registry(), "mini-app", tables);
  return tables;
}

TEST(CommandTables, EveryOptionHasARole) {
  std::size_t options = 0;
  for (const NamedTable& named : all_tables())
    for (const OptionSpec& option : named.table) {
      EXPECT_NE(option.role, OptionRole::unset) << named.owner << ": " << option.name;
      ++options;
    }
  EXPECT_GT(options, 200U);
}

}  // namespace
}  // namespace penstock
