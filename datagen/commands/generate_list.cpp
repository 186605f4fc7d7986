#include "datagen/commands/generate_list.hpp"

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/format/object_names.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

bool can_store(const FormatInfo& format, const RecipeInfo& recipe, const std::vector<OptionWord>& words) {
  const auto settings = Options::parse(recipe.options, {}, "setting");
  const auto options = Options::parse(format.options, words, "setting");
  if (!settings.ok() || !options.ok()) return false;
  const auto made_recipe = recipe.make({1, 0}, *settings);
  const auto made_format = format.make(*options);
  return made_recipe.ok() && made_format.ok() && (*made_format)->check((*made_recipe)->fields()).ok();
}

// Whether objects of the format can store the recipe's samples. It tries the default settings, and one sample
// per object.
bool can_store(const FormatInfo& format, const RecipeInfo& recipe) {
  return can_store(format, recipe, {}) ||
         can_store(format, recipe, {{std::string(kSamplesPerFileOption.name), "1"}});
}

std::vector<const FormatInfo*> formats_for(const RecipeInfo& recipe) {
  std::vector<const FormatInfo*> formats;
  for (const FormatInfo* format : format_registry().present())
    if (can_store(*format, recipe)) formats.push_back(format);
  return formats;
}

std::string other_formats(const RecipeInfo& recipe) {
  std::string names;
  for (const FormatInfo* format : formats_for(recipe))
    if (format->name != recipe.format) names += fmt::format("{}{}", names.empty() ? "" : " ", format->name);
  return names;
}

Json settings_json(OptionTable options) {
  Json settings = Json::array();
  for (const OptionSpec& spec : options)
    settings.push_back(
        {{"name", spec.name}, {"value", spec.value}, {"default", spec.fallback}, {"help", spec.help}});
  return settings;
}

Json list_row(const RecipeInfo& recipe) {
  Json formats = Json::array();
  for (const FormatInfo* format : formats_for(recipe))
    formats.push_back(
        {{"name", format->name}, {"summary", format->summary}, {"settings", settings_json(format->options)}});
  const double bytes = double(recipe.full_samples) * recipe.mean_sample_bytes;
  return Json{{"kind", "recipe"},
              {"name", recipe.name},
              {"summary", recipe.summary},
              {"source", recipe.source},
              {"samples", recipe.full_samples},
              {"bytes", uint64_t(bytes)},
              {"sizes", recipe.sizes},
              {"format", recipe.format},
              {"formats", std::move(formats)},
              {"settings", settings_json(recipe.options)}};
}

void append_settings(std::string& text, OptionTable options) {
  for (const OptionSpec& spec : options) {
    text += fmt::format("    --set {:<24}{}", fmt::format("{}={}", spec.name, spec.value), spec.help);
    if (!spec.fallback.empty() && spec.fallback.size() < 24)
      text += fmt::format(" (default {})", spec.fallback);
    text += '\n';
  }
}

}  // namespace

std::string list_recipes(const Output& output, const RecipeInfo* only_recipe) {
  const std::span<const RecipeInfo* const> recipes =
      only_recipe == nullptr ? recipe_registry().present() : std::span(&only_recipe, 1);
  std::string text;
  if (output.json) {
    for (const RecipeInfo* recipe : recipes) text += one_line(list_row(*recipe)) + "\n";
    return text;
  }
  Table table({{"recipe", Align::left},
               {"samples", Align::right},
               {"bytes", Align::right},
               {"sizes", Align::left},
               {"format", Align::left},
               {"also", Align::left}});
  for (const RecipeInfo* recipe : recipes) {
    const double bytes = double(recipe->full_samples) * recipe->mean_sample_bytes;
    table.row({std::string(recipe->name), format_count(recipe->full_samples, output),
               format_bytes(bytes, output), std::string(recipe->sizes), std::string(recipe->format),
               other_formats(*recipe)});
    text += fmt::format("\n{}: {}\n    after {}\n", recipe->name, recipe->summary, recipe->source);
    append_settings(text, recipe->options);
  }
  for (const FormatInfo* format : format_registry().present()) {
    if (only_recipe != nullptr && !can_store(*format, *only_recipe)) continue;
    text += fmt::format("\n--format {}: {}\n", format->name, format->summary);
    append_settings(text, format->options);
  }
  return table.text() + text;
}

}  // namespace penstock
