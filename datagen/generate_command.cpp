// penstock generate: makes a data set.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datagen/commands/dry_run.hpp"
#include "datagen/commands/generate_list.hpp"
#include "datagen/commands/generate_request.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/generate/generate.hpp"
#include "datagen/generate/generate_share.hpp"
#include "datagen/generate/generate_target.hpp"
#include "datagen/generate/generation.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/target/target_room.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/shared_metrics.hpp"
#include "results/record/trial.hpp"

namespace penstock {

extern const CommandInfo command_generate;

namespace {

constexpr std::string_view kContentGroup = "What to make";
constexpr std::string_view kMakingGroup = "How to make it";
constexpr int64_t kMostThreads = 4096;

constexpr OptionSpec kGenerateOptions[] = {
    {.name = "out",
     .role = OptionRole::target,
     .value = "TIER|DIR",
     .help = "where to; a new or empty folder",
     .group = kContentGroup},
    {.name = "format",
     .role = OptionRole::work,
     .value = "FORMAT",
     .help = "how samples are stored in objects; the recipe's own if absent (--list)",
     .group = kContentGroup},
    {.name = "samples",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "number of samples; without --samples, --bytes, --scale and --size-for as many as the real "
             "data set has",
     .group = kContentGroup,
     .at_least = 1},
    {.name = "bytes",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .help = "as many samples as this holds",
     .group = kContentGroup,
     .at_least = 1},
    {.name = "scale",
     .role = OptionRole::work,
     .type = OptionType::real,
     .value = "X",
     .help = "this part of the real data set: 0.01",
     .group = kContentGroup},
    {.name = "size-for",
     .role = OptionRole::work,
     .value = "APP,accelerators=N,hosts=H[,memory=SIZE,batch=B]",
     .help =
         "as MLPerf Storage wants it: 500 steps of unet3d, resnet50 or cosmoflow on N accelerators, and 5 "
         "times the memory of H hosts (this machine's if absent)",
     .group = kContentGroup},
    {.name = "set",
     .role = OptionRole::work,
     .value = "KEY=VALUE",
     .help = "a setting of the recipe or the format (--list shows them)",
     .group = kContentGroup,
     .repeated = true},
    {.name = "list",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "show the recipes, or all of RECIPE",
     .group = kContentGroup},
    {.name = "threads",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "workers of each rank; as many as there are processors if absent; the bytes do not depend on it",
     .group = kMakingGroup,
     .at_least = 1},
    {.name = "resume",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help =
         "go on with an unfinished data set; what is there and right is kept; of a finished one, make "
         "again what is missing or of another size; where there is none, start it if the line says how many",
     .group = kMakingGroup},
    {.name = "dry-run",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "say what would be made, or why not, and with --resume how much of it is there; write nothing",
     .group = kMakingGroup},
};

constexpr MetricInfo kSampleRate{"samples_per_s", "1/s", Better::higher};
constexpr MetricInfo kPayloadRate{"payload_bytes_per_s", "B/s", Better::higher, "run", kHeadline};
constexpr MetricInfo kMetrics[] = {
    kSampleRate,           kPayloadRate,           shared_metrics::kWall, shared_metrics::kPeakMemory,
    kRankRatesOfRun.least, kRankRatesOfRun.median, kRankRatesOfRun.most};

// The peak memory of the rank that used most. Collective: every rank must call it.
Result<double> peak_memory_bytes(Communicator& ranks) {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  PENSTOCK_ASSIGN(const std::vector<double> bytes, gather<double>(ranks, double(usage.ru_maxrss) * 1024.0));
  return *std::max_element(bytes.begin(), bytes.end());
}

Result<Manifest> open_new_manifest(Tier& tier) {
  const auto path = tier.backend->native_path(kManifestName);
  return path ? Manifest::open(*path) : Manifest::load(*tier.backend, kManifestName);
}

void record_metrics(Trial& trial, const GenerateResult& result, double peak_memory) {
  if (result.samples_made != 0 && result.seconds > 0) {
    trial.sample(kSampleRate, double(result.samples_made) / result.seconds);
    trial.sample(kPayloadRate, double(result.bytes_made) / result.seconds);
    record_ranks(result.rank_figures, kRankRatesOfRun, trial);
  }
  trial.sample(shared_metrics::kWall, result.seconds);
  trial.sample(shared_metrics::kPeakMemory, peak_memory);
}

void print_result(const CommandContext& context, const Generation& generation, const Manifest& manifest,
                  const GenerateResult& result, const Tier& tier) {
  if (context.output.json) return;
  std::string text = fmt::format(
      "{}: {}, {}, in '{}' (seed {})\n", generation.state.recipe, count_of(manifest.samples(), "sample"),
      format_bytes(double(manifest.payload_bytes()), context.output), tier.root, generation.state.seed);
  if (result.samples_kept != 0)
    text += fmt::format("kept {} {}\n", count_of(result.samples_kept, "sample"),
                        result.checked_by_size
                            ? "whose objects have the right size (penstock verify checks their bytes)"
                            : "that were there already, byte for byte");
  if (result.samples_made != 0 && result.seconds > 0)
    text += fmt::format(
        "made {} in {}: {} samples/s, {} {}\n", count_of(result.samples_made, "sample"),
        format_seconds(result.seconds), format_number(double(result.samples_made) / result.seconds),
        format_rate(double(result.bytes_made) / result.seconds, context.output), rate_unit(context.output));
  if (const std::string range_of_ranks =
          rank_difference_text("the ranks", rank_rates(result.rank_figures), context.output);
      !range_of_ranks.empty())
    text += range_of_ranks + "\n";
  print_text(text);
}

// Says how many samples of an unfinished data set --resume will find. Only samples of objects in the journal
// (the list of finished objects) count. --resume makes all others again, for example those that were being
// written when the storage became full.
std::string describe_kept_samples(const Generation& generation, const GenerateResult& result) {
  const uint64_t kept_samples = result.samples_journaled + result.samples_kept;
  if (kept_samples == 0) return "";
  return fmt::format("{} of {} {} there; ", format_count(kept_samples),
                     count_of(generation.state.samples, "sample"), kept_samples == 1 ? "is" : "are");
}

std::string resume_command(const CommandContext& context) {
  std::vector<std::string> arguments(context.argv.begin(), context.argv.end());
  std::erase(arguments, "--resume");
  return shell_line(arguments) + " --resume";
}

Result<int> make_data_set(const CommandContext& context, const Generation& generation, Tier& tier) {
  Communicator& ranks = context.communicator;
  const unsigned threads = generate_threads(context.options);
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  run.check_tier(tier);
  Trial trial = run.trial();
  trial.parameter("tier", tier.name);
  trial.parameter("recipe", generation.state.recipe);
  trial.parameter("threads", threads);
  trial.parameter("samples", generation.state.samples);
  trial.parameter("settings", generation.state.settings);
  trial.parameter("generation_seed", generation.state.seed);
  const auto rank_count = uint64_t(ranks.size());
  if (rank_count > 1) trial.parameter("rank_scaling", "strong");
  if (generation.objects < rank_count)
    note(fmt::format("{} object{} for {} ranks: {} of them {} nothing to make", generation.objects,
                     generation.objects == 1 ? "" : "s", rank_count, rank_count - generation.objects,
                     rank_count - generation.objects == 1 ? "has" : "have"));
  GenerateResult result;
  Result<void> done = success();
  {
    Progress progress(context.output.progress,
                      fmt::format("generate {}{}", generation.state.recipe,
                                  rank_count > 1 ? ", the first rank's share" : ""),
                      share_of(generation, 0, ranks.size()).samples(), "samples");
    done = generate(generation, tier, threads, context.options.flag("resume"), ranks, progress, result);
  }
  if (!done.ok()) done = describe_full_tier(*tier.backend, std::move(done).error());
  if (result.damaged_objects != 0)
    warn(fmt::format("{} of the earlier run {} missing or wrong and {} made again",
                     count_of(result.damaged_objects, "object"), result.damaged_objects == 1 ? "was" : "were",
                     result.damaged_objects == 1 ? "was" : "were"));
  if (result.damaged_journal_parts != 0)
    warn("the journal of the earlier run is damaged; the objects that it no longer lists were made again");
  PENSTOCK_TRY(run.inspect_ranks());
  PENSTOCK_ASSIGN(const double peak_memory, peak_memory_bytes(ranks));
  if (!ranks.root()) return done.ok() ? Result<int>(0) : Result<int>(std::move(done).error());
  trial.tier("data", tier);  // adds the tier to the record, with the counts of calls on it
  record_metrics(trial, result, peak_memory);
  trial.parameter("samples_kept", result.samples_kept);
  if (done.ok()) {
    PENSTOCK_ASSIGN(const Manifest manifest, open_new_manifest(tier));
    trial.corpus(corpus_json(manifest));
    print_result(context, generation, manifest, result, tier);
    run.add(std::move(trial));
    PENSTOCK_TRY(run.finish());
    return run.exit_code();
  }
  if (result.can_resume)
    note(fmt::format("{}go on with: {}", describe_kept_samples(generation, result), resume_command(context)));
  trial.fail(done.error());
  run.add(std::move(trial));
  PENSTOCK_TRY(run.finish());
  return std::move(done).error();
}

void print_nothing_to_do(const CommandContext& context, const Generation& generation, const Tier& tier) {
  const GenerationState& state = generation.state;
  note(
      fmt::format("'{}' has every object of {} already, by its size: nothing to do (the bytes were "
                  "not read; penstock verify checks them)",
                  tier.root, count_of(state.samples, "sample")));
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

Result<void> dry_run(const CommandContext& context, const Generation& generation, Tier& tier,
                     const Result<bool>& complete) {
  const std::string refused = complete.ok() ? "" : complete.error().message();
  const unsigned threads = generate_threads(context.options);
  std::optional<ReusableObjects> reusable;
  if (context.options.flag("resume")) {
    PENSTOCK_ASSIGN(reusable, find_reusable_objects(generation, tier, threads));
  }
  PENSTOCK_ASSIGN(const std::string plan,
                  describe_plan(context.output, generation, tier, threads, reusable, refused));
  print_text(plan);
  // With too little space the plan is still shown: it may be meant for another machine.
  if (!complete.ok() && complete.error().code == Errc::no_space) {
    warn(refused);
    return success();
  }
  if (complete.ok() && *complete) print_nothing_to_do(context, generation, tier);
  return outcome_of(complete);
}

// Calls read_started_generation() on rank 0, and returns its result on every rank. Collective: every rank
// must call it.
Result<std::optional<GenerationState>> read_started_on_root(Communicator& ranks, Tier& tier) {
  PENSTOCK_ASSIGN(const std::string text, on_root(ranks, [&]() -> Result<std::string> {
                    PENSTOCK_ASSIGN(const auto started, read_started_generation(tier));
                    return started ? to_text(*started) : std::string();
                  }));
  if (text.empty()) return std::optional<GenerationState>();
  PENSTOCK_ASSIGN(GenerationState state, parse_generation_state(text));
  return std::optional<GenerationState>(std::move(state));
}

// Fails if the ranks have planned different data sets, because their objects would not fit together.
// Collective: every rank must call it.
Result<void> check_same_plan(Communicator& ranks, const GenerationState& state) {
  PENSTOCK_ASSIGN(const std::vector<uint32_t> keys, gather<uint32_t>(ranks, journal_key(state)));
  if (std::all_of(keys.begin(), keys.end(), [&](uint32_t key) { return key == keys.front(); }))
    return success();
  return make_error(Errc::invalid_argument,
                    "the ranks would make different data sets: add memory=SIZE to --size-for, which "
                    "otherwise uses each node's own memory, and start the same build on every node");
}

// Plans the data set. If the plans of two ranks differ, it fails on every rank. Collective: every rank must
// call it.
Result<Generation> decide_generation(const CommandContext& context,
                                     const std::optional<GenerationState>& started) {
  Result<Generation> planned = plan_from_options(context, started);
  PENSTOCK_TRY(all_ok(context.communicator, planned));
  PENSTOCK_TRY(check_same_plan(context.communicator, planned->state));
  return planned;
}

Result<int> run_generate(const CommandContext& context) {
  const Options& options = context.options;
  Communicator& ranks = context.communicator;
  if (options.flag("list")) {
    if (!ranks.root()) return 0;
    const RecipeInfo* listed_recipe = nullptr;
    if (!context.positionals.empty()) {
      PENSTOCK_ASSIGN(listed_recipe, recipe_registry().find(context.positionals[0]));
    }
    print_text(list_recipes(context.output, listed_recipe));
    return 0;
  }
  if (context.positionals.empty()) {
    std::vector<std::string> names;
    for (const RecipeInfo* recipe : recipe_registry().present()) names.emplace_back(recipe->name);
    return make_error(Errc::invalid_argument, "name a RECIPE: {}; to describe them: penstock generate --list",
                      fmt::join(names, ", "));
  }
  if (options.given("threads") && options.integer("threads") > kMostThreads)
    return make_error(Errc::invalid_argument, "--threads must be at most {}, not {}", kMostThreads,
                      options.integer("threads"));
  PENSTOCK_TRY(recipe_registry().find(context.positionals[0]));
  if (options.text("out").empty())
    return make_error(Errc::invalid_argument, "name the target with --out TIER|DIR: a new or empty folder");
  Result<Tier> opened = open_tier(options.text("out"), context.named_tiers);
  PENSTOCK_TRY(all_ok(ranks, opened));
  Tier tier = *std::move(opened);
  std::optional<GenerationState> started;
  if (options.flag("resume")) {
    PENSTOCK_ASSIGN(started, read_started_on_root(ranks, tier));
  }
  PENSTOCK_ASSIGN(const Generation generation, decide_generation(context, started));
  for (const std::string& text : describe_differences(options, generation)) note(text);
  Result<bool> complete = false;
  if (ranks.root()) complete = inspect_target(options, generation, tier, started.has_value(), note);
  if (options.flag("dry-run")) {
    PENSTOCK_TRY(on_root(ranks, [&] { return dry_run(context, generation, tier, complete); }));
    return 0;
  }
  PENSTOCK_ASSIGN(const bool is_complete, on_root(ranks, [&] { return complete; }));
  if (is_complete) {
    if (ranks.root()) print_nothing_to_do(context, generation, tier);
    if (ranks.root()) remove_leftovers(*tier.backend);
    return 0;
  }
  if (!generation.size_explanation.empty()) note(generation.size_explanation);
  if (!started && !gives_sample_count(options))
    note(fmt::format("the whole data set: {} samples, {} {} (--samples, --bytes and --scale make less)",
                     format_count(generation.state.samples), generation.size_prefix(),
                     format_size(generation.bytes_expected)));
  return make_data_set(context, generation, tier);
}

constexpr std::string_view kFindings[] = {"generation_seed", "samples_kept", "rank_scaling"};

}  // namespace

const CommandInfo command_generate{
    .name = "generate",
    .summary = "makes a data set",
    .options = kGenerateOptions,
    .run = run_generate,
    .synopsis =
        "penstock generate RECIPE --out TIER|DIR [--samples N | --bytes SIZE | --scale X | --size-for "
        "APP,...] [options]",
    .examples =
        {"penstock generate imagenet --out data --samples 2000 --seed 7   # 2000 pictures in class folders",
         "penstock generate imagenet --out data --bytes 10GiB --resume    # go on after Ctrl-C"},
    .arguments = "[RECIPE]",
    .measures = true,
    .runs_on_ranks = true,
    .findings = kFindings,
    .metrics = kMetrics,
};

}  // namespace penstock
