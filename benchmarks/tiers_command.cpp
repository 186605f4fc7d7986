// penstock tiers: what the places for data are, and what they can do.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/tier_probe.hpp"
#include "datagen/target_folder.hpp"
#include "io_backends/base/command.hpp"
#include "io_backends/base/find_tiers.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/progress.hpp"
#include "io_backends/base/units.hpp"
#include "results/statistics.hpp"
#include "results/table.hpp"
#include "results/trial.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kMostClients = 256;
constexpr std::uint64_t kMostInFlight = 16384;

constexpr OptionSpec kOptions[] = {
    {.name = "tier",
     .value = "TIER",
     .help = "look at this one; without it, at those found by looking",
     .group = "Tiers",
     .repeated = true},
    {.name = "probe",
     .type = OptionType::flag,
     .help = "measure what each can do, on files of its own that it takes away again",
     .group = "Probe"},
    {.name = "threads",
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1,4",
     .help = "clients of the probe, one record each",
     .group = "Probe",
     .at_least = 1},
    {.name = "probe-size",
     .type = OptionType::size,
     .value = "SIZE",
     .fallback = "256MiB",
     .help = "of the large files together, and as much again of small ones",
     .group = "Probe",
     .at_least = 1 << 20},
    {.name = "blocks",
     .value = "SIZE,...",
     .fallback = "4KiB,128KiB",
     .help = "of random reads",
     .group = "Probe"},
    {.name = "depths",
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1,8,32",
     .help = "reads that each client keeps in flight: of random reads and of small files",
     .group = "Probe",
     .at_least = 1},
    {.name = "cache",
     .type = OptionType::choice,
     .value = "cold|warm|asis",
     .fallback = "cold",
     .help = "state of the page cache before every read",
     .group = "Probe"},
    {.name = "min-time",
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "2s",
     .help = "how long each repeat of each rung lasts",
     .group = "Probe"},
    {.name = "repeat",
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "repeats of each rung",
     .group = "Probe",
     .at_least = 1},
};

// A tier that was named or found.
struct Seen {
  Tier tier;
  bool writable = true;
  std::optional<std::uint64_t> free_bytes;
};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

std::string escape_commas(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == ',' ? std::string("%2C") : std::string(1, c);
  return text;
}

Result<std::vector<Seen>> look(const std::vector<std::string>& texts) {
  std::vector<Seen> all;
  if (!texts.empty()) {
    PENSTOCK_ASSIGN(std::vector<Tier> tiers, open_tiers(texts));
    for (Tier& tier : tiers) {
      // A folder that is not there yet, or cannot be looked at, may still be described; a file is none.
      const Result<bool> folder = folder_is_there(tier, "--tier");
      if (!folder.ok() && folder.error().code == Errc::invalid_argument) return folder.error();
      Seen seen{.tier = std::move(tier), .writable = true, .free_bytes = {}};
      if (const Result<std::uint64_t> room = seen.tier.backend->names().free_bytes(); room.ok())
        seen.free_bytes = *room;
      all.push_back(std::move(seen));
    }
    return all;
  }
  for (const FoundTier& found : find_tiers()) {
    PENSTOCK_ASSIGN(Tier tier,
                    open_tier(fmt::format("{}=posix:{}", found.name, escape_commas(found.folder.string()))));
    all.push_back({.tier = std::move(tier), .writable = found.writable, .free_bytes = found.free_bytes});
  }
  return all;
}

std::string kind_of(const TierFacts& facts) {
  return facts.memory ? "memory" : facts.network ? "network" : facts.fs_type.empty() ? "-" : "disk";
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

void print_tiers(const std::vector<Seen>& all, const Output& output) {
  Table table({{"tier", Align::left},
               {"kind", Align::left},
               {"file system", Align::left},
               {"device", Align::left},
               {"mount", Align::left},
               {"free"},
               {"striping", Align::left},
               {"where", Align::left},
               {"options", Align::left}});
  for (const Seen& seen : all) {
    const Tier& tier = seen.tier;
    table.row(
        {tier.name, kind_of(tier.facts), or_dash(tier.facts.fs_type), or_dash(tier.facts.device),
         or_dash(tier.facts.mount_point),
         seen.free_bytes ? format_bytes(static_cast<double>(*seen.free_bytes), output) : "-",
         or_dash(tier.facts.striping),
         fmt::format("{}:{}{}", tier.backend_name, tier.root, seen.writable ? "" : " (read-only for you)"),
         or_dash(tier.facts.mount_options)});
  }
  print(table.text());
}

void print_json(const std::vector<Seen>& all) {
  for (const Seen& seen : all) {
    Json json{{"kind", "tier"}};
    json.update(tier_json(seen.tier));
    json["writable"] = seen.writable;
    json["free_bytes"] = seen.free_bytes ? Json(*seen.free_bytes) : Json();
    print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
}

Trial record_of(const Run& run, const Tier& tier, const ProbeCell& cell, std::uint64_t bytes_read) {
  Trial trial = run.trial();
  trial.parameter("tier", tier.name);
  trial.parameter("threads", cell.clients);
  trial.tier("data", tier);
  trial.cache(cell.cache);
  Json loops = Json::object();
  for (const ProbeFigure& figure : cell.figures) {
    if (!figure.loop.empty()) loops[figure.name] = figure.loop;
    for (const double rate : figure.bytes_per_s) {
      trial.sample(figure.name + ".bytes_per_s", "B/s", Better::higher, "repeat", rate);
      trial.sample(figure.name + ".bytes_per_s_per_client", "B/s", Better::higher, "repeat",
                   rate / cell.clients);
    }
    for (const double rate : figure.ops_per_s) {
      trial.sample(figure.name + ".ops_per_s", "1/s", Better::higher, "repeat", rate);
      trial.sample(figure.name + ".ops_per_s_per_client", "1/s", Better::higher, "repeat",
                   rate / cell.clients);
    }
  }
  trial.parameter("loops", std::move(loops));
  trial.value("tier_bytes_read", "B", Better::neither, static_cast<double>(bytes_read));
  trial.verdict(cell.verdict, cell.reason);
  return trial;
}

// As a reader counts: "4k" before "128k", depth 8 before 32.
bool counts_before(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view text) {
    std::uint64_t value = 0;
    const char* const end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
    return std::pair(value, static_cast<std::size_t>(end - text.data()));
  };
  while (!a.empty() && !b.empty()) {
    const auto [first, first_digits] = number(a);
    const auto [second, second_digits] = number(b);
    if (first_digits > 0 && second_digits > 0) {
      if (first != second) return first < second;
      a.remove_prefix(first_digits);
      b.remove_prefix(second_digits);
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

void print_probe(std::span<const Record> records, const Output& output) {
  Table table({{"tier", Align::left},
               {"clients"},
               {"what", Align::left},
               {std::string(rate_unit(output))},
               {"ops/s"},
               {"", Align::left}});
  for (const Record& record : records) {
    const auto text = [&](const char* name) {
      return record.parameters.contains(name) && record.parameters[name].is_string()
                 ? record.parameters[name].get<std::string>()
                 : std::string("-");
    };
    const std::string verdict =
        record.verdict == Verdict::ok ? "" : std::string(verdict_name(record.verdict));
    const std::string clients =
        record.parameters.contains("threads") && record.parameters["threads"].is_number()
            ? record.parameters["threads"].dump()
            : "-";
    constexpr std::string_view kRate = ".bytes_per_s";
    std::vector<std::string> rungs;
    for (const auto& [name, metric] : record.metrics)
      if (name.ends_with(kRate)) rungs.push_back(name.substr(0, name.size() - kRate.size()));
    std::sort(rungs.begin(), rungs.end(), counts_before);
    for (const std::string& rung : rungs) {
      const auto ops = record.metrics.find(rung + ".ops_per_s");
      table.row({text("tier"), clients, rung,
                 format_rate(record.metrics.at(rung + std::string(kRate)).value(), output),
                 ops == record.metrics.end() ? "-" : format_number(ops->second.value()), verdict});
    }
    if (rungs.empty()) table.row({text("tier"), clients, "-", "-", "-", verdict + ": " + record.reason});
  }
  print(table.text());
}

// Sizes with commas between them.
Result<std::vector<std::uint64_t>> parse_blocks(std::string_view text, std::uint64_t most) {
  std::vector<std::uint64_t> blocks;
  while (true) {
    const std::string_view word = text.substr(0, text.find(','));
    PENSTOCK_ASSIGN(const std::uint64_t bytes, parse_size(word));
    if (bytes == 0 || bytes > most)
      return make_error(Errc::invalid_argument,
                        fmt::format("--blocks {}: from 1 to a client's share of --probe-size, {}", word,
                                    format_size(most)));
    blocks.push_back(bytes);
    if (word.size() == text.size()) return blocks;
    text.remove_prefix(word.size() + 1);
  }
}

Result<ProbeSettings> probe_settings(const CommandContext& context) {
  const Options& options = context.options;
  ProbeSettings settings;
  for (const std::uint64_t clients : options.list("threads")) {
    if (clients > kMostClients)
      return make_error(Errc::invalid_argument,
                        fmt::format("--threads {}: at most {} clients", clients, kMostClients));
    settings.clients.push_back(static_cast<unsigned>(clients));
  }
  settings.bytes = options.size("probe-size");
  const std::uint64_t most = *std::max_element(settings.clients.begin(), settings.clients.end());
  for (const std::uint64_t depth : options.list("depths")) {
    if (depth > kMostInFlight / most)
      return make_error(Errc::invalid_argument,
                        fmt::format("--depths {} with {} clients: at most {} reads in flight in all", depth,
                                    most, kMostInFlight));
    settings.depths.push_back(static_cast<unsigned>(depth));
  }
  PENSTOCK_ASSIGN(settings.blocks, parse_blocks(options.text("blocks"), settings.bytes / most));
  settings.min_time = options.duration("min-time");
  settings.repeats = static_cast<std::size_t>(options.integer("repeat"));
  settings.cache = cache_wish(options.text("cache"));
  settings.seed = context.seed;
  return settings;
}

Result<int> probe(const CommandContext& context, std::vector<Seen>& all) {
  PENSTOCK_ASSIGN(const ProbeSettings settings, probe_settings(context));
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  for (Seen& seen : all) {
    if (interrupted()) break;
    if (!seen.writable) {
      note(fmt::format("{}: not probed, you may not write to {}", seen.tier.name, seen.tier.root));
      continue;
    }
    run.measured_tier(seen.tier);
    Result<std::vector<ProbeCell>> cells = std::vector<ProbeCell>{};
    {
      Progress progress(context.output.progress, "probe", 0, "");
      cells = probe_tier(seen.tier, settings, [&](std::string_view what) { progress.set_note(what); });
    }
    if (!cells.ok()) {
      Trial trial = run.trial();
      trial.parameter("tier", seen.tier.name);
      trial.tier("data", seen.tier);
      trial.fail(cells.error());
      if (context.output.json) warn(fmt::format("{}: {}", seen.tier.name, cells.error().message()));
      run.keep(std::move(trial));
      continue;
    }
    for (const ProbeCell& cell : *cells)
      for (const ProbeFigure& figure : cell.figures)
        if (!figure.bytes_per_s.empty())
          seen.tier.ceilings.push_back({.what = fmt::format("{}.clients_{}", figure.name, cell.clients),
                                        .bytes_per_s = median(figure.bytes_per_s)});
    std::uint64_t bytes_read = seen.tier.backend->moved_bytes().read;
    for (const ProbeCell& cell : *cells) bytes_read += cell.uncounted_bytes;
    for (const ProbeCell& cell : *cells) run.keep(record_of(run, seen.tier, cell, bytes_read));
  }
  if (!context.output.json) print_probe(run.records(), context.output);
  PENSTOCK_TRY(run.finish());
  return run.exit_code();
}

Result<int> run(const CommandContext& context) {
  PENSTOCK_ASSIGN(std::vector<Seen> all, look(context.options.texts("tier")));
  if (all.empty()) return make_error(Errc::not_found, "found no place for data: name one with --tier");
  if (context.options.flag("probe")) {
    if (!context.output.json) print_tiers(all, context.output);
    if (!context.output.json) print("\n");
    return probe(context, all);
  }
  if (context.output.json)
    print_json(all);
  else
    print_tiers(all, context.output);
  return 0;
}

}  // namespace

extern const CommandInfo command_tiers;
const CommandInfo command_tiers{
    .name = "tiers",
    .summary =
        "what the places for data are (file system, device, mount, striping, room), and what they can do",
    .options = kOptions,
    .run = &run,
    .synopsis = "penstock tiers [--tier TIER]... [--probe] [options]",
    .examples = {"penstock tiers                                   # what this machine has",
                 "penstock tiers --tier disk=/data --probe --threads 1,8     # what one can do, for 1 and "
                 "for 8 clients"},
    .measures = true,
};

}  // namespace penstock
