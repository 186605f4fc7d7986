// penstock checkpoint save: saves one checkpoint, and measures how long it takes to be acknowledged.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/ack_log.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/drain_progress.hpp"
#include "miniapps/checkpoint/saving_record.hpp"
#include "miniapps/checkpoint_subcommands/bench_runs.hpp"
#include "miniapps/checkpoint_subcommands/checkpoint_options.hpp"
#include "miniapps/checkpoint_subcommands/content.hpp"
#include "miniapps/checkpoint_subcommands/save_report.hpp"
#include "miniapps/checkpoint_subcommands/stores.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"
#include "results/record/environment.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::hours kForever{24 * 365 * 100};
constexpr std::chrono::milliseconds kProgressPoll{50};
constexpr std::string_view kDefaultRun = "default";
constexpr std::string_view kSkippedReason =
    "the fast tier was full, and --on-full skip skipped this checkpoint";

// Everything that a rank prepares before the first collective call.
struct PreparedSave {
  std::vector<Tier> tiers;  // the slow tier, then the fast tier if there is one
  SavedContent content;
  Checkpointer::OnReached on_reached;  // set on rank 0 if --ack-log is given

  const Tier& slow() const { return tiers.front(); }
  const Tier* fast() const { return tiers.size() > 1 ? &tiers[1] : nullptr; }
};

// Opens the tiers of the command line and returns the slow one first. With one STORE argument, with or
// without --burst-buffer, the stores need not exist. With two, both stores must exist: the STORE.json of each
// says whether it is the slow one.
Result<std::vector<Tier>> open_slow_and_fast(const CommandContext& context) {
  const std::span<const std::string> arguments = context.positionals;
  if (context.options.given("burst-buffer")) {
    if (arguments.size() != 1)
      return make_error(Errc::invalid_argument,
                        "save with --burst-buffer FAST needs exactly one STORE, the slow one");
    const std::vector<std::string> both{arguments[0], context.options.text("burst-buffer")};
    return open_store_tiers(both, context.named_tiers);
  }
  if (arguments.size() > 2)
    return make_error(Errc::invalid_argument, "save needs one slow STORE, and optionally a fast one");
  PENSTOCK_ASSIGN(std::vector<Tier> tiers, open_store_tiers(arguments, context.named_tiers));
  if (arguments.size() == 1) return tiers;
  std::vector<StoreRole> roles;
  for (const Tier& tier : tiers) {
    PENSTOCK_ASSIGN(const std::unique_ptr<CheckpointStore> store, open_if_there(tier));
    if (store == nullptr)
      return make_error(Errc::invalid_argument,
                        "'{}' is not a checkpoint store yet: name the fast store with --burst-buffer: "
                        "penstock checkpoint save SLOW --burst-buffer FAST",
                        tier.spec);
    roles.push_back(store->role());
  }
  if (roles[0] == roles[1])
    return make_error(Errc::invalid_argument,
                      "'{}' and '{}' are both {}: save needs one slow store, and at most one fast store",
                      arguments[0], arguments[1], role_name(roles[0]));
  if (roles[0] == StoreRole::fast) std::swap(tiers[0], tiers[1]);
  return tiers;
}

// Returns the run of --run, or the only run that exists, or "default" if there is none.
Result<std::string> run_to_save(const PreparedSave& prepared, const Options& options) {
  if (options.has("run")) {
    PENSTOCK_TRY(check_run_name(options.text("run")));
    return options.text("run");
  }
  std::vector<std::unique_ptr<CheckpointStore>> opened;
  std::vector<CheckpointStore*> stores;
  for (const Tier& tier : prepared.tiers) {
    PENSTOCK_ASSIGN(std::unique_ptr<CheckpointStore> store, open_if_there(tier));
    if (store == nullptr) continue;
    stores.push_back(store.get());
    opened.push_back(std::move(store));
  }
  PENSTOCK_ASSIGN(std::vector<std::string> runs, runs_in(stores));
  std::erase_if(runs, is_bench_run);
  return runs.empty() ? std::string(kDefaultRun) : one_run(stores, options);
}

uint64_t step_of(const Options& options) {
  return options.has("step") ? uint64_t(options.integer("step")) : 0;
}

Result<PreparedSave> prepare(const CommandContext& context) {
  const Options& options = context.options;
  const Communicator& ranks = context.communicator;
  if (options.given("payload") == options.given("from"))
    return make_error(Errc::invalid_argument,
                      "set the content to save: either --payload NAME|SIZE or --from DIR");
  PENSTOCK_ASSIGN(std::vector<Tier> tiers, open_slow_and_fast(context));
  const auto rank = uint64_t(ranks.rank());
  const auto rank_count = uint64_t(ranks.size());
  PENSTOCK_ASSIGN(SavedContent content,
                  options.given("from")
                      ? SavedContent::of_folder(options.text("from"), context.named_tiers, rank, rank_count)
                      : SavedContent::of_payload(options.text("payload"), rank, rank_count, context.seed,
                                                 step_of(options)));
  PreparedSave prepared{std::move(tiers), std::move(content), {}};
  if (options.given("ack-log") && ranks.root()) {
    PENSTOCK_ASSIGN(prepared.on_reached, log_acknowledgements(options.text("ack-log")));
  }
  return prepared;
}

// Collective. Waits until the checkpoint is durable, until the drain makes no progress for --on-full-timeout,
// or until the end of --timeout, which counts from `begin`. --timeout ends only this wait: the save, with its
// wait for space, has already ended.
Result<void> wait_until_durable(Checkpointer& checkpointer, const CheckpointId& id, DrainProgress progress,
                                Clock::time_point begin, const CommandContext& context) {
  const Options& options = context.options;
  const std::chrono::nanoseconds timeout =
      options.has("timeout") ? options.duration("timeout") : std::chrono::nanoseconds(kForever);
  const std::chrono::nanoseconds patience = options.duration("on-full-timeout");
  for (;;) {
    const std::chrono::nanoseconds left =
        std::max(std::chrono::nanoseconds(0), timeout - (Clock::now() - begin));
    const Result<void> waited =
        checkpointer.wait(id, Reached::durable, std::min<std::chrono::nanoseconds>(left, kProgressPoll));
    if (waited.ok() || waited.error().code != Errc::timed_out) return waited;
    const auto may_wait = [&]() -> Result<void> {
      const bool ended = Clock::now() - begin >= timeout;
      if (!ended && progress.stalled_for() < patience) return success();
      Error error = waited.error();
      error.what += ended ? fmt::format(" (--timeout {})", format_duration(timeout))
                          : fmt::format(" (nothing was drained for {}, the --on-full-timeout)",
                                        format_duration(patience));
      return error;
    };
    PENSTOCK_TRY(on_root(context.communicator, may_wait));
  }
}

// Collective. Saves, then waits as --wait and --timeout say.
Result<SaveOutcome> save(PreparedSave& prepared, const std::string& run, const CommandContext& context) {
  const Options& options = context.options;
  CheckpointPolicy policy = policy_of(options);
  policy.run = run;
  SaveOutcome outcome{.run = run, .times = {}, .counts = {}, .timeout_error = {}};
  PENSTOCK_ASSIGN(const std::unique_ptr<Checkpointer> checkpointer,
                  Checkpointer::open(policy, prepared.slow(), prepared.fast(), context.communicator,
                                     prepared.on_reached));
  const auto begin = Clock::now();
  PENSTOCK_ASSIGN(CheckpointTimes saved, checkpointer->save({.step = step_of(options),
                                                             .files = prepared.content.files(),
                                                             .trainer = {.seed = context.seed},
                                                             .payload = prepared.content.payload(),
                                                             .payload_seed = context.seed}));
  if (!saved.skipped && options.text("wait") == "durable" && saved.reached != Reached::durable) {
    const Result<void> waited = wait_until_durable(
        *checkpointer, saved.id, {*checkpointer, prepared.slow(), prepared.fast()}, begin, context);
    if (!waited.ok() && waited.error().code != Errc::timed_out) return waited.error();
    if (waited.ok())
      saved.reached = Reached::durable;
    else
      outcome.timeout_error = waited.error();
  }
  for (const CheckpointTimes& times : checkpointer->times())
    if (times.id == saved.id) outcome.times = times;
  outcome.times.reached = saved.reached;  // the level at the end of the wait; it may be higher by now
  outcome.counts = checkpointer->counts();
  outcome.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  return outcome;
}

void record(const SaveOutcome& outcome, Trial& trial) {
  record_saving({.checkpoints = std::span(&outcome.times, 1),
                 .counts = outcome.counts,
                 .steps = {},
                 .time_to_durable = bench_metrics::kTimeToDurable},
                trial);
  trial.sample(shared_metrics::kWall, outcome.wall_s);
  if (outcome.timeout_error) trial.fail(*outcome.timeout_error);
  if (outcome.times.skipped) trial.verdict(Verdict::degraded, kSkippedReason);
}

// Whether a save was refused: the run is busy, or the store is of another kind. Such a save gets no record.
bool is_refused(const Error& error) {
  return error.code == Errc::busy || error.code == Errc::invalid_argument;
}

// Collective. Begins the record of the save. The record is written only to its file, not to stdout, even with
// --json. If the default folder of results cannot be used, there is no record: the checkpoint is more
// important.
Result<std::optional<Run>> begin_record(const CommandContext& context, const PreparedSave& prepared) {
  CommandContext quiet_context = context;
  quiet_context.output.json = false;
  Result<Run> run = Run::begin(quiet_context);
  if (!run.ok() && (context.options.given("results") || run.error().code == Errc::invalid_argument))
    return run.error();
  if (!run.ok()) {
    if (context.communicator.root())
      warn(fmt::format("no result record is written: {}", run.error().message()));
    return std::optional<Run>();
  }
  for (const Tier& tier : prepared.tiers) run->check_tier(tier);
  return std::optional<Run>(*std::move(run));
}

// Writes the record of the save, also of a failed one. Collective if the save succeeded.
Result<void> write_record(const Result<SaveOutcome>& outcome, const PreparedSave& prepared, uint64_t bytes,
                          Run& run) {
  Trial trial = run.trial();
  trial.tier("checkpoint", prepared.slow());
  if (prepared.fast() != nullptr) trial.tier("burst_buffer", *prepared.fast());
  trial.parameter("payload_bytes", bytes);
  if (outcome.ok()) {
    record(*outcome, trial);
    PENSTOCK_TRY(run.inspect_ranks());
  } else {
    trial.fail(outcome.error());
  }
  run.add(std::move(trial));
  return outcome_of(run.finish());
}

Result<int> run_save(const CommandContext& context) {
  Communicator& ranks = context.communicator;
  const SignalsForAll signals(ranks);
  Result<PreparedSave> prepared = prepare(context);
  PENSTOCK_TRY(all_ok(ranks, prepared));
  PENSTOCK_ASSIGN(const std::string name,
                  on_root(ranks, [&] { return run_to_save(*prepared, context.options); }));
  uint64_t bytes = 0;  // bytes of all ranks together
  for (const FileView& file : prepared->content.files()) bytes += file.bytes.size();
  PENSTOCK_TRY(ranks.all_reduce(std::span(&bytes, 1), Reduction::sum));
  PENSTOCK_ASSIGN(std::optional<Run> run, begin_record(context, *prepared));
  const Result<SaveOutcome> outcome = save(*prepared, name, context);
  TierActivity& activity = *(prepared->fast() != nullptr ? *prepared->fast() : prepared->slow()).activity;
  ++(outcome.ok() ? activity.operations : activity.errors);
  if (!outcome.ok() && is_refused(outcome.error())) return outcome.error();
  if (outcome.ok() && ranks.root()) {
    report_save(*outcome, prepared->slow(), prepared->fast(), context);
    if (outcome->times.skipped) warn(fmt::format("{}: nothing was saved", kSkippedReason));
  }
  const Result<void> recorded = run ? write_record(outcome, *prepared, bytes, *run) : success();
  const bool saved = outcome.ok() && !outcome->timeout_error;
  if (saved) PENSTOCK_TRY(recorded);
  if (!recorded.ok() && ranks.root())
    warn(fmt::format("no result record is written: {}", recorded.error().message()));
  PENSTOCK_TRY(outcome_of(outcome));
  if (saved) return 0;
  report_failed(context,
                make_error(Errc::timed_out, "{}. It is safe on the fast tier; to continue the drain: {}",
                           outcome->timeout_error->message(),
                           drain_command(*prepared->fast(), prepared->slow(), outcome->run)));
  return kNotDurable;
}

constexpr OptionSpec kSaveOptions[] = {
    {.name = "run",
     .role = OptionRole::target,
     .value = "NAME",
     .help = "name of the run (default: the only run in the store, or 'default')",
     .group = kWhichCheckpointsGroup},
    step_option("training step of the checkpoint (default 0)"),
    kPayloadOption,
    {.name = "from",
     .role = OptionRole::target,
     .value = "DIR",
     .help = "save the files of a folder, distributed over the ranks by name",
     .group = kWhatIsSavedGroup},
    kBurstBufferOption,
    {.name = "wait",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "fast|durable",
     .fallback = "durable",
     .help = "wait until the checkpoint is on the fast tier (survives a process crash), or durable (survives "
             "power loss and loss of the fast tier)",
     .group = kWhatIsSavedGroup},
    {.name = "ack-log",
     .role = OptionRole::output,
     .value = "FILE",
     .help = "append a line 'step level', synced, when the checkpoint reaches each level",
     .group = kWhatIsSavedGroup},
    kOnFullOption,
    kOnFullTimeoutOption,
    kOversizeOption,
    kHeadroomOption,
    kTimeoutOption,
    kReadBackOption,
    keep_option("number of durable checkpoints to keep, including the newest (default 2)"),
    keep_fast_option("number of durable checkpoints to keep on the fast tier as well (default 1)"),
};

}  // namespace

extern const CommandInfo checkpoint_save;
const CommandInfo checkpoint_save{
    .name = "checkpoint save",
    .summary = "save one checkpoint from all ranks",
    .options = kSaveOptions,
    .run = &with_locks<run_save>,
    .synopsis = "penstock checkpoint save STORE... --payload NAME|SIZE | --from DIR [options]",
    .examples = {"penstock checkpoint save /pfs/ckpt --burst-buffer /dev/shm/bb --payload alexnet-adam   # "
                 "reports time to fast and to durable",
                 "penstock checkpoint save /pfs/ckpt --from state --step 400   # the files of a folder"},
    .notes =
        "Writes a record to --results DIR; with --json, prints one JSON object that describes the "
        "checkpoint.",
    .arguments = "STORE...",
    .measures = true,
    .runs_on_ranks = true,
};

}  // namespace penstock
