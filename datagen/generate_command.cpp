// penstock generate: makes a data set.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datagen/command_output.hpp"
#include "datagen/dry_run.hpp"
#include "datagen/generate.hpp"
#include "datagen/generate_list.hpp"
#include "datagen/generate_target.hpp"
#include "datagen/generation.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/object_check.hpp"
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
    {.name = "list", .type = OptionType::flag, .help = "show the recipes, or all of RECIPE", .group = kWhat},
    {.name = "threads",
     .type = OptionType::integer,
     .value = "N",
     .help = "workers; as many as there are processors if absent; the bytes do not depend on it",
     .group = kHow,
     .at_least = 1},
    {.name = "resume",
     .type = OptionType::flag,
     .help =
         "go on with an unfinished data set; what is there and right is kept; where none was begun, begin "
         "it if the line says how many",
     .group = kHow},
    {.name = "dry-run",
     .type = OptionType::flag,
     .help = "say what would be made, or why not; write nothing",
     .group = kHow},
};

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

unsigned threads_of(const Options& options) {
  if (options.given("threads")) return static_cast<unsigned>(options.integer("threads"));
  return static_cast<unsigned>(std::max<std::size_t>(1, allowed_cpus().size()));
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
    // Another recipe may not go with that format: check_target() says what it was begun with.
    const bool same_recipe = begun->recipe == context.positionals[0];
    if (same_recipe && !options.given("format")) format = begun->format;
    if (same_recipe && settings.empty())
      for (const auto& [key, value] : begun->settings) settings.push_back({key, value});
  }
  return plan_generation(context.positionals[0], format, settings, how_many, seed, threads_of(options));
}

bool says_how_many(const Options& options) {
  return options.given("samples") || options.given("bytes") || options.given("scale") ||
         options.given("size-for");
}

// Where what was asked for is not what comes of it.
void say_what_differs(const Options& options, const Generation& generation) {
  const std::uint64_t bytes = generation.bytes_expected;
  if (options.given("bytes") && bytes > options.size("bytes"))
    note(fmt::format("one sample is the least, and takes about {}: more than --bytes {}", format_size(bytes),
                     format_size(options.size("bytes"))));
  if (const std::string& size_for = options.text("size-for"); !size_for.empty()) {
    const std::string app = size_for.substr(0, size_for.find(','));
    const std::string doubt = doubt_of_size_for(app, generation.state.recipe);
    if (!doubt.empty()) warn(doubt);
  }
  constexpr std::string_view kShards = "shards=";
  for (const std::string& setting : options.texts("set")) {
    if (!setting.starts_with(kShards)) continue;
    const Result<std::uint64_t> shards = parse_count(std::string_view(setting).substr(kShards.size()));
    if (shards.ok() && *shards > generation.objects)
      note(fmt::format("{} samples make {} shards: no shard is empty", generation.state.samples,
                       generation.objects));
  }
}

// Whether all of it is there already. What a run would be refused for.
Result<bool> look_at_target(const Options& options, const Generation& generation, Tier& tier, bool begun) {
  const bool resume = options.flag("resume");
  PENSTOCK_ASSIGN(const bool complete, check_target(tier, generation.state, resume));
  if (complete) return true;
  if (resume && !begun && !says_how_many(options))
    return make_error(Errc::not_found,
                      fmt::format("nothing was begun in '{}' that --resume could go on with: say how many "
                                  "samples to begin with (--samples, --bytes, --scale or --size-for), or "
                                  "leave --resume out for the whole data set",
                                  tier.root));
  PENSTOCK_TRY(check_room(tier, generation, begun));
  return false;
}

// ---- Making it -----------------------------------------------------------------------------------------
double peak_memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
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

// Not what was made but never journaled, as where the storage is full: that is made again.
std::string what_resume_keeps(const Generation& generation, const Generated& made) {
  const std::uint64_t kept = made.samples_journaled + made.samples_kept;
  if (kept == 0) return "";
  return fmt::format("{} of {} samples are there; ", format_count(kept),
                     format_count(generation.state.samples));
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
    note(fmt::format("{}go on with: {}", what_resume_keeps(generation, made), how_to_go_on(context)));
  trial.fail(done.error());
  run.keep(std::move(trial));
  PENSTOCK_TRY(run.finish());
  return std::move(done).error();
}

// Of a finished data set that is to be resumed: whether it lacks nothing, as far as a look at the names
// tells.
Result<bool> has_all_objects(Tier& tier, unsigned threads) {
  PENSTOCK_ASSIGN(const Manifest manifest, Manifest::load(*tier.backend, kManifestName));
  PENSTOCK_ASSIGN(const std::vector<WrongObject> wrong,
                  check_object_sizes(tier.backend->names(), manifest, threads));
  if (wrong.empty()) return true;
  std::string name;
  note(fmt::format(
      "'{}' lacks {} of its {} objects, or has them in another size (first: '{}', {}): what is "
      "wrong is made again",
      tier.root, format_count(wrong.size()), format_count(manifest.objects()),
      printable(manifest.object_name(wrong.front().object, name)), printable(wrong.front().verdict.detail)));
  return false;
}

void say_nothing_to_do(const CommandContext& context, const Generation& generation, const Tier& tier) {
  const GenerationState& state = generation.state;
  note(fmt::format("'{}' holds all {} samples already: nothing to do (penstock verify checks their bytes)",
                   tier.root, format_count(state.samples)));
  if (context.output.json && !context.options.flag("dry-run"))
    print_json({{"kind", "complete"},
                {"recipe", state.recipe},
                {"format", state.format},
                {"samples", state.samples},
                {"objects", generation.objects},
                {"seed", state.seed},
                {"settings", state.settings},
                {"out", tier.root}});
}

Result<int> run_generate(const CommandContext& context) {
  const Options& options = context.options;
  if (options.flag("list")) {
    const RecipeInfo* only = nullptr;
    if (!context.positionals.empty()) {
      PENSTOCK_ASSIGN(only, recipe_registry().find(context.positionals[0]));
    }
    list_recipes(context.output, only);
    return 0;
  }
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
  say_what_differs(options, generation);
  Result<bool> complete = look_at_target(options, generation, tier, begun.has_value());
  if (complete.ok() && *complete) complete = has_all_objects(tier, threads_of(options));
  const std::string refused = complete.ok() ? "" : complete.error().message();
  if (options.flag("dry-run")) {
    PENSTOCK_TRY(show_plan(context.output, generation, tier, threads_of(options), refused));
    if (!complete.ok() && complete.error().code == Errc::no_space) {  // a plan may be for another machine
      warn(refused);
      return 0;
    }
  }
  if (!complete.ok()) return complete.error();
  if (*complete) say_nothing_to_do(context, generation, tier);
  if (options.flag("dry-run")) return 0;
  if (*complete) {
    sweep_lock(*tier.backend);
    return 0;
  }
  if (!generation.how_many.empty()) note(generation.how_many);
  if (!begun && !says_how_many(options))
    note(fmt::format("the whole data set: {} samples, about {} (--samples, --bytes and --scale make less)",
                     format_count(generation.state.samples), format_size(generation.bytes_expected)));
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
