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
    if (!options.given(name)) return make_error(Errc::invalid_argument, "name both tiers: --{} TIER", name);
  if (!options.given("capacity"))
    return make_error(Errc::invalid_argument, "set how much of the fast tier may be used: --capacity SIZE");
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
                      "'{}' and '{}': one of them is inside the other; name two separate folders",
                      slow->native(), fast->native());
  return tiers;
}

// Returns not_found if the tier's folder is missing. The user may have mistyped the name, so the measurement
// must not create the folder.
Result<void> check_folder(const Tier& tier, std::string_view option) {
  const auto missing = missing_folder(tier);
  if (!missing) return success();
  return make_error(Errc::not_found,
                    "there is no folder '{}', which --{} names: make it first, or correct the name",
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
    return make_error(Errc::already_exists,
                      "'{}' exists and is not a staging plan: choose another name for -o", path);
  if (!plan->should_stage) return success();
  const Result<bool> started = is_started(*plan);
  if (!started.ok())
    return make_error(
        started.error().code,
        "whether the plan '{}' is in place is unknown: choose another name for -o, or remove it; {}", path,
        started.error().message());
  if (!*started) return success();
  return make_error(
      Errc::already_exists,
      "the plan '{}' is in place on tier '{}', and only this plan lists the copies to remove: choose "
      "another name for -o, or remove them first: penstock stage revert {}",
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
    return make_error(Errc::invalid_argument, "--threads {}: at most {}", threads, kMostThreads);
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
    note(fmt::format("tier '{}' has room for only {}", tiers[1].name,
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
    print_text("nothing was written: -o PLAN keeps the list\n");
  else if (advice.plan.should_stage)
    print_text("next: penstock stage apply " + shell_word(options.text("output")) + "\n");
  return 0;
}

constexpr std::string_view kAdviseGroup = "What to stage";
constexpr std::string_view kMeasureGroup = "How the tiers are measured";
constexpr OptionSpec kAdviseOptions[] = {
    {.name = "slow",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "the tier that holds what the session read: a folder, or TIER",
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
     .help = "of the fast tier, to be used at most",
     .group = kAdviseGroup,
     .at_least = 1},
    {.name = "policy",
     .role = OptionRole::work,
     .value = "density|threshold=SIZE|best-single|first-come",
     .fallback = "density",
     .help =
         "density: most time saved for a byte first, as far as it makes the epoch shorter; threshold: all "
         "files below a size; best-single: one file; first-come: as they were first read (to compare with)",
     .group = kAdviseGroup},
    {.name = "threads",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "that the program will read by (as many as the session saw, if not given)",
     .group = kAdviseGroup,
     .at_least = 1},
    {.name = "epochs",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "that are still to come: a copy that pays later is not advised",
     .group = kAdviseGroup,
     .at_least = 1},
    {.name = "cache",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "asis|cold",
     .fallback = "asis",
     .help = "asis: what lies in this machine's page cache now costs nothing on either tier; cold: as if "
             "nothing did",
     .group = kAdviseGroup},
    {.name = "include",
     .role = OptionRole::work,
     .value = "GLOB",
     .help = "only files that match, as for profile report",
     .group = kAdviseGroup,
     .repeated = true},
    {.name = "exclude",
     .role = OptionRole::work,
     .value = "GLOB",
     .help = "not these",
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
     .help = "of each repeat of each size of files and number of threads",
     .group = kMeasureGroup},
    {.name = "repeat",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "repeats, from which the interval comes",
     .group = kMeasureGroup,
     .at_least = 1},
    {.name = "speeds",
     .role = OptionRole::target,
     .value = "RESULTS",
     .help = "measure nothing: take records that `penstock tiers --probe` made of the same two TIERs",
     .group = kMeasureGroup,
     .repeated = true},
    {.name = "seed",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1",
     .help = "of what is drawn at random",
     .group = kMeasureGroup,
     .at_least = 0},
};

}  // namespace

extern const CommandInfo stage_advise;
const CommandInfo stage_advise{
    .name = "stage advise",
    .summary = "says what of a program's files to put on a faster tier, and what that brings",
    .options = kAdviseOptions,
    .run = &run_advise,
    .synopsis = "penstock stage advise SESSION... --slow TIER --fast TIER --capacity SIZE [options]",
    .examples = {"penstock stage advise session --slow /data --fast /nvme/p --capacity 4GiB -o plan.json   # "
                 "what, and when it pays"},
    .notes =
        "A SESSION is what `penstock profile run -o SESSION -- COMMAND` left of any program. Both tiers are "
        "measured for\n"
        "some seconds with files of the sizes that the session read; some 96 MiB are written to the fast "
        "tier, a folder\n"
        "that has to be there, and removed again. Exit code 0 also for the verdict \"don't stage\".",
    .arguments = "SESSION...",
};

}  // namespace penstock
