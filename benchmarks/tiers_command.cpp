// `penstock tiers`: describes the tiers of a machine and measures their speed.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/probe/probe_metrics.hpp"
#include "benchmarks/probe/probe_report.hpp"
#include "benchmarks/probe/tier_probe.hpp"
#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/read_team.hpp"
#include "datagen/target/target_folder.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/tiers/find_tiers.hpp"
#include "io_backends/tiers/named_tiers.hpp"
#include "results/record/environment.hpp"
#include "results/record/statistics.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

constexpr uint64_t kMostClients = 256;

constexpr OptionSpec kTiersOptions[] = {
    {.name = "tier",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "show this tier (default: all tiers that are found)",
     .group = "Tiers",
     .repeated = true},
    {.name = "probe",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "measure each tier with temporary files, removed afterwards",
     .group = "Probe"},
    {.name = "threads",
     .role = OptionRole::work,
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1,4",
     .help = "number of clients per rank; one record per number",
     .group = "Probe",
     .alias = "numjobs",
     .at_least = 1},
    {.name = "probe-size",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .fallback = "256MiB",
     .help = "total size of large files per rank; the same again for small files",
     .group = "Probe",
     .at_least = 1 << 20},
    {.name = "blocks",
     .role = OptionRole::work,
     .value = "SIZE,...",
     .fallback = "4KiB,128KiB",
     .help = "block sizes of random reads and of writes (writes also with 1 MiB)",
     .group = "Probe"},
    {.name = "depths",
     .role = OptionRole::work,
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1,8,32",
     .help = "queue depths per client (for writes: concurrent writer threads)",
     .group = "Probe",
     .at_least = 1},
    {.name = "cache",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "cold|warm|asis",
     .fallback = "cold",
     .help = "state of the page cache before every read",
     .group = "Probe"},
    {.name = "min-time",
     .role = OptionRole::repeat,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "2s",
     .help = "time of each repeat of each probe",
     .group = "Probe"},
    kTimeLimitOption,
    {.name = "repeat",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "number of repeats of each probe",
     .group = "Probe",
     .at_least = 1},
};

// A tier that the user named or find_tiers() found, with the results of its probe.
struct ListedTier {
  Tier tier;
  bool writable = true;
  std::optional<uint64_t> free_bytes{};
  std::optional<Result<std::vector<ProbeCell>>> cells{};
  uint64_t bytes_read = 0;  // bytes that the probe read, over all ranks
};

std::string escape_commas(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == ',' ? std::string("%2C") : std::string(1, c);
  return text;
}

// Fails if the folder of the tier does not exist. The probe must not create it: if the path is wrong, or
// nothing is mounted there, the probe would measure another device.
Result<void> check_exists(const Tier& tier, bool exists) {
  if (exists || !tier.backend->native_path("")) return success();
  return make_error(Errc::invalid_argument, "folder '{}' does not exist: create it, or name an existing one",
                    tier.root);
}

Result<std::vector<ListedTier>> list_tiers(const std::vector<std::string>& texts, NamedTiers named,
                                           bool to_probe) {
  std::vector<ListedTier> listed;
  if (!texts.empty()) {
    PENSTOCK_ASSIGN(std::vector<Tier> tiers, open_tiers(texts, "", named));
    for (Tier& tier : tiers) {
      // Only a file in place of the folder is an error. A folder that does not exist, or cannot be opened,
      // can still be described.
      const Result<bool> folder = folder_exists(tier, "--tier");
      if (!folder.ok() && folder.error().code == Errc::invalid_argument) return folder.error();
      if (to_probe && folder.ok()) PENSTOCK_TRY(check_exists(tier, *folder));
      ListedTier entry{.tier = std::move(tier)};
      if (const Result<uint64_t> free_bytes = entry.tier.backend->names().free_bytes(); free_bytes.ok())
        entry.free_bytes = *free_bytes;
      listed.push_back(std::move(entry));
    }
    return listed;
  }
  for (const FoundTier& found : find_tiers()) {
    PENSTOCK_ASSIGN(Tier tier,
                    open_tier(fmt::format("{}=posix:{}", found.name, escape_commas(found.folder.string())),
                              kNoNamedTiers));
    listed.push_back({.tier = std::move(tier), .writable = found.writable, .free_bytes = found.free_bytes});
  }
  return listed;
}

std::string kind_of(const Tier& tier) {
  const Caps& caps = tier.backend->caps();
  if (tier.facts.memory) return "memory";
  if (caps.on_network && !caps.native_path) return "object store";
  return tier.facts.network ? "network" : tier.facts.fs_type.empty() ? "-" : "disk";
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

// The tier as text: back end, path and the given options.
std::string path_text(const Tier& tier) {
  std::string text = fmt::format("{}:{}", tier.backend_name, tier.root);
  if (const auto spec = parse_tier(tier.spec, kNoNamedTiers); spec.ok() && !spec->options.empty())
    text += "," + options_text(spec->options, ",");
  return text;
}

void print_tiers(const std::vector<ListedTier>& tiers, const Output& output) {
  Table table({{"tier", Align::left},
               {"kind", Align::left},
               {"file system", Align::left},
               {"device", Align::left},
               {"mount", Align::left},
               {"free"},
               {"striping", Align::left},
               {"where", Align::left},
               {"options", Align::left}});
  for (const ListedTier& entry : tiers) {
    const Tier& tier = entry.tier;
    table.row({tier.name, kind_of(tier), or_dash(tier.facts.fs_type), or_dash(tier.facts.device),
               or_dash(tier.facts.mount_point),
               entry.free_bytes ? format_bytes(double(*entry.free_bytes), output) : "-",
               or_dash(tier.facts.striping), path_text(tier) + (entry.writable ? "" : " (read-only for you)"),
               or_dash(tier.facts.mount_options)});
  }
  print_text(table.text());
}

void print_as_json(const std::vector<ListedTier>& tiers) {
  for (const ListedTier& entry : tiers) {
    Json json{{"kind", "tier"}};
    json.update(tier_json(entry.tier));
    json["writable"] = entry.writable;
    json["free_bytes"] = entry.free_bytes ? Json(*entry.free_bytes) : Json();
    print_json(json);
  }
}

// Parses a list of block sizes, separated by commas.
Result<std::vector<uint64_t>> parse_block_sizes(std::string_view text, uint64_t most_bytes) {
  std::vector<uint64_t> blocks;
  while (true) {
    const std::string_view word = text.substr(0, text.find(','));
    PENSTOCK_ASSIGN(const uint64_t bytes, parse_size(word));
    if (bytes == 0 || bytes > most_bytes)
      return make_error(Errc::invalid_argument, "--blocks {}: use 1 to a client's share of --probe-size, {}",
                        word, format_size(most_bytes));
    blocks.push_back(bytes);
    if (word.size() == text.size()) return blocks;
    text.remove_prefix(word.size() + 1);
  }
}

Result<ProbeSettings> probe_settings(const CommandContext& context) {
  const Options& options = context.options;
  ProbeSettings settings;
  for (const uint64_t clients : options.list("threads")) {
    if (clients > kMostClients)
      return make_error(Errc::invalid_argument, "--threads {}: use at most {} clients", clients,
                        kMostClients);
    settings.clients.push_back(unsigned(clients));
  }
  settings.bytes = options.size("probe-size");
  const uint64_t most_clients = *std::max_element(settings.clients.begin(), settings.clients.end());
  for (const uint64_t depth : options.list("depths")) {
    if (depth > kMostInFlight / most_clients)
      return make_error(Errc::invalid_argument,
                        "--depths {} with {} clients: use at most {} reads in flight in total", depth,
                        most_clients, kMostInFlight);
    settings.depths.push_back(unsigned(depth));
  }
  PENSTOCK_ASSIGN(settings.block_sizes,
                  parse_block_sizes(options.text("blocks"), settings.bytes / most_clients));
  settings.min_time = options.duration("min-time");
  settings.repeats = size_t(options.integer("repeat"));
  settings.cache = parse_cache_request(options.text("cache"));
  settings.seed = context.seed;
  settings.log = context.log;
  settings.warn = context.warn;
  return settings;
}

void probe_one(const CommandContext& context, const ProbeSettings& settings, ListedTier& entry,
               ReadTeam& team) {
  {
    Progress progress(context.output.progress, "probe", 0, "");
    entry.cells = probe_tier(entry.tier, settings, context.communicator,
                             [&](std::string_view what) { progress.set_note(what); });
  }
  uint64_t bytes_read = entry.tier.backend->moved_bytes().read;
  if (entry.cells->ok())
    for (const ProbeCell& cell : **entry.cells) bytes_read += cell.uncounted_bytes;
  entry.bytes_read = team.sum(bytes_read);
}

void add_records(Run& run, ListedTier& entry, const Output& output) {
  Tier& tier = entry.tier;
  const Result<std::vector<ProbeCell>>& cells = *entry.cells;
  if (!cells.ok()) {
    Trial trial = run.trial();
    trial.parameter("tier", tier.name);
    trial.tier("data", tier);
    trial.fail(cells.error());
    if (output.json) warn(fmt::format("{}: {}", tier.name, cells.error().message()));
    run.add(std::move(trial));
    return;
  }
  for (const ProbeCell& cell : *cells)
    for (const ProbeFigure& figure : cell.figures)
      if (!figure.bytes_per_s.empty())
        tier.ceilings[fmt::format("{}.clients_{}", figure.name, cell.clients)] = median(figure.bytes_per_s);
  for (const ProbeCell& cell : *cells) run.add(probe_record(run, tier, cell, entry.bytes_read));
}

Result<int> probe(const CommandContext& context, std::vector<ListedTier>& tiers) {
  Communicator& ranks = context.communicator;
  PENSTOCK_ASSIGN(ProbeSettings settings, probe_settings(context));
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  settings.plan = &run.plan();
  ReadTeam team(ranks);
  for (ListedTier& entry : tiers)
    if (entry.writable && !team.any_rank(interrupted())) plan_probe(entry.tier, settings, ranks, true);
  PENSTOCK_TRY(run.plan().settle("fewer --threads, or a shorter --min-time"));
  for (ListedTier& entry : tiers) {
    if (team.any_rank(interrupted())) break;
    if (!entry.writable) {
      note(fmt::format("{}: not probed, because there is no write permission for {}", entry.tier.name,
                       entry.tier.root));
      continue;
    }
    run.check_tier(entry.tier);
    probe_one(context, settings, entry, team);
  }
  PENSTOCK_TRY(run.inspect_ranks());
  for (ListedTier& entry : tiers)
    if (entry.cells) add_records(run, entry, context.output);
  if (!context.output.json && ranks.root()) print_text(probe_table(run.records(), context.output));
  PENSTOCK_TRY(run.finish());
  return run.exit_code();
}

// If there are several ranks, fails unless tiers are probed and named by the user.
Result<void> check_ranks(const CommandContext& context) {
  const int ranks = context.communicator.size();
  if (ranks == 1) return success();
  if (!context.options.flag("probe"))
    return make_error(Errc::invalid_argument,
                      "'penstock tiers' describes one node and was launched as {} ranks: start it "
                      "without the launcher, or with --probe",
                      ranks);
  if (!context.options.texts("tier").empty()) return success();
  return make_error(Errc::invalid_argument,
                    "each node may find other tiers: name the tiers to probe with --tier");
}

Result<int> run_tiers(const CommandContext& context) {
  Communicator& ranks = context.communicator;
  PENSTOCK_TRY(check_ranks(context));
  Result<std::vector<ListedTier>> found_tiers =
      list_tiers(context.options.texts("tier"), context.named_tiers, context.options.flag("probe"));
  PENSTOCK_TRY(all_ok(ranks, found_tiers));
  std::vector<ListedTier> tiers = *std::move(found_tiers);
  if (tiers.empty()) return make_error(Errc::not_found, "found no storage tier: name one with --tier");
  if (context.options.flag("probe")) {
    const bool prints_table = !context.output.json && ranks.root();
    if (prints_table) print_tiers(tiers, context.output);
    if (prints_table) print_text("\n");
    return probe(context, tiers);
  }
  if (context.output.json)
    print_as_json(tiers);
  else
    print_tiers(tiers, context.output);
  return 0;
}

Result<TimeRange> expected_tiers_time(const CommandContext& context) {
  if (!context.options.flag("probe")) return TimeRange{};
  PENSTOCK_ASSIGN(ProbeSettings settings, probe_settings(context));
  PENSTOCK_ASSIGN(std::vector<ListedTier> tiers,
                  list_tiers(context.options.texts("tier"), context.named_tiers, true));
  TimePlan plan(context);
  settings.plan = &plan;
  for (ListedTier& entry : tiers)
    if (entry.writable) plan_probe(entry.tier, settings, context.communicator, false);
  return plan.planned_time();
}

constexpr std::string_view kTiersFindings[] = {"loops", "rank_scaling", "verdicts"};

}  // namespace

extern const CommandInfo command_tiers;
const CommandInfo command_tiers{
    .name = "tiers",
    .summary = "show storage tiers (file system, device, mount, striping, free space) and measure them",
    .options = kTiersOptions,
    .run = run_tiers,
    .synopsis = "penstock tiers [--tier TIER]... [--probe] [options]",
    .examples = {"penstock tiers                                   # what this machine has",
                 "penstock tiers --tier disk=/data --probe --threads 1,8     # measure one tier with 1 and 8 "
                 "clients"},
    .measures = true,
    .runs_on_ranks = true,
    .findings = kTiersFindings,
    .metrics = probe_metrics::kAll,
    .expected_time = expected_tiers_time,
};

}  // namespace penstock
