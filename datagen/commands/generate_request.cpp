#include "datagen/commands/generate_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datagen/generate/generate_target.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/objects/object_check.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/units.hpp"
#include "results/record/environment.hpp"

namespace penstock {
namespace {

Result<std::vector<OptionWord>> parse_settings(const std::vector<std::string>& given) {
  std::vector<OptionWord> words;
  for (const std::string& word : given) {
    const size_t equals_sign = word.find('=');
    if (equals_sign == 0 || equals_sign == std::string::npos)
      return make_error(Errc::invalid_argument, "--set needs KEY=VALUE, not '{}'", word);
    words.push_back({word.substr(0, equals_sign), word.substr(equals_sign + 1)});
  }
  return words;
}

// For --resume of a finished data set: whether all its objects exist and have the right sizes.
Result<bool> has_all_objects(Tier& tier, unsigned threads, const std::function<void(std::string_view)>& log) {
  PENSTOCK_ASSIGN(const Manifest manifest, Manifest::load(*tier.backend, kManifestName));
  PENSTOCK_ASSIGN(const std::vector<ObjectVerdict> wrong,
                  check_object_sizes(tier.backend->names(), manifest, threads));
  if (wrong.empty()) return true;
  PENSTOCK_TRY(check_space_for_repair(tier, manifest, wrong));
  std::string name;
  log(fmt::format(
      "'{}': {} of {} {} missing or another size (first: '{}', {}) and will be generated again", tier.root,
      format_count(wrong.size()), count_of(manifest.objects(), "object"), wrong.size() == 1 ? "is" : "are",
      printable(manifest.object_name(wrong.front().object, name)), printable(wrong.front().detail)));
  return false;
}

// Returns true if the data set is already complete. Fails with the reason why a run would fail.
Result<bool> check_before_run(const Options& options, const Generation& generation, Tier& tier,
                              bool started) {
  const bool resume = options.flag("resume");
  PENSTOCK_TRY(check_no_writer(tier));
  PENSTOCK_ASSIGN(const bool complete, check_target(tier, generation.state, resume));
  if (complete) return true;
  if (resume && !started && !gives_sample_count(options))
    return make_error(Errc::not_found,
                      "'{}' has no unfinished data set to resume: set the number of samples (--samples, "
                      "--bytes, --scale or --size-for), or leave out --resume to generate the whole data set",
                      tier.root);
  PENSTOCK_TRY(check_may_write(tier));
  PENSTOCK_TRY(check_free_space(tier, generation, started));
  return false;
}

}  // namespace

unsigned generate_threads(const Options& options) {
  if (options.given("threads")) return unsigned(options.integer("threads"));
  return usable_cpus();
}

bool gives_sample_count(const Options& options) {
  return options.given("samples") || options.given("bytes") || options.given("scale") ||
         options.given("size-for");
}

std::vector<std::string> describe_differences(const Options& options, const Generation& generation) {
  std::vector<std::string> notes;
  const uint64_t bytes = generation.bytes_expected;
  if (options.given("bytes") && bytes > options.size("bytes"))
    notes.push_back(fmt::format("one sample takes {} {}, more than --bytes {}: raise --bytes",
                                generation.size_prefix(), format_size(bytes),
                                format_size(options.size("bytes"))));
  if (!generation.size_for_app.empty()) {
    const std::string warning = size_for_warning(generation.size_for_app, generation.state.recipe);
    if (!warning.empty()) notes.push_back("warning: " + warning);
  }
  constexpr std::string_view kShards = "shards=";
  for (const std::string& setting : options.texts("set")) {
    if (!setting.starts_with(kShards)) continue;
    const Result<uint64_t> shards = parse_count(std::string_view(setting).substr(kShards.size()));
    if (shards.ok() && *shards > generation.objects)
      notes.push_back(fmt::format("{} samples cannot fill {} shards: reduce --set shards",
                                  generation.state.samples, generation.objects));
  }
  return notes;
}

Result<Generation> plan_from_options(const CommandContext& context,
                                     const std::optional<GenerationState>& started) {
  const Options& options = context.options;
  SampleCountRequest count_request{
      .samples = options.given("samples") ? uint64_t(options.integer("samples")) : 0,
      .bytes = options.given("bytes") ? options.size("bytes") : 0,
      .scale = options.given("scale") ? options.real("scale") : 0,
      .size_for = {}};
  if (options.given("scale") && !(count_request.scale > 0))
    return make_error(Errc::invalid_argument, "--scale must be above 0, not {}", count_request.scale);
  if (options.given("size-for")) {
    PENSTOCK_ASSIGN(count_request.size_for, parse_size_for(options.text("size-for"), memory_bytes()));
  }
  PENSTOCK_ASSIGN(std::vector<OptionWord> settings, parse_settings(options.texts("set")));
  std::string format = options.text("format");
  uint64_t seed = context.seed;
  if (started) {
    if (!count_request.is_set()) count_request.samples = started->samples;
    if (!options.given("seed")) seed = started->seed;
    // Take format and settings from the started data set only if its recipe is the same, because another
    // recipe may not fit them. If the command line names another recipe, check_target() fails and says with
    // which recipe the data set was started.
    const bool same_recipe = started->recipe == context.positionals[0];
    if (same_recipe && !options.given("format")) format = started->format;
    if (same_recipe && settings.empty())
      for (const auto& [key, value] : started->settings) settings.push_back({key, value});
  }
  return plan_generation(context.positionals[0], format, settings, count_request, seed,
                         generate_threads(options));
}

Result<bool> inspect_target(const Options& options, const Generation& generation, Tier& tier, bool started,
                            const std::function<void(std::string_view)>& log) {
  PENSTOCK_ASSIGN(const bool complete, check_before_run(options, generation, tier, started));
  return complete ? has_all_objects(tier, generate_threads(options), log) : Result<bool>(false);
}

}  // namespace penstock
