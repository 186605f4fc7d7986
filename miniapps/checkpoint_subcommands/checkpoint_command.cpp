// `penstock checkpoint SUBCOMMAND STORE...`: a training's state on a slow tier and a fast one in front of it.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/subcommands.hpp"
#include "miniapps/checkpoint_subcommands/bench_metrics.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"

namespace penstock {
namespace {

constexpr std::string_view kWhich = "Which checkpoints (all subcommands)";
constexpr std::string_view kSave =
    "save: one checkpoint, over all ranks (payload and burst buffer: of bench, too)";
constexpr std::string_view kFull = "save and bench: where the fast tier is full";
constexpr std::string_view kRestore = "restore: the newest that is whole, proven byte by byte";
constexpr std::string_view kDrain = "save, bench and drain: on the way to the slow tier";
constexpr std::string_view kBench = "bench: a training that saves again and again";
constexpr std::string_view kKeep = "save, bench, drain and gc: what stays";

constexpr OptionSpec kOptions[] = {
    {.name = "run",
     .role = OptionRole::target,
     .value = "NAME",
     .help = "of this run (verify, ls, gc and status: of all, if not given; else of the only one there is; "
             "save begins 'default')",
     .group = kWhich},
    {.name = "step",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "save: of this step of the training (0 if not given); restore: this one and no other",
     .group = kWhich,
     .at_least = 0},
    {.name = "payload",
     .role = OptionRole::work,
     .value = "NAME|SIZE",
     .help = "save the state of a training of that model or size, made from --seed, so that restore and "
             "verify can prove every byte",
     .group = kSave},
    {.name = "from",
     .role = OptionRole::target,
     .value = "DIR",
     .help = "save the files of a folder, dealt out over the ranks by name",
     .group = kSave},
    {.name = "burst-buffer",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "the fast tier: save there, and drain to the slow STORE while others work",
     .group = kSave},
    {.name = "wait",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "fast|durable",
     .fallback = "durable",
     .help = "until it outlives the process, or a power cut and the fast tier's loss as well",
     .group = kSave},
    {.name = "ack-log",
     .role = OptionRole::output,
     .value = "FILE",
     .help = "append a synced line 'step level' for each level as soon as it holds",
     .group = kSave},
    {.name = "steps",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "100",
     .help = "of the training",
     .group = kBench,
     .at_least = 1},
    {.name = "every",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "20",
     .help = "steps from one checkpoint to the next",
     .group = kBench,
     .at_least = 1},
    {.name = "step-time",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "100ms",
     .help = "of a step when nothing else goes on",
     .group = kBench},
    {.name = "burn",
     .role = OptionRole::work,
     .type = OptionType::real,
     .value = "CPUS",
     .fallback = "1",
     .help =
         "processors that a step works on: a fixed amount, calibrated to --step-time before, so that a drain "
         "that takes a processor away makes steps longer; 0: steps sleep, and nothing is said of how much "
         "longer they get",
     .group = kBench,
     .at_least = 0},
    {.name = "arms",
     .role = OptionRole::work,
     .value = "LIST",
     .help =
         "of direct, burst-buffer, snapshot (to memory, and from there), by turns in random order (default: "
         "direct, and burst-buffer where there is one)",
     .group = kBench},
    {.name = "repeat",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "each arm so often; what the tiers take at best is measured anew each time",
     .group = kBench,
     .at_least = 1},
    {.name = "mtbf",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "24h",
     .help = "from one failure to the next, for the advice how often to save",
     .group = kBench},
    {.name = "on-full",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "block|skip|writethrough",
     .fallback = "block",
     .help = "wait for the drain, leave this checkpoint out, or write it to the slow tier",
     .group = kFull},
    {.name = "on-full-timeout",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "10m",
     .help = "fail when a save waited so long for room, or when at the end nothing was drained for so long",
     .group = kFull},
    {.name = "oversize",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "writethrough|fail",
     .fallback = "writethrough",
     .help = "what to do with a checkpoint that is larger than the fast tier",
     .group = kFull},
    {.name = "headroom",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .fallback = "0",
     .help = "of the fast tier, to be left free",
     .group = kFull},
    {.name = "to",
     .role = OptionRole::target,
     .value = "DIR",
     .help = "write the files there, and restart.json last (without it, they are read and proven only)",
     .group = kRestore},
    {.name = "replace",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "begin also in a folder that is not empty, and replace files of the same name",
     .group = kRestore},
    {.name = "timeout",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .help =
         "wait for the drain until then, counted from the begin, and exit 3 if not all is durable; what is "
         "not stays on the fast tier (a save's waiting for room and its writing count, and are not cut "
         "short: "
         "see --on-full-timeout)",
     .group = kDrain},
    {.name = "read-back",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help =
         "read each copy again, and check it, before it counts as durable (drain reads slow copies that were "
         "there before anyway, unless the fast one stays)",
     .group = kDrain},
    {.name = "keep",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "durable checkpoints of the run, the newest included (save: 2; bench: 5; gc: all, if not given)",
     .group = kKeep,
     .at_least = 1},
    {.name = "keep-fast",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "durable ones that stay on the fast tier as well (save and bench: 1; drain: 0; gc: all, if not "
             "given)",
     .group = kKeep,
     .at_least = 0},
};

struct Subcommand {
  std::string_view name;
  Result<int> (*run)(const CommandContext& context, StoreArguments arguments);
  std::vector<std::string_view> takes;  // long names, besides --run
  bool ranks = false;
};

const std::vector<Subcommand>& subcommands() {
  static const std::vector<Subcommand> all{
      {"save",
       checkpoint_save,
       {"step", "payload", "from", "seed", "burst-buffer", "wait", "ack-log", "on-full", "on-full-timeout",
        "oversize", "headroom", "timeout", "read-back", "keep", "keep-fast"},
       true},
      {"bench",
       checkpoint_bench,
       {"payload",         "seed",      "results",  "label",     "pair",   "burst-buffer", "steps",
        "every",           "step-time", "burn",     "arms",      "repeat", "mtbf",         "on-full",
        "on-full-timeout", "oversize",  "headroom", "read-back", "keep",   "keep-fast"},
       true},
      {"restore", checkpoint_restore, {"step", "to", "replace"}, true},
      {"verify", checkpoint_verify, {}},
      {"ls", checkpoint_ls, {}},
      {"drain", checkpoint_drain, {"timeout", "read-back", "keep-fast"}},
      {"gc", checkpoint_gc, {"keep", "keep-fast"}},
      {"status", checkpoint_status, {}},
  };
  return all;
}

std::vector<SubcommandOptions> subcommand_options() {
  return options_of(subcommands());
}

Result<int> run(const CommandContext& context) {
  PENSTOCK_ASSIGN(const Subcommand* const subcommand,
                  find_subcommand("checkpoint", subcommands(), context.positionals[0]));
  PENSTOCK_TRY(check_subcommand_options(subcommand->name, subcommand_options(), context.argv));
  if (context.positionals.size() < 2)
    return make_error(
        Errc::invalid_argument,
        fmt::format("'{}' needs a STORE: the folder or TIER of a checkpoint store", subcommand->name));
  if (!subcommand->ranks && context.communicator.size() > 1)
    return make_error(
        Errc::invalid_argument,
        fmt::format("'penstock checkpoint {}' runs as one process and was launched as {} ranks: "
                    "start it once, without the launcher",
                    subcommand->name, context.communicator.size()));
  Result<int> result = subcommand->run(context, context.positionals.subspan(1));
  if (result.ok() || result.error().code != Errc::busy) return result;
  report_failed(context, result.error());
  return kLocked;
}

}  // namespace

void report_failed(const CommandContext& context, const Error& error) {
  if (!context.communicator.root()) return;
  const std::string text = fmt::format("penstock {}: {}\n", context.command, printable(error.message()));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

extern const CommandInfo command_checkpoint;
const CommandInfo command_checkpoint{
    .name = "checkpoint",
    .summary = "saves and restores a training's state through a burst buffer: what holds, and since when",
    .options = kOptions,
    .run = &run,
    .synopsis = "penstock checkpoint bench|save|restore|verify|ls|drain|gc|status STORE... [options]",
    .examples =
        {"penstock checkpoint save /pfs/ckpt --burst-buffer /dev/shm/bb --payload alexnet-adam   # times to "
         "fast, durable",
         "penstock checkpoint restore /dev/shm/bb /pfs/ckpt --to restored   # the newest that is whole, on "
         "either tier"},
    .arguments = "SUBCOMMAND STORE...",
    .min_arguments = 1,
    .max_arguments = 9,
    .measures = true,
    .ranks = true,
    .subcommands = subcommand_options,
    .metrics = bench_metrics::kAll};

}  // namespace penstock
