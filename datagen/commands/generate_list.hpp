// generate --list: the text of all recipes, the formats that can store them, and the settings of both.
#pragma once

#include <string>

#include "datagen/recipe/recipe.hpp"
#include "io_backends/core/cli/command.hpp"

namespace penstock {

// All recipes and formats, as JSON lines if `output` asks for them. With `only_recipe`, only that recipe and
// the formats that can store its samples.
std::string list_recipes(const Output& output, const RecipeInfo* only_recipe);

}  // namespace penstock
