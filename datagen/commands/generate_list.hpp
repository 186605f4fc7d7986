// generate --list: prints the recipes, the formats that can store them, and the settings of both.
#pragma once

#include "datagen/recipe/recipe.hpp"
#include "io_backends/core/cli/command.hpp"

namespace penstock {

// Prints all recipes and formats. With `only`, prints that recipe and the formats that can store its samples.
void list_recipes(const Output& output, const RecipeInfo* only);

}  // namespace penstock
