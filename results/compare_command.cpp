// penstock compare BASE NEW: tells whether NEW is worse than BASE (the regression gate). The rules are in
// comparison.hpp. With --base-tier it measures first (tier_gate.hpp).
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
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "results/compare/comparison.hpp"
#include "results/compare/gate_text.hpp"
#include "results/compare/history.hpp"
#include "results/compare/matched_cells.hpp"
#include "results/record/store.hpp"
#include "results/tier_gate.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInputGroup = "What to compare";
constexpr std::string_view kTiersGroup = "Two tiers";
constexpr std::string_view kRuleGroup = "What counts";
constexpr std::string_view kOutputGroup = "Output";

constexpr OptionSpec kOptions[] = {
    {.name = "arms",
     .role = OptionRole::target,
     .value = "BASE,NEW",
     .help = "for interleaved records: the arm that is the base and the arm that is the candidate",
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
    {.name = "base-tier",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "measure the command after -- on this tier and on --candidate-tier, in turn, and compare them",
     .group = kTiersGroup},
    {.name = "candidate-tier",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "the tier to judge, such as a mount with other options or a server with new firmware",
     .group = kTiersGroup},
    {.name = "pairs",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "20",
     .help = "runs on each tier; 20 find a change of 10% where runs differ by 5%",
     .group = kTiersGroup,
     .at_least = 1},
    {.name = "results",
     .role = OptionRole::output,
     .value = "DIR",
     .fallback = "penstock-results",
     .help = "where the records and the journal of the runs go",
     .group = kTiersGroup},
    {.name = "seed",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .help = "random seed of the runs and of their order (default: random, recorded)",
     .group = kTiersGroup,
     .at_least = 0},
    {.name = "dry-run",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "print what would be run, and measure nothing",
     .group = kTiersGroup},
    {.name = "alpha",
     .role = OptionRole::work,
     .type = OptionType::real,
     .value = "P",
     .fallback = "0.01",
     .help =
         "the highest probability of a false alarm in the whole comparison; holds for pairs, not for drift",
     .group = kRuleGroup},
    {.name = "least-effect",
     .role = OptionRole::work,
     .type = OptionType::real,
     .value = "SHARE",
     .fallback = "0.05",
     .help = "ignore changes smaller than this: 0.05 is 5%",
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
  RecordSet arm_records;
  arm_records.files = set.files;
  arm_records.problems = set.problems;
  for (const StoredRecord& stored : set.records)
    if (arm_of(stored.record) == arm) arm_records.records.push_back(stored);
  return arm_records;
}

std::string arms_text(const std::set<std::string>& arms) {
  return arms.empty() ? "no arms" : fmt::format("the arms '{}'", fmt::join(arms, "', '"));
}

// The names of the two arms to compare: those given with --arms. Without --arms there must be exactly two
// arms, and one of them must be called "base".
Result<std::pair<std::string, std::string>> choose_arms(const std::string& named, const RecordSet& set) {
  std::set<std::string> arms;
  for (const StoredRecord& stored : set.records)
    if (const std::string arm = arm_of(stored.record); !arm.empty()) arms.insert(arm);
  if (named.empty()) {
    if (arms.size() == 2 && arms.contains("base"))
      return std::pair{std::string("base"), *std::find_if(arms.begin(), arms.end(),
                                                          [](const auto& arm) { return arm != "base"; })};
    return make_error(Errc::invalid_argument,
                      "the records have {}: --arms BASE,NEW names two of them, and two arguments compare "
                      "two sets of results",
                      arms_text(arms));
  }
  const size_t comma = named.find(',');
  if (comma == std::string::npos || comma == 0 || comma + 1 == named.size() ||
      named.find(',', comma + 1) != std::string::npos)
    return make_error(Errc::invalid_argument, "--arms takes two names, as in --arms base,candidate");
  const std::pair arm_pair{named.substr(0, comma), named.substr(comma + 1)};
  for (const std::string& arm : {arm_pair.first, arm_pair.second})
    if (!arms.contains(arm))
      return make_error(Errc::invalid_argument, "no record is of the arm '{}'; the records have {}", arm,
                        arms_text(arms));
  if (arm_pair.first == arm_pair.second)
    return make_error(Errc::invalid_argument,
                      "--arms takes two different names, as in --arms base,candidate");
  return arm_pair;
}

// Reads records, and fails if any of them cannot be read: the record that cannot be read may be the one that
// shows a regression.
Result<RecordSet> read_complete(std::span<const fs::path> paths) {
  PENSTOCK_ASSIGN(RecordSet set, read_records(paths));
  for (const std::string& remark : set.remarks) note(remark);
  if (set.problems.empty()) return set;
  const std::string more_text =
      set.problems.size() > 1 ? fmt::format(", and {} more like it", set.problems.size() - 1) : "";
  return make_error(Errc::corrupt, "{}{}; move it away to compare what is left", set.problems[0], more_text);
}

// Removes from the candidate all records that the base also has. They are not new measurements. This happens
// if, for example, NEW is a folder that contains the records of BASE. Returns a remark, or "".
Result<std::string> remove_shared_records(const RecordSet& base, RecordSet& candidate) {
  std::set<std::string> base_ids;
  for (const StoredRecord& stored : base.records)
    if (!stored.record.id.empty()) base_ids.insert(stored.record.id);
  const size_t count_before = candidate.records.size();
  std::erase_if(candidate.records,
                [&](const StoredRecord& stored) { return base_ids.contains(stored.record.id); });
  const size_t shared_count = count_before - candidate.records.size();
  if (shared_count > 0 && candidate.records.empty())
    return make_error(Errc::invalid_argument,
                      "base and candidate are the same records: name two sets of results");
  if (shared_count == 0) return std::string();
  return fmt::format("{0} of the base {1} in the candidate too and {1} left out there",
                     count_of(shared_count, "record"), shared_count == 1 ? "is" : "are");
}

Result<Comparison> compare_results(const std::string& arms, const std::vector<fs::path>& arguments,
                                   const CompareSettings& settings) {
  if (arguments.size() == 1) {
    PENSTOCK_ASSIGN(const RecordSet all_records, read_complete(with_folders(arguments[0].string())));
    PENSTOCK_ASSIGN(const auto named, choose_arms(arms, all_records));
    return compare_records(records_of_arm(all_records, named.first),
                           records_of_arm(all_records, named.second), settings);
  }
  if (arguments.size() != 2)
    return make_error(Errc::invalid_argument, "name two sets of results: penstock compare BASE NEW");
  PENSTOCK_ASSIGN(RecordSet base, read_complete(std::span(arguments).first(1)));
  PENSTOCK_ASSIGN(RecordSet candidate, read_complete(std::span(arguments).last(1)));
  if (!arms.empty()) {
    RecordSet all_records = base;
    all_records.records.insert(all_records.records.end(), candidate.records.begin(), candidate.records.end());
    PENSTOCK_ASSIGN(const auto named, choose_arms(arms, all_records));
    return compare_records(records_of_arm(base, named.first), records_of_arm(candidate, named.second),
                           settings);
  }
  PENSTOCK_ASSIGN(std::string remark, remove_shared_records(base, candidate));
  PENSTOCK_ASSIGN(Comparison comparison, compare_records(base, candidate, settings));
  if (!remark.empty()) comparison.remarks.push_back(std::move(remark));
  return comparison;
}

// Appends the text to the summary of a GitHub workflow step. That is a file to which all programs of the step
// append.
Result<void> add_to_step_summary(const std::string& text) {
  const char* const path = std::getenv("GITHUB_STEP_SUMMARY");
  if (path == nullptr || *path == '\0') return success();
  std::FILE* const file = std::fopen(path, "ae");
  if (file == nullptr) return errno_error(errno, "cannot write the step summary", path);
  const bool all_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_errno = errno;
  if (std::fclose(file) != 0 || !all_written)
    return errno_error(all_written ? errno : write_errno, "cannot write the step summary", path);
  return success();
}

// The texts of one comparison, in every output format.
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
  // Flush here, where an error becomes exit code 2. An error when the process ends would give exit code 1,
  // which means a regression.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return errno_error(errno, "cannot write the comparison to", "standard output");
  return success();
}

CompareSettings settings_of(const Options& options) {
  return {.alpha = options.real("alpha"),
          .least_effect = options.real("least-effect"),
          .metrics = options.texts("metric"),
          .allow_other_machines = options.flag("other-machines"),
          .commands = command_registry().present()};
}

// Digits are grouped in documents whatever stdout is, and never in what programs read.
Output for_document(Output output) {
  output.groups_digits = true;
  return output;
}
Output for_log(Output output) {
  output.groups_digits = false;
  return output;
}

Result<int> compare(const CommandContext& context) {
  std::vector<fs::path> arguments(context.positionals.begin(), context.positionals.end());
  PENSTOCK_ASSIGN(const bool measures, compares_tiers(context.options));
  if (measures && context.options.flag("dry-run")) return print_gate_plan(context);
  if (measures) {
    PENSTOCK_ASSIGN(arguments, measure_tiers(context));
  }
  const CompareSettings settings = settings_of(context.options);
  PENSTOCK_ASSIGN(const Comparison comparison,
                  compare_results(context.options.text("arms"), arguments, settings));
  PENSTOCK_TRY(
      publish(context, {.text = comparison_text(comparison, settings, context.output),
                        .json = comparison_json(comparison, settings),
                        .junit = comparison_junit(comparison, settings, for_log(context.output)),
                        .markdown = comparison_markdown(comparison, settings, for_document(context.output)),
                        .annotations = comparison_annotations(comparison, for_log(context.output))}));
  return comparison.exit_code();
}

Result<int> history(const CommandContext& context) {
  for (const std::string_view name : {"arms", "junit"})
    if (context.options.given(name))
      return make_error(Errc::invalid_argument, "--{} has no effect on --history: leave it out", name);
  if (context.positionals.empty())
    return make_error(Errc::invalid_argument,
                      "--history needs results: penstock compare --history RESULTS...");
  const std::vector<fs::path> paths(context.positionals.begin(), context.positionals.end());
  PENSTOCK_ASSIGN(const RecordSet set, read_records(paths));
  for (const std::string& problem : set.problems) warn(problem);
  const CompareSettings settings = settings_of(context.options);
  PENSTOCK_ASSIGN(const History result, inspect_history(set, settings));
  PENSTOCK_TRY(publish(context, {.text = history_text(result, context.output),
                                 .json = history_json(result, settings),
                                 .junit = "",
                                 .markdown = history_markdown(result, for_document(context.output)),
                                 .annotations = history_annotations(result)}));
  return 0;
}

// Runs the comparison and returns its exit code. Exit code 1 means a regression, so every error of the
// comparison itself, except an interrupt, becomes exit code 2.
Result<int> run_compare(const CommandContext& context) {
  Result<int> code = context.options.flag("history") ? history(context) : compare(context);
  if (!code.ok() && code.error().code != Errc::interrupted) code.error().code = Errc::invalid_argument;
  return code;
}

}  // namespace

extern const CommandInfo command_compare;
const CommandInfo command_compare{
    .name = "compare",
    .summary = "the regression gate: what changed between two sets of results, with confidence intervals",
    .options = kOptions,
    .run = run_compare,
    .synopsis =
        "penstock compare BASE NEW | RESULTS --arms BASE,NEW | --history RESULTS... | --base-tier A "
        "--candidate-tier B -- COMMAND...",
    .examples = {"penstock compare monday/ tuesday/ --junit gate.xml   # tuesday against monday",
                 "penstock compare --base-tier old=/mnt/v3 --candidate-tier new=/mnt/v4 -- read data   # "
                 "measures both in turn"},
    .notes =
        "Exit codes: 0 no regression, 1 regression, 2 usage or tool error, 3 inconclusive (too few "
        "samples),\n"
        "4 a benchmark is missing or failed, 5 incomparable (other machine, data, unit); 2 > 5 > 4 > 1 > 3.",
    .arguments = "BASE [NEW]...",
};

}  // namespace penstock
