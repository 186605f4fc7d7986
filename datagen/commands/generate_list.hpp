// generate --list: the recipes, the formats that can hold them, and the settings of both.
#pragma once

#include "datagen/recipe/recipe.hpp"
#include "io_backends/core/cli/command.hpp"

namespace penstock {

// Prints all recipes and formats, or `only` that recipe with the formats that can hold its samples.
void list_recipes(const Output& output, const RecipeInfo* only);

}  // namespace penstock
