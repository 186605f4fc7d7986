#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "datagen/staging/overlay.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "miniapps/staging/advice.hpp"
#include "miniapps/staging/staged_files.hpp"
#include "profiling/session/session.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

constexpr uint64_t kMostThreads = 1024;

Result<std::vector<Tier>> open_both(const Options& options, NamedTiers named) {
  for (const char* name : {"slow", "fast"})
    if (!options.given(name)) return make_error(Errc::invalid_argument, "set both tiers: --{} TIER", name);
  if (!options.given("capacity"))
    return make_error(Errc::invalid_argument, "set the usable size of the fast tier: --capacity SIZE");
  const std::vector<std::string> texts{options.text("slow"), options.text("fast")};
  PENSTOCK_ASSIGN(std::vector<Tier> tiers, open_tiers(texts, "", named));
  const auto slow = tiers[0].backend->native_path("");
  const auto fast = tiers[1].backend->native_path("");
  if (!slow || !fast) return tiers;
  std::error_code failed;
  const auto a = std::filesystem::weakly_canonical(*slow, failed);
  const auto b = std::filesystem::weakly_canonical(*fast, failed);
  if (std::ranges::mismatch(a, b).in1 == a.end() || std::ranges::mismatch(b, a).in1 == b.end())
    return make_error(Errc::invalid_argument,
                      "'{}' and '{}': one contains the other; name two separate folders", slow->native(),
                      fast->native());
  return tiers;
}

// Returns not_found if the tier's folder is missing. The user may have mistyped the name, so the measurement
// must not create the folder.
Result<void> check_folder(const Tier& tier, std::string_view option) {
  const auto missing = missing_folder(tier);
  if (!missing) return success();
  return make_error(Errc::not_found, "--{1}: folder '{0}' does not exist; create it or correct the path",
                    missing->native(), option);
}

// Checks that -o may replace the file `path`. Refuses a file that is no staging plan, and a plan whose copies
// are on the fast tier or may be there: without the plan, they could never be removed.
Result<void> check_may_replace(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed) || std::filesystem::file_size(path, failed) == 0)
    return success();
  const Result<StagingPlan> plan = load_staging_plan(path);
  if (!plan.ok())
    return make_error(Errc::already_exists, "'{}' exists and is not a staging plan: choose another -o", path);
  if (!plan->should_stage) return success();
  const Result<bool> started = is_started(*plan);
  if (!started.ok())
    return make_error(started.error().code,
                      "it is unknown whether the plan '{}' is applied: choose another -o, or remove it; {}",
                      path, started.error().message());
  if (!*started) return success();
  return make_error(Errc::already_exists,
                    "the plan '{}' is applied on tier '{}', and only this plan lists the copies to remove: "
                    "choose another -o, or revert it first: penstock stage revert {}",
                    path, plan->fast.name, shell_word(path));
}

PlannedTier planned_tier(const Tier& tier) {
  return {.name = tier.name, .spec = tier.spec, .root = tier.root};
}

// Whether the advice assumes that bytes in the page cache are read from the cache. False with --cache cold,
// and if the back end bypasses the cache. False if the back end emulates a tier, since it delays cached reads
// too. False for a tier in memory, which is no slower than the cache.
bool counts_cache(const Tier& slow, const Options& options) {
  if (options.text("cache") == "cold") return false;
  return !slow.backend->caps().emulated && !slow.facts.memory && !slow.backend->caps().bypasses_cache;
}

Result<TierSpeeds> speeds_of(const CommandContext& context, std::vector<Tier>& tiers, const SessionWork& work,
                             const AdviceRequest& request) {
  const Options& options = context.options;
  if (options.given("speeds")) {
    const std::vector<std::filesystem::path> paths(options.texts("speeds").begin(),
                                                   options.texts("speeds").end());
    PENSTOCK_ASSIGN(const RecordSet set, read_records(paths));
    for (const std::string& problem : set.problems) warn(problem);
    std::vector<Record> records;
    for (const StoredRecord& stored : set.records) records.push_back(stored.record);
    return recorded_speeds(tiers[0], tiers[1], records);
  }
  Progress progress(context.output.progress, "measuring the tiers", 0, "");
  const SpeedProbe probe{.threads = probe_threads(request.threads != 0 ? request.threads : work.threads),
                         .copy_threads = request.copy_threads,
                         .min_time = options.duration("min-time"),
                         .repeats = size_t(options.integer("repeat")),
                         .cold = options.text("cache") == "cold" || !tiers[0].backend->caps().emulated,
                         .seed = uint64_t(context.options.integer("seed")),
                         .note = [&](std::string_view what) { progress.set_note(what); },
                         .log = context.log,
                         .warn = context.warn};
  return probe_speeds(tiers[0], tiers[1], work, probe);
}

Result<AdviceRequest> request_of(const CommandContext& context) {
  const Options& options = context.options;
  AdviceRequest request{.policy = options.text("policy"),
                        .capacity = options.size("capacity"),
                        .copy_threads = worker_threads(0),
                        .seed = uint64_t(context.options.integer("seed"))};
  PENSTOCK_TRY(parse_policy(request.policy));
  if (options.given("epochs")) request.epochs = uint64_t(options.integer("epochs"));
  if (!options.given("threads")) return request;
  const auto threads = uint64_t(options.integer("threads"));
  if (threads > kMostThreads)
    return make_error(Errc::invalid_argument, "--threads {}: use at most {}", threads, kMostThreads);
  request.threads = unsigned(threads);
  return request;
}

Result<int> run_advise(const CommandContext& context) {
  const Options& options = context.options;
  PENSTOCK_ASSIGN(std::vector<Tier> tiers, open_both(options, context.named_tiers));
  PENSTOCK_ASSIGN(const AdviceRequest request, request_of(context));
  if (options.given("output")) PENSTOCK_TRY(check_may_replace(options.text("output")));
  PENSTOCK_TRY(check_folder(tiers[0], "slow"));
  if (!options.given("speeds")) PENSTOCK_TRY(check_folder(tiers[1], "fast"));
  const std::vector<std::filesystem::path> paths(context.positionals.begin(), context.positionals.end());
  PENSTOCK_ASSIGN(const Session session, open_session(paths));
  for (const std::string& problem : session.problems) warn(problem);
  const SessionFilter filter{.include = options.texts("include"), .exclude = options.texts("exclude")};
  PENSTOCK_ASSIGN(const SessionWork work,
                  work_of(session, filter, tiers[0], counts_cache(tiers[0], options)));
  PENSTOCK_ASSIGN(const TierSpeeds speeds, speeds_of(context, tiers, work, request));
  const auto free = tiers[1].backend->names().free_bytes();
  PENSTOCK_ASSIGN(Advice advice, advise(work, speeds, request, free.ok() ? *free : UINT64_MAX));
  if (advice.capacity < request.capacity)
    note(fmt::format("tier '{}' has only {} free", tiers[1].name,
                     format_bytes(double(advice.capacity), context.output)));
  advice.plan.slow = planned_tier(tiers[0]);
  advice.plan.fast = planned_tier(tiers[1]);
  if (options.given("output")) PENSTOCK_TRY(save_staging_plan(advice.plan, options.text("output")));
  if (context.output.json) {
    Json json = advice_json(advice, work);
    json["plan"] = options.given("output") ? Json(options.text("output")) : Json();
    print_json(json);
    return 0;
  }
  print_text(advice_text(advice, work, options.text("cache") == "cold", context.output));
  if (!options.given("output"))
    print_text("no plan was written: to save it, add -o PLAN\n");
  else if (advice.plan.should_stage)
    print_text("next: penstock stage apply " + shell_word(options.text("output")) + "\n");
  return 0;
}

constexpr std::string_view kAdviseGroup = "What to stage";
constexpr std::string_view kMeasureGroup = "Measurement of the tiers";
constexpr OptionSpec kAdviseOptions[] = {
    {.name = "slow",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "the tier with the files that the session read: a folder or TIER",
     .group = kAdviseGroup},
    {.name = "fast",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "the tier to stage to",
     .group = kAdviseGroup},
    {.name = "capacity",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .help = "space to use on the fast tier",
     .group = kAdviseGroup,
     .at_least = 1},
    {.name = "policy",
     .role = OptionRole::work,
     .value = "density|threshold=SIZE|best-single|first-come",
     .fallback = "density",
     .help = "how to choose files. density: most time saved per byte first, while the epoch gets shorter; "
             "threshold: all files below a size; best-single: one file; first-come: in order of first read "
             "(for comparison)",
     .group = kAdviseGroup},
    {.name = "threads",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "threads that the program will read with (default: as in the session)",
     .group = kAdviseGroup,
     .alias = "numjobs",
     .at_least = 1},
    {.name = "epochs",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "epochs that the program will still run: a copy that pays off later is not recommended",
     .group = kAdviseGroup,
     .at_least = 1},
    {.name = "cache",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "asis|cold",
     .fallback = "asis",
     .help = "asis: files in this machine's page cache now cost nothing on either tier; cold: assume an "
             "empty page cache",
     .group = kAdviseGroup},
    {.name = "include",
     .role = OptionRole::work,
     .value = "GLOB",
     .help = "use only files that match, as in profile report",
     .group = kAdviseGroup,
     .repeated = true},
    {.name = "exclude",
     .role = OptionRole::work,
     .value = "GLOB",
     .help = "leave out files that match",
     .group = kAdviseGroup,
     .repeated = true},
    {.name = "output",
     .role = OptionRole::output,
     .value = "PLAN",
     .help = "write the plan to this file",
     .group = kAdviseGroup,
     .alias = "o"},
    {.name = "min-time",
     .role = OptionRole::repeat,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "250ms",
     .help = "measured time of each repeat, for each file size and thread count",
     .group = kMeasureGroup},
    {.name = "repeat",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "number of repeats, for the confidence interval",
     .group = kMeasureGroup,
     .at_least = 1},
    {.name = "speeds",
     .role = OptionRole::target,
     .value = "RESULTS",
     .help = "do not measure: use records that `penstock tiers --probe` made of the same two TIERs",
     .group = kMeasureGroup,
     .repeated = true},
    {.name = "seed",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1",
     .help = "random seed",
     .group = kMeasureGroup,
     .at_least = 0},
};

}  // namespace

extern const CommandInfo stage_advise;
const CommandInfo stage_advise{
    .name = "stage advise",
    .summary = "recommend which files of a program to stage on a faster tier, and estimate the gain",
    .options = kAdviseOptions,
    .run = &run_advise,
    .synopsis = "penstock stage advise SESSION... --slow TIER --fast TIER --capacity SIZE [options]",
    .examples = {"penstock stage advise session --slow /data --fast /nvme/p --capacity 4GiB -o plan.json   # "
                 "which files, and when it pays off"},
    .notes =
        "A SESSION is the folder that `penstock profile run -o SESSION -- COMMAND` wrote. Both tiers are "
        "measured for a\nfew seconds with files of the sizes that the session read. This writes about 96 MiB "
        "to the fast tier, an existing\nfolder, and removes them afterwards. The exit code is 0 also for the "
        "verdict \"don't stage\".",
    .arguments = "SESSION...",
};

}  // namespace penstock
