// penstock compare BASE NEW: the regression gate. The rules are in comparison.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "results/compare/comparison.hpp"
#include "results/compare/gate_text.hpp"
#include "results/compare/history.hpp"
#include "results/compare/matched_cells.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInputGroup = "What to compare";
constexpr std::string_view kRuleGroup = "What counts";
constexpr std::string_view kOutputGroup = "Output";

constexpr OptionSpec kOptions[] = {
    {.name = "arms",
     .role = OptionRole::target,
     .value = "BASE,NEW",
     .help = "of records that were measured in turn, the arm to hold against and the arm to judge",
     .group = kInputGroup},
    {.name = "metric",
     .role = OptionRole::work,
     .value = "GLOB",
     .help = "compare these metrics and not those that a command is usually judged by",
     .group = kInputGroup,
     .repeated = true},
    {.name = "other-machines",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "compare although the machines differ",
     .group = kInputGroup},
    {.name = "history",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "the arguments are results of many days: print where they changed (advisory, exit 0; needs 30 "
             "runs)",
     .group = kInputGroup},
    {.name = "alpha",
     .role = OptionRole::work,
     .type = OptionType::real,
     .value = "P",
     .fallback = "0.01",
     .help = "the probability of a false alarm in the whole comparison, at most",
     .group = kRuleGroup},
    {.name = "least-effect",
     .role = OptionRole::work,
     .type = OptionType::real,
     .value = "SHARE",
     .fallback = "0.05",
     .help = "changes below it are none: 0.05 is 5%",
     .group = kRuleGroup},
    {.name = "junit",
     .role = OptionRole::output,
     .value = "FILE",
     .help =
         "JUnit XML: regression is a failure; missing, failed, incomparable an error; inconclusive skipped",
     .group = kOutputGroup},
    {.name = "markdown",
     .role = OptionRole::output,
     .value = "FILE",
     .help = "the table as Markdown",
     .group = kOutputGroup},
    {.name = "github",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "annotations for GitHub Actions on stdout (with --json on stderr), and the step summary",
     .group = kOutputGroup},
};

RecordSet records_of_arm(const RecordSet& set, const std::string& arm) {
  RecordSet part;
  part.files = set.files;
  part.problems = set.problems;
  for (const StoredRecord& stored : set.records)
    if (arm_of(stored.record) == arm) part.records.push_back(stored);
  return part;
}

std::string arms_text(const std::set<std::string>& arms) {
  return arms.empty() ? "no arms" : fmt::format("the arms '{}'", fmt::join(arms, "', '"));
}

// The names of the two arms to compare: those given with --arms, else the only two arms if one is called
// "base".
Result<std::pair<std::string, std::string>> choose_arms(const std::string& named, const RecordSet& set) {
  std::set<std::string> arms;
  for (const StoredRecord& stored : set.records)
    if (const std::string arm = arm_of(stored.record); !arm.empty()) arms.insert(arm);
  if (named.empty()) {
    if (arms.size() == 2 && arms.contains("base"))
      return std::pair{std::string("base"), *std::find_if(arms.begin(), arms.end(),
                                                          [](const auto& arm) { return arm != "base"; })};
    return make_error(
        Errc::invalid_argument,
        fmt::format("the records have {}: --arms BASE,NEW names two of them, and two arguments compare "
                    "two sets of results",
                    arms_text(arms)));
  }
  const std::size_t comma = named.find(',');
  if (comma == std::string::npos || comma == 0 || comma + 1 == named.size() ||
      named.find(',', comma + 1) != std::string::npos)
    return make_error(Errc::invalid_argument, "--arms takes two names, as in --arms base,candidate");
  const std::pair both{named.substr(0, comma), named.substr(comma + 1)};
  for (const std::string& arm : {both.first, both.second})
    if (!arms.contains(arm))
      return make_error(
          Errc::invalid_argument,
          fmt::format("no record is of the arm '{}'; the records have {}", arm, arms_text(arms)));
  if (both.first == both.second)
    return make_error(Errc::invalid_argument, "--arms takes two different names");
  return both;
}

struct Sides {
  RecordSet base;
  RecordSet candidate;
  std::vector<std::string> remarks;
};

// Reads records, and fails if any of them cannot be read: it may be the one that got slower.
Result<RecordSet> read_complete(std::span<const fs::path> paths) {
  PENSTOCK_ASSIGN(RecordSet set, read_records(paths));
  if (set.problems.empty()) return set;
  const std::string more =
      set.problems.size() > 1 ? fmt::format(", and {} more like it", set.problems.size() - 1) : "";
  return make_error(Errc::corrupt,
                    fmt::format("{}{}; move it away to compare what is left", set.problems[0], more));
}

// Removes from the candidate the records that the base has too, such as a baseline and the folder that it
// refers to. They are not new measurements.
Result<Sides> remove_shared_records(RecordSet base, RecordSet candidate) {
  std::set<std::string> known;
  for (const StoredRecord& stored : base.records)
    if (!stored.record.id.empty()) known.insert(stored.record.id);
  const std::size_t all = candidate.records.size();
  std::erase_if(candidate.records,
                [&](const StoredRecord& stored) { return known.contains(stored.record.id); });
  const std::size_t shared = all - candidate.records.size();
  if (shared > 0 && candidate.records.empty())
    return make_error(Errc::invalid_argument, "base and candidate are the same records");
  Sides sides{std::move(base), std::move(candidate), {}};
  if (shared > 0)
    sides.remarks.push_back(
        fmt::format("{} records of the base are the candidate's too: left out there", shared));
  return sides;
}

Result<Sides> read_sides(const CommandContext& context) {
  const std::string arms = context.options.text("arms");
  if (context.positionals.size() == 1) {
    PENSTOCK_ASSIGN(const RecordSet all, read_complete(with_folders(context.positionals[0])));
    PENSTOCK_ASSIGN(const auto named, choose_arms(arms, all));
    return Sides{records_of_arm(all, named.first), records_of_arm(all, named.second), {}};
  }
  if (context.positionals.size() != 2)
    return make_error(Errc::invalid_argument, "two sets of results are compared: penstock compare BASE NEW");
  const fs::path arguments[] = {context.positionals[0], context.positionals[1]};
  PENSTOCK_ASSIGN(RecordSet base, read_complete(std::span(arguments).first(1)));
  PENSTOCK_ASSIGN(RecordSet candidate, read_complete(std::span(arguments).last(1)));
  if (!arms.empty()) {
    RecordSet all = base;
    all.records.insert(all.records.end(), candidate.records.begin(), candidate.records.end());
    PENSTOCK_ASSIGN(const auto named, choose_arms(arms, all));
    return Sides{records_of_arm(base, named.first), records_of_arm(candidate, named.second), {}};
  }
  return remove_shared_records(std::move(base), std::move(candidate));
}

// Appends to the summary of the GitHub step, a file to which all programs of the step write.
Result<void> add_to_step_summary(const std::string& text) {
  const char* const path = std::getenv("GITHUB_STEP_SUMMARY");
  if (path == nullptr || *path == '\0') return success();
  std::FILE* const file = std::fopen(path, "ae");
  if (file == nullptr) return errno_error(errno, "cannot write the step summary", path);
  const bool wrote = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int failure = errno;
  if (std::fclose(file) != 0 || !wrote)
    return errno_error(wrote ? errno : failure, "cannot write the step summary", path);
  return success();
}

// One comparison in every output format.
struct Outputs {
  std::string text;
  std::string json;
  std::string junit;
  std::string markdown;
  std::string annotations;
};

Result<void> publish(const CommandContext& context, const Outputs& outputs) {
  PENSTOCK_TRY(check_interrupt());
  if (const std::string path = context.options.text("junit"); !path.empty())
    PENSTOCK_TRY(write_whole_file(path, "the JUnit file", outputs.junit));
  if (const std::string path = context.options.text("markdown"); !path.empty())
    PENSTOCK_TRY(write_whole_file(path, "the Markdown file", outputs.markdown));
  print_text(context.output.json ? outputs.json : outputs.text);
  if (context.options.flag("github")) {
    print_text(outputs.annotations, context.output.json ? stderr : stdout);
    PENSTOCK_TRY(add_to_step_summary(outputs.markdown));
  }
  // Flush here: an error at the end of the process would give exit code 1, which means a regression.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return errno_error(errno, "cannot write the comparison to", "standard output");
  return success();
}

CompareSettings settings_of(const Options& options) {
  return {.alpha = options.real("alpha"),
          .least_effect = options.real("least-effect"),
          .metrics = options.texts("metric"),
          .other_machines = options.flag("other-machines"),
          .commands = command_registry().present()};
}

Result<int> compare(const CommandContext& context) {
  PENSTOCK_ASSIGN(const Sides sides, read_sides(context));
  const CompareSettings settings = settings_of(context.options);
  PENSTOCK_ASSIGN(Comparison comparison, compare_records(sides.base, sides.candidate, settings));
  comparison.remarks.insert(comparison.remarks.end(), sides.remarks.begin(), sides.remarks.end());
  PENSTOCK_TRY(publish(context, {.text = comparison_text(comparison, settings, context.output),
                                 .json = comparison_json(comparison, settings),
                                 .junit = comparison_junit(comparison, settings, context.output),
                                 .markdown = comparison_markdown(comparison, settings, context.output),
                                 .annotations = comparison_annotations(comparison, context.output)}));
  return comparison.exit_code();
}

Result<int> history(const CommandContext& context) {
  for (const std::string_view name : {"arms", "junit"})
    if (context.options.given(name))
      return make_error(Errc::invalid_argument, fmt::format("--{} does not go with --history", name));
  if (context.positionals.empty())
    return make_error(Errc::invalid_argument,
                      "--history takes results: penstock compare --history RESULTS...");
  const std::vector<fs::path> paths(context.positionals.begin(), context.positionals.end());
  PENSTOCK_ASSIGN(const RecordSet set, read_records(paths));
  for (const std::string& problem : set.problems) warn(problem);
  const CompareSettings settings = settings_of(context.options);
  PENSTOCK_ASSIGN(const History found, inspect_history(set, settings));
  PENSTOCK_TRY(publish(context, {.text = history_text(found, context.output),
                                 .json = history_json(found, settings),
                                 .junit = "",
                                 .markdown = history_markdown(found, context.output),
                                 .annotations = history_annotations(found)}));
  return 0;
}

// Exit code 1 means a regression, so every error of the comparison itself becomes exit code 2.
Result<int> run_compare(const CommandContext& context) {
  Result<int> code = context.options.flag("history") ? history(context) : compare(context);
  if (!code.ok() && code.error().code != Errc::interrupted) code.error().code = Errc::invalid_argument;
  return code;
}

}  // namespace

extern const CommandInfo command_compare;
const CommandInfo command_compare{
    .name = "compare",
    .summary =
        "the regression gate: what changed between two sets of results, and whether it may be believed",
    .options = kOptions,
    .run = run_compare,
    .synopsis =
        "penstock compare BASE NEW [options] | compare RESULTS --arms BASE,NEW | compare --history "
        "RESULTS...",
    .examples = {"penstock compare monday/ tuesday/ --junit gate.xml   # tuesday against monday",
                 "penstock compare gate/reads --arms base,candidate    # the two arms of `penstock sweep`"},
    .notes =
        "Exit codes: 0 no regression, 1 regression, 2 usage or tool error, 3 inconclusive (too few "
        "samples),\n"
        "4 a benchmark is missing or failed, 5 incomparable (other machine, data, unit); 2 > 5 > 4 > 1 > 3.",
    .arguments = "BASE [NEW]...",
};

}  // namespace penstock
