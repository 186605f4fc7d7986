// penstock generate: makes a data set.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "datagen/command_output.hpp"
#include "datagen/dry_run.hpp"
#include "datagen/generate.hpp"
#include "datagen/generate_target.hpp"
#include "datagen/generation.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/base/command.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/placement.hpp"
#include "io_backends/base/progress.hpp"
#include "io_backends/base/units.hpp"
#include "results/environment.hpp"
#include "results/table.hpp"
#include "results/trial.hpp"

namespace penstock {

extern const CommandInfo command_generate;

namespace {

constexpr std::string_view kWhat = "What to make";
constexpr std::string_view kHow = "How to make it";
constexpr std::int64_t kMostThreads = 4096;

constexpr OptionSpec kOptions[] = {
    {.name = "out", .value = "TIER|DIR", .help = "where to; a new or empty folder", .group = kWhat},
    {.name = "format",
     .value = "FORMAT",
     .help = "how samples lie in objects; the recipe's own if absent (--list)",
     .group = kWhat},
    {.name = "samples",
     .type = OptionType::integer,
     .value = "N",
     .help = "so many samples; without --samples, --bytes, --scale and --size-for as many as the real data "
             "set has",
     .group = kWhat,
     .at_least = 1},
    {.name = "bytes",
     .type = OptionType::size,
     .value = "SIZE",
     .help = "as many samples as this holds",
     .group = kWhat,
     .at_least = 1},
    {.name = "scale",
     .type = OptionType::real,
     .value = "X",
     .help = "this part of the real data set: 0.01",
     .group = kWhat},
    {.name = "size-for",
     .value = "APP,accelerators=N,hosts=H[,memory=SIZE,batch=B]",
     .help =
         "as MLPerf Storage wants it: 500 steps of unet3d, resnet50 or cosmoflow on N accelerators, and 5 "
         "times the memory of H hosts (this machine's if absent)",
     .group = kWhat},
    {.name = "set",
     .value = "KEY=VALUE",
     .help = "a setting of the recipe or the format (--list shows them)",
     .group = kWhat,
     .repeated = true},
    {.name = "list", .type = OptionType::flag, .help = "show the recipes", .group = kWhat},
    {.name = "threads",
     .type = OptionType::integer,
     .value = "N",
     .help = "workers; as many as there are processors if absent; the bytes do not depend on it",
     .group = kHow,
     .at_least = 1},
    {.name = "resume",
     .type = OptionType::flag,
     .help = "go on with an unfinished data set; what is there and right is kept",
     .group = kHow},
    {.name = "dry-run",
     .type = OptionType::flag,
     .help = "say what would be made, write nothing",
     .group = kHow},
};

// ---- --list --------------------------------------------------------------------------------------------
// Those that can hold its samples.
std::vector<const FormatInfo*> formats_for(const RecipeInfo& recipe) {
  std::vector<const FormatInfo*> formats;
  const auto defaults = Options::parse(recipe.options, {}, "setting");
  if (!defaults.ok()) return formats;
  const auto made = recipe.make({1, 0}, *defaults);
  if (!made.ok()) return formats;
  for (const FormatInfo* info : format_registry().present()) {
    const auto options = Options::parse(info->options, {}, "setting");
    if (!options.ok()) continue;
    const auto format = info->make(*options);
    if (format.ok() && (*format)->check((*made)->fields()).ok()) formats.push_back(info);
  }
  return formats;
}

std::string other_formats(const RecipeInfo& recipe) {
  std::string names;
  for (const FormatInfo* format : formats_for(recipe))
    if (format->name != recipe.format) names += fmt::format("{}{}", names.empty() ? "" : " ", format->name);
  return names;
}

Json list_row(const RecipeInfo& recipe) {
  Json settings = Json::array();
  for (const OptionSpec& spec : recipe.options)
    settings.push_back(
        {{"name", spec.name}, {"value", spec.value}, {"default", spec.fallback}, {"help", spec.help}});
  Json formats = Json::array();
  for (const FormatInfo* format : formats_for(recipe)) {
    Json keys = Json::array();
    for (const OptionSpec& spec : format->options)
      keys.push_back(
          {{"name", spec.name}, {"value", spec.value}, {"default", spec.fallback}, {"help", spec.help}});
    formats.push_back({{"name", format->name}, {"summary", format->summary}, {"settings", std::move(keys)}});
  }
  const double bytes = static_cast<double>(recipe.full_samples) * recipe.mean_sample_bytes;
  return Json{{"kind", "recipe"},
              {"name", recipe.name},
              {"summary", recipe.summary},
              {"source", recipe.source},
              {"samples", recipe.full_samples},
              {"bytes", static_cast<std::uint64_t>(bytes)},
              {"sizes", recipe.sizes},
              {"format", recipe.format},
              {"formats", std::move(formats)},
              {"settings", std::move(settings)}};
}

void append_settings(std::string& text, OptionTable options) {
  for (const OptionSpec& spec : options) {
    text += fmt::format("    --set {:<24}{}", fmt::format("{}={}", spec.name, spec.value), spec.help);
    if (!spec.fallback.empty() && spec.fallback.size() < 24)
      text += fmt::format(" (default {})", spec.fallback);
    text += '\n';
  }
}

int list_recipes(const Output& output) {
  if (output.json) {
    for (const RecipeInfo* recipe : recipe_registry().present()) print_json(list_row(*recipe));
    return 0;
  }
  Table table({{"recipe", Align::left},
               {"samples", Align::right},
               {"bytes", Align::right},
               {"sizes", Align::left},
               {"format", Align::left},
               {"also", Align::left}});
  std::string text;
  for (const RecipeInfo* recipe : recipe_registry().present()) {
    const double bytes = static_cast<double>(recipe->full_samples) * recipe->mean_sample_bytes;
    table.row({std::string(recipe->name), format_count(recipe->full_samples), format_bytes(bytes, output),
               std::string(recipe->sizes), std::string(recipe->format), other_formats(*recipe)});
    text += fmt::format("\n{}: {}\n    after {}\n", recipe->name, recipe->summary, recipe->source);
    append_settings(text, recipe->options);
  }
  for (const FormatInfo* format : format_registry().present()) {
    text += fmt::format("\n--format {}: {}\n", format->name, format->summary);
    append_settings(text, format->options);
  }
  print_text(table.text() + text);
  return 0;
}

// ---- What is asked for ---------------------------------------------------------------------------------
Result<std::vector<OptionWord>> setting_words(const std::vector<std::string>& given) {
  std::vector<OptionWord> words;
  for (const std::string& word : given) {
    const std::size_t divider = word.find('=');
    if (divider == 0 || divider == std::string::npos)
      return make_error(Errc::invalid_argument, fmt::format("--set takes KEY=VALUE, not '{}'", word));
    words.push_back({word.substr(0, divider), word.substr(divider + 1)});
  }
  return words;
}

// What the line leaves open is taken from the data set that --resume finds.
Result<Generation> decide(const CommandContext& context, const std::optional<GenerationState>& begun) {
  const Options& options = context.options;
  HowMany how_many{
      .samples = options.given("samples") ? static_cast<std::uint64_t>(options.integer("samples")) : 0,
      .bytes = options.given("bytes") ? options.size("bytes") : 0,
      .scale = options.given("scale") ? options.real("scale") : 0,
      .size_for = {}};
  if (options.given("scale") && !(how_many.scale > 0))
    return make_error(Errc::invalid_argument, fmt::format("--scale must be above 0, not {}", how_many.scale));
  if (options.given("size-for")) {
    PENSTOCK_ASSIGN(how_many.size_for, parse_size_for(options.text("size-for"), memory_bytes()));
  }
  PENSTOCK_ASSIGN(std::vector<OptionWord> settings, setting_words(options.texts("set")));
  std::string format = options.text("format");
  std::uint64_t seed = context.seed;
  if (begun) {
    if (!how_many.given()) how_many.samples = begun->samples;
    if (!options.given("seed")) seed = begun->seed;
    if (!options.given("format")) format = begun->format;
    if (settings.empty() && begun->recipe == context.positionals[0])
      for (const auto& [key, value] : begun->settings) settings.push_back({key, value});
  }
  return plan_generation(context.positionals[0], format, settings, how_many, seed);
}

// The whole data set of a recipe is large: asked for by default alone, it must at least fit.
Result<void> check_room(const CommandContext& context, const Generation& generation, Tier& tier) {
  const Options& options = context.options;
  const bool by_default = !options.given("samples") && !options.given("bytes") && !options.given("scale") &&
                          !options.given("size-for") && !options.flag("resume");
  const Result<std::uint64_t> free = tier.backend->names().free_bytes();
  if (!free.ok() || generation.bytes_expected <= *free) {
    if (by_default)
      note(fmt::format("the whole data set: {} samples, about {} (--samples, --bytes and --scale make less)",
                       format_count(generation.state.samples), format_size(generation.bytes_expected)));
    return success();
  }
  const std::string words = fmt::format(
      "{} samples of '{}' take about {}, and '{}' has {} free", format_count(generation.state.samples),
      generation.state.recipe, format_size(generation.bytes_expected), tier.root, format_size(*free));
  if (!by_default) {
    warn(words);
    return success();
  }
  return make_error(Errc::no_space, words + ": say how many with --samples, --bytes or --scale");
}

// ---- Making it -----------------------------------------------------------------------------------------
double peak_memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

unsigned threads_of(const Options& options) {
  if (options.given("threads")) return static_cast<unsigned>(options.integer("threads"));
  return static_cast<unsigned>(std::max<std::size_t>(1, allowed_cpus().size()));
}

Result<CorpusFacts> facts_of(const Generation& generation, Tier& tier) {
  const auto path = tier.backend->native_path(kManifestName);
  PENSTOCK_ASSIGN(const Manifest manifest,
                  path ? Manifest::open(*path) : Manifest::load(*tier.backend, kManifestName));
  const double memory = static_cast<double>(memory_bytes());
  const double bytes = static_cast<double>(manifest.payload_bytes());
  return CorpusFacts{.recipe = generation.state.recipe,
                     .format = generation.state.format,
                     .samples = manifest.samples(),
                     .bytes = manifest.payload_bytes(),
                     .checksum = manifest.checksum(),
                     .over_ram = memory > 0 ? bytes / memory : 0};
}

void measure(Trial& trial, const Generated& made) {
  if (made.samples_made != 0 && made.seconds > 0) {
    trial.value("samples_per_s", "1/s", Better::higher,
                static_cast<double>(made.samples_made) / made.seconds);
    trial.value("payload_bytes_per_s", "B/s", Better::higher,
                static_cast<double>(made.bytes_made) / made.seconds);
  }
  trial.value("wall_s", "s", Better::lower, made.seconds);
  trial.value("peak_memory_bytes", "B", Better::lower, peak_memory_bytes());
}

void say_what_was_made(const CommandContext& context, const Generation& generation, const CorpusFacts& facts,
                       const Generated& made, const Tier& tier) {
  if (context.output.json) return;
  std::string text = fmt::format(
      "{}: {} samples, {}, in '{}' (seed {})\n", generation.state.recipe, format_count(facts.samples),
      format_bytes(static_cast<double>(facts.bytes), context.output), tier.root, generation.state.seed);
  if (made.samples_kept != 0)
    text += fmt::format("kept {} samples that were there already\n", format_count(made.samples_kept));
  if (made.samples_made != 0 && made.seconds > 0)
    text += fmt::format("made {} samples in {}: {} samples/s, {} {}\n", format_count(made.samples_made),
                        format_seconds(made.seconds),
                        format_number(static_cast<double>(made.samples_made) / made.seconds),
                        format_rate(static_cast<double>(made.bytes_made) / made.seconds, context.output),
                        rate_unit(context.output));
  print_text(text);
}

std::string how_to_go_on(const CommandContext& context) {
  std::string line;
  for (const std::string& word : context.argv) {
    if (word == "--resume") continue;
    const bool plain = word.find_first_of(" '\"\\$&;|<>()*?#~`\t\n") == std::string::npos && !word.empty();
    std::string quoted = word;
    for (std::size_t at = 0; !plain && (at = quoted.find('\'', at)) != std::string::npos; at += 4)
      quoted.replace(at, 1, "'\\''");
    line += (line.empty() ? "" : " ") + (plain ? quoted : "'" + quoted + "'");
  }
  return line + " --resume";
}

Result<int> make_it(const CommandContext& context, const Generation& generation, Tier& tier) {
  const unsigned threads = threads_of(context.options);
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  run.measured_tier(tier);
  Trial trial = run.trial();
  trial.tier("data", tier);
  trial.parameter("tier", tier.name);
  trial.parameter("recipe", generation.state.recipe);
  trial.parameter("threads", threads);
  trial.parameter("samples", generation.state.samples);
  trial.parameter("settings", generation.state.settings);
  trial.parameter("generation_seed", generation.state.seed);
  Generated made;
  Result<void> done = success();
  {
    Progress progress(context.output.progress, "generate " + generation.state.recipe,
                      generation.state.samples, "samples");
    done = generate(generation, tier, threads, context.options.flag("resume"), progress, made);
  }
  if (made.damaged != 0)
    warn(fmt::format("{} objects of before were missing or wrong and were made again", made.damaged));
  if (made.journal_damaged != 0)
    warn("the journal of before is damaged; what it no longer names was made again");
  measure(trial, made);
  trial.parameter("samples_kept", made.samples_kept);
  if (done.ok()) {
    PENSTOCK_ASSIGN(const CorpusFacts facts, facts_of(generation, tier));
    trial.corpus(facts);
    say_what_was_made(context, generation, facts, made, tier);
    run.keep(std::move(trial));
    PENSTOCK_TRY(run.finish());
    return run.exit_code();
  }
  if (made.begun)
    note(fmt::format("{} of {} samples are there; go on with: {}",
                     format_count(made.samples_made + made.samples_kept),
                     format_count(generation.state.samples), how_to_go_on(context)));
  trial.fail(done.error());
  run.keep(std::move(trial));
  PENSTOCK_TRY(run.finish());
  return std::move(done).error();
}

Result<int> run_generate(const CommandContext& context) {
  const Options& options = context.options;
  if (options.flag("list")) return list_recipes(context.output);
  if (context.positionals.empty()) {
    std::vector<std::string> names;
    for (const RecipeInfo* recipe : recipe_registry().present()) names.emplace_back(recipe->name);
    return make_error(Errc::invalid_argument,
                      fmt::format("say which RECIPE: {} (--list describes them)", fmt::join(names, ", ")));
  }
  if (options.given("threads") && options.integer("threads") > kMostThreads)
    return make_error(Errc::invalid_argument, fmt::format("--threads must be at most {}, not {}",
                                                          kMostThreads, options.integer("threads")));
  PENSTOCK_TRY(recipe_registry().find(context.positionals[0]));
  if (options.text("out").empty())
    return make_error(Errc::invalid_argument, "say where to with --out TIER|DIR: a new or empty folder");
  PENSTOCK_ASSIGN(Tier tier, open_tier(options.text("out")));
  std::optional<GenerationState> begun;
  if (options.flag("resume")) {
    PENSTOCK_ASSIGN(begun, what_was_begun(tier));
  }
  PENSTOCK_ASSIGN(const Generation generation, decide(context, begun));
  if (options.flag("dry-run")) return show_plan(context.output, generation, tier, threads_of(options));
  if (!generation.how_many.empty()) note(generation.how_many);
  PENSTOCK_ASSIGN(const bool complete, check_target(tier, generation.state, options.flag("resume")));
  if (complete) {
    sweep_lock(*tier.backend);
    note(fmt::format("'{}' holds all {} samples already: nothing to do", tier.root,
                     format_count(generation.state.samples)));
    return 0;
  }
  PENSTOCK_TRY(check_room(context, generation, tier));
  return make_it(context, generation, tier);
}

}  // namespace

const CommandInfo command_generate{
    .name = "generate",
    .summary = "makes a data set",
    .options = kOptions,
    .run = run_generate,
    .synopsis =
        "penstock generate RECIPE --out TIER|DIR [--samples N | --bytes SIZE | --scale X | --size-for "
        "APP,...] [options]",
    .examples =
        {"penstock generate imagenet --out data --samples 2000 --seed 7   # 2000 pictures in class folders",
         "penstock generate imagenet --out data --bytes 10GiB --resume    # go on after Ctrl-C"},
    .nouns = "RECIPE",
    .nouns_at_least = 0,
    .nouns_at_most = 1,
    .measures = true,
};

}  // namespace penstock
