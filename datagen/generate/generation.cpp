#include "datagen/generate/generation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "datagen/format/object_names.hpp"
#include "datagen/generate/packing.hpp"
#include "io_backends/core/units.hpp"
#include "results/record/environment.hpp"

namespace penstock {
namespace {

constexpr uint64_t kMostPlansInspected = 16384;
constexpr uint64_t kMostCorpusBytes = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMostObjects = 0xfffffffe;  // a manifest counts objects in 32 bits
constexpr uint64_t kManifestBytesPerSample = 64;
// The size of a shard, unless the user chooses one. TensorFlow's guide recommends 100 to 200 MB per file.
constexpr double kUsualShardBytes = 128.0 * 1024 * 1024;

struct PlannedSize {
  uint64_t samples = 0;
  double bytes = 0;
};

// Returns how many samples like the recipe's fit into `budget` bytes, at least one, and how many bytes they
// have. The number may be larger than recipe.samples(). If `budget` is 0, it is recipe.samples(). Adds up the
// planned sizes of the first kMostPlansInspected samples, and assumes that the other samples have the same
// mean size.
PlannedSize plan_size(const Recipe& recipe, double budget) {
  PlannedSize out;
  const uint64_t inspected = std::min(recipe.samples(), kMostPlansInspected);
  while (out.samples < inspected) {
    const auto bytes = double(recipe.bytes_expected(out.samples));
    if (budget > 0 && out.samples > 0 && out.bytes + bytes > budget) return out;
    out.bytes += bytes;
    ++out.samples;
  }
  const double mean_bytes = out.bytes / double(std::max<uint64_t>(1, out.samples));
  if (budget > 0)
    out.samples = uint64_t(std::min(budget / std::max(1.0, mean_bytes), 9e18));
  else
    out.samples = recipe.samples();
  out.bytes = mean_bytes * double(out.samples);
  return out;
}

// Returns the number of samples that the request asks for. `per_object` is the number of samples per object,
// or 1 if no setting gives it.
Result<SampleCount> count_samples(const RecipeInfo& info, const Options& options,
                                  const SampleCountRequest& count_request, uint64_t seed,
                                  uint64_t per_object) {
  const int ways_given = (count_request.samples != 0 ? 1 : 0) + (count_request.bytes != 0 ? 1 : 0) +
                         (count_request.scale != 0 ? 1 : 0) + (count_request.size_for ? 1 : 0);
  if (ways_given > 1)
    return make_error(Errc::invalid_argument,
                      "set the number of samples with one of --samples, --bytes, --scale and --size-for");
  if (count_request.samples != 0) return SampleCount{count_request.samples, ""};
  PENSTOCK_ASSIGN(const auto full_recipe, info.make({0, seed}, options));
  if (count_request.scale != 0) {
    const double samples = count_request.scale * double(full_recipe->samples());
    if (!(samples > 0))
      return make_error(Errc::invalid_argument, "--scale {}: give a number above 0, such as 0.01",
                        count_request.scale);
    if (!(samples < 9e18))
      return make_error(Errc::invalid_argument,
                        "--scale {} of the {} samples of '{}' is too large to count: choose a smaller scale",
                        count_request.scale, full_recipe->samples(), info.name);
    return SampleCount{std::max<uint64_t>(1, uint64_t(std::llround(samples))), ""};
  }
  if (count_request.bytes == 0 && !count_request.size_for) return SampleCount{full_recipe->samples(), ""};
  PENSTOCK_ASSIGN(const auto recipe, info.make({kMostPlansInspected, seed}, options));
  if (count_request.size_for) {
    const PlannedSize sum = plan_size(*recipe, 0);
    return samples_for(*count_request.size_for, sum.bytes / double(sum.samples), per_object);
  }
  return SampleCount{plan_size(*recipe, double(count_request.bytes)).samples, ""};
}

Result<void> check_size(const Generation& generation, double bytes) {
  const uint64_t samples = generation.state.samples;
  if (!(bytes < double(kMostCorpusBytes)))
    return make_error(Errc::invalid_argument,
                      "{} samples of '{}' exceed 2^63 bytes, the limit of file systems: make fewer", samples,
                      generation.state.recipe);
  const uint64_t memory = memory_bytes();
  if (generation.objects > kMostObjects)
    return make_error(Errc::invalid_argument,
                      "{} samples need {} objects, and a manifest lists at most {}: make fewer samples, or "
                      "set samples_per_file",
                      samples, generation.objects, kMostObjects);
  if (memory != 0 && samples > memory / kManifestBytesPerSample)
    return make_error(Errc::invalid_argument,
                      "{} samples are too many: their manifest does not fit into memory; make fewer",
                      samples);
  return success();
}

// The settings that decide the data set: all settings of the recipe, with defaults filled in, and those
// settings of the format that were given.
std::map<std::string, std::string> settings_of(const RecipeInfo& recipe, const Options& options) {
  std::map<std::string, std::string> settings;
  for (const OptionWord& option : options.resolved()) {
    const bool of_recipe = std::any_of(recipe.options.begin(), recipe.options.end(),
                                       [&](const OptionSpec& spec) { return spec.name == option.key; });
    if (of_recipe || options.given(option.key)) settings[option.key] = option.value;
  }
  return settings;
}

bool has_option(OptionTable table, std::string_view name) {
  return std::any_of(table.begin(), table.end(), [&](const OptionSpec& spec) { return spec.name == name; });
}

bool gives_object_size(const std::vector<OptionWord>& settings) {
  return std::any_of(settings.begin(), settings.end(), [](const OptionWord& word) {
    return word.key == kShardsOption.name || word.key == kSamplesPerFileOption.name;
  });
}

// Adds the recipe's settings for its own format. Leaves out a setting that the user has given. "shards" and
// "samples_per_file" exclude each other, so if the user has given one of them, the recipe's values for both
// are left out.
void add_settings(std::vector<OptionWord>& settings, const Options& given, const RecipeInfo& recipe) {
  const bool user_gives_size = gives_object_size(settings);
  if (recipe.format_settings == nullptr) return;
  for (const RecipeSetting& setting : recipe.format_settings(given)) {
    const bool gives_size = setting.key == kShardsOption.name || setting.key == kSamplesPerFileOption.name;
    if (gives_size ? user_gives_size : given.given(setting.key)) continue;
    settings.push_back({std::string(setting.key), std::string(setting.value)});
  }
}

uint64_t usual_shards(double bytes) {
  return uint64_t(std::clamp(bytes / kUsualShardBytes, 1.0, double(kMostObjects)));
}

// The number of folders K if `settings` has "dirs=hash:K"; 0 if "dirs" has another value.
uint64_t hashed_folders(const std::map<std::string, std::string>& settings) {
  constexpr std::string_view kHashPrefix = "hash:";
  const auto folder_setting = settings.find(std::string(kDirsOption.name));
  if (folder_setting == settings.end() || !folder_setting->second.starts_with(kHashPrefix)) return 0;
  return parse_count(std::string_view(folder_setting->second).substr(kHashPrefix.size())).value_or(0);
}

// The expected number of folders that get at least one object, if each object is put into a random folder.
uint64_t expected_folders(uint64_t folders, uint64_t objects) {
  if (folders <= 1) return folders;
  const auto count = double(folders);
  return uint64_t(-count * std::expm1(double(objects) * std::log1p(-1 / count)));
}

}  // namespace

uint64_t Generation::first_sample(uint64_t object) const {
  return format->first_sample(object, state.samples);
}

uint64_t Generation::end_sample(uint64_t object) const {
  return object + 1 == objects ? state.samples : first_sample(object + 1);
}

uint64_t Generation::object_of(uint64_t sample) const {
  uint64_t low = 0;
  uint64_t high = objects;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (first_sample(middle) <= sample ? low : high) = middle;
  }
  return low;
}

uint64_t Generation::folders() const {
  // The number of objects whose folders are counted. Their samples have nearly every label, because the
  // labels of samples alternate or are random.
  const uint64_t inspected =
      std::min(objects, std::max<uint64_t>(kMostPlansInspected, 2 * recipe->label_names().size()));
  if (const uint64_t hashed = hashed_folders(state.settings); hashed != 0 && inspected < objects)
    return expected_folders(hashed, objects);
  std::set<std::string, std::less<>> folder_names;
  SamplePlan plan;
  for (uint64_t object = 0; object < inspected; ++object) {
    recipe->plan(first_sample(object), plan);
    std::string folder = object_name(object, plan);
    for (size_t end = folder.rfind('/'); end != std::string::npos; end = folder.rfind('/')) {
      folder.resize(end);
      if (!folder_names.insert(folder).second) break;
    }
  }
  return folder_names.size();
}

std::string Generation::object_name(uint64_t object, const SamplePlan& first) const {
  return format->object_name(object, objects, state.recipe, first.key, recipe->fields().front().extension);
}

namespace {

// Like plan_generation(), but here SampleCountRequest::bytes limits the size of the payload, not that of the
// objects.
Result<Generation> plan_payload(std::string_view recipe, std::string_view format,
                                std::vector<OptionWord> settings, const SampleCountRequest& count_request,
                                uint64_t seed, unsigned threads) {
  PENSTOCK_ASSIGN(const RecipeInfo* const recipe_info, recipe_registry().find(recipe));
  const bool is_own_format = format.empty() || format == recipe_info->format;
  if (format.empty()) format = recipe_info->format;
  PENSTOCK_ASSIGN(const FormatInfo* const format_info, format_registry().find(format));
  const OptionTable tables[] = {recipe_info->options, format_info->options};
  PENSTOCK_ASSIGN(Options options, Options::parse(tables, settings, "setting"));
  if (is_own_format) add_settings(settings, options, *recipe_info);
  PENSTOCK_ASSIGN(options, Options::parse(tables, settings, "setting"));
  if (has_option(format_info->options, "types") && options.given("types"))
    return make_error(Errc::invalid_argument,
                      "types has no effect on generated data: leave it out (--types is for --scan; codec=png "
                      "makes PNG pictures)");
  if (takes_field(*format_info) && options.given("field"))
    return make_error(Errc::invalid_argument,
                      "field has no effect on generated data: leave it out (--set field=NAME is for --scan)");
  const std::string_view per_object_key = kSamplesPerFileOption.name;
  const bool has_per_object = has_option(format_info->options, per_object_key) && options.has(per_object_key);
  PENSTOCK_ASSIGN(const SampleCount count,
                  count_samples(*recipe_info, options, count_request, seed,
                                has_per_object ? uint64_t(options.integer(per_object_key)) : 1));
  Generation generation;
  generation.size_explanation = count.explanation;
  if (count_request.size_for) generation.size_for_app = count_request.size_for->app;
  PENSTOCK_ASSIGN(generation.recipe, recipe_info->make({count.samples, seed, threads}, options));
  const double bytes = plan_size(*generation.recipe, 0).bytes;
  if (has_option(format_info->options, kShardsOption.name) && !gives_object_size(settings))
    settings.push_back({std::string(kShardsOption.name), std::to_string(usual_shards(bytes))});
  PENSTOCK_ASSIGN(options, Options::parse(tables, settings, "setting"));
  PENSTOCK_ASSIGN(generation.format, format_info->make(options));
  PENSTOCK_TRY(generation.format->check(generation.recipe->fields()));
  generation.state = {.recipe = std::string(recipe),
                      .fingerprint = recipe_info->fingerprint,
                      .format = std::string(format),
                      .seed = seed,
                      .samples = generation.recipe->samples(),
                      .settings = settings_of(*recipe_info, options)};
  generation.objects = generation.format->objects(generation.state.samples);
  PENSTOCK_TRY(check_size(generation, bytes));
  PENSTOCK_TRY(check_largest_sample(*generation.recipe, *generation.format));
  PENSTOCK_ASSIGN(const double overhead, format_overhead(*generation.recipe, *generation.format));
  generation.bytes_are_limit = !generation.format->wrapping().empty();
  generation.payload_expected = uint64_t(bytes);
  generation.bytes_expected = uint64_t(bytes + std::max(overhead, 0.0));
  return generation;
}

}  // namespace

Result<Generation> plan_generation(std::string_view recipe, std::string_view format,
                                   std::vector<OptionWord> settings, const SampleCountRequest& count_request,
                                   uint64_t seed, unsigned threads) {
  PENSTOCK_ASSIGN(Generation generation,
                  plan_payload(recipe, format, settings, count_request, seed, threads));
  const auto wanted_bytes = double(count_request.bytes);
  const auto bytes = double(generation.bytes_expected);
  if (count_request.bytes == 0 || generation.state.samples == 1 || bytes <= wanted_bytes) return generation;
  // The objects would be larger than requested, so this plans again with fewer samples. It assumes that the
  // bytes that the format adds shrink in proportion to the payload.
  SampleCountRequest payload_request = count_request;
  payload_request.bytes =
      std::max<uint64_t>(1, uint64_t(wanted_bytes * double(generation.payload_expected) / bytes));
  return plan_payload(recipe, format, std::move(settings), payload_request, seed, threads);
}

}  // namespace penstock
