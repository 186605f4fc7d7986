// penstock baseline set|list|remove: gives names to records, so that later runs can be compared with them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/units.hpp"
#include "results/record/baseline.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr OptionSpec kBaselineOptions[] = {
    {.name = "results",
     .role = OptionRole::output,
     .value = "DIR",
     .fallback = kResultsFolder,
     .help = "the folder of the baseline; in other folders use DIR/baseline:NAME",
     .group = "Baseline"},
};

uint64_t bytes_of(const Baseline& baseline) {
  uint64_t bytes = 0;
  for (const Baseline::File& file : baseline.files) bytes += file.bytes;
  return bytes;
}

// A baseline as JSON. `check` is the result of check_baseline(): it becomes "holds" (whether the baseline is
// valid) and "reason" (why it is not).
Json baseline_json(const Baseline& baseline, const Result<void>& check) {
  Json files = Json::array();
  for (const Baseline::File& file : baseline.files) files.push_back(file.path);
  return Json{{"baseline", baseline.name},
              {"saved", baseline.saved_at},
              {"files", files},
              {"bytes", bytes_of(baseline)},
              {"holds", check.ok()},
              {"reason", check.ok() ? "" : check.error().message()}};
}

Result<int> set(const CommandContext& context) {
  const fs::path folder = context.options.text("results");
  const auto arguments = context.positionals;
  std::vector<fs::path> paths(arguments.begin() + 1, arguments.end());
  if (paths.empty()) paths.push_back(folder);
  PENSTOCK_ASSIGN(const Baseline baseline, save_baseline(folder, arguments[0], paths));
  if (context.output.json) {
    print_json(baseline_json(baseline, success()));
  } else {
    print_text(fmt::format("baseline '{}': {}, {}\n", baseline.name, count_of(baseline.files.size(), "file"),
                           format_size(bytes_of(baseline))));
  }
  return 0;
}

Result<int> list(const CommandContext& context) {
  const fs::path folder = context.options.text("results");
  const auto arguments = context.positionals;
  PENSTOCK_ASSIGN(const std::vector<Baseline> baselines, list_baselines(folder));
  bool all_valid = true;
  for (const std::string& name : arguments)
    if (std::none_of(baselines.begin(), baselines.end(),
                     [&](const Baseline& one) { return one.name == name; }))
      return no_baseline_error(folder, name);
  for (const Baseline& baseline : baselines) {
    if (!arguments.empty() && std::find(arguments.begin(), arguments.end(), baseline.name) == arguments.end())
      continue;
    const Result<void> check = check_baseline(folder, baseline);
    all_valid = all_valid && check.ok();
    if (context.output.json) {
      print_json(baseline_json(baseline, check));
      continue;
    }
    print_text(fmt::format("{}  {}, {}, set {}\n", baseline.name, count_of(baseline.files.size(), "file"),
                           format_size(bytes_of(baseline)), baseline.saved_at));
    if (!check) warn(check.error().message());
  }
  if (baselines.empty() && !context.output.json)
    note(fmt::format("'{}' has no baseline; to make one: penstock baseline set NAME RESULTS",
                     folder.string()));
  return all_valid ? 0 : 1;
}

Result<int> remove(const CommandContext& context) {
  for (const std::string& name : context.positionals) {
    PENSTOCK_TRY(remove_baseline(context.options.text("results"), name));
    if (context.output.json)
      print_json(Json{{"removed", name}});
    else
      print_text(fmt::format("baseline '{}' removed; its record files were kept\n", name));
  }
  return 0;
}

constexpr CommandInfo kSet{
    .name = "baseline set",
    .summary = "name a set of records as a baseline",
    .options = kBaselineOptions,
    .run = set,
    .synopsis = "penstock baseline set NAME [RESULTS]...",
    .examples = {"penstock baseline set main runs/monday.jsonl   # baseline:main now names that file"},
    .arguments = "NAME [RESULTS]...",
};
constexpr CommandInfo kList{
    .name = "baseline list",
    .summary = "list baselines, and whether their files are unchanged",
    .options = kBaselineOptions,
    .run = list,
    .synopsis = "penstock baseline list [NAME]...",
    .examples = {"penstock baseline list   # exit 1 if a file has changed"},
    .arguments = "[NAME]...",
};
constexpr CommandInfo kRemove{
    .name = "baseline remove",
    .summary = "remove a baseline name and keep its records",
    .options = kBaselineOptions,
    .run = remove,
    .synopsis = "penstock baseline remove NAME...",
    .examples = {"penstock baseline remove main   # keeps its record files"},
    .arguments = "NAME...",
};
constexpr const CommandInfo* kSubcommands[] = {&kSet, &kList, &kRemove};

}  // namespace

extern const CommandInfo command_baseline;
const CommandInfo command_baseline{
    .name = "baseline",
    .summary = "manage baselines, the named records that later runs are compared with",
    .synopsis = "penstock baseline set NAME [RESULTS]... | list [NAME]... | remove NAME...",
    .examples = {"penstock baseline set main runs/monday.jsonl   # baseline:main now names that file",
                 "penstock baseline list                         # all baselines, and whether their files "
                 "are unchanged"},
    .arguments = "SUBCOMMAND ...",
    .subcommands = [] { return std::span<const CommandInfo* const>(kSubcommands); }};

}  // namespace penstock
