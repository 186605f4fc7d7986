// mdtest (its text, of the versions that come with IOR 3.2 and later): one record for each phase, such as
// "file creation", with a rate in operations per second. Its table has the greatest, the least and the mean
// rate of the iterations. Up to three iterations follow from these, and all of them from the lines of -v;
// otherwise the mean is the only sample. A rate of 0 is of a phase that was not run. mdtest writes its start
// as local time without an offset, so that `started` is unknown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "io_backends/core/text.hpp"
#include "results/import/import_parts.hpp"

namespace penstock {
namespace {

constexpr MetricInfo kPhaseRate{kOpRate.name, "1/s", Better::higher, "repeat", kHeadline};
constexpr MetricInfo kMdtestMetrics[] = {kPhaseRate};

constexpr std::string_view kVersionBegin = "mdtest-";
constexpr std::string_view kVersionEnd = " was launched with ";
constexpr std::string_view kCommandBegin = "Command line used: ";
constexpr std::string_view kPhases[] = {"Directory creation", "Directory stat",    "Directory read",
                                        "Directory rename",   "Directory removal", "File creation",
                                        "File stat",          "File read",         "File removal",
                                        "Tree creation",      "Tree removal"};
// Options that are parameters of their own or say how results are shown. A '=' at the end: it has a value.
constexpr std::string_view kMdtestOptions[] = {"-d=",
                                               "-i=",
                                               "-v",
                                               "-V=",
                                               "-P",
                                               "-vv",
                                               "-vvv",
                                               "--print-all-procs",
                                               "--showRankStatistics",
                                               "--saveRankPerformanceDetails=",
                                               "--savePerOpDataCSV="};

// What one start of mdtest printed for one number of tasks.
struct MdtestSection {
  std::string version, command, path;
  uint64_t tasks = 0, nodes = 0, items = 0, iterations = 0;
  bool in_rates = false;  // the lines that follow are those of the table of rates
  bool has_rates = false, has_wrong_data = false;
  // Phase -> its rate in each iteration, as far as -v printed them; and its row of the table: the greatest,
  // the least and the mean rate.
  std::map<std::string, std::vector<double>> iteration_rates;
  std::map<std::string, std::vector<std::optional<double>>> table;
};

uint64_t first_number(std::string_view text) {
  const size_t begin = std::min(text.find_first_of("0123456789"), text.size());
  const size_t end = text.find_first_not_of("0123456789", begin);
  return parse_digits<uint64_t>(text.substr(begin, end - begin)).value_or(0);
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = trim(line); !line.empty(); line = trim(line)) {
    const size_t length = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, length));
    line.remove_prefix(length);
  }
  return words;
}

// Takes a line about a phase: a row of the table, or, with `is_iteration`, "File stat : 0.1 sec, 5.0
// ops/sec".
void take_phase_line(std::string_view line, MdtestSection& section) {
  for (const std::string_view phase : kPhases) {
    const size_t at = line.find(phase);
    if (at == std::string_view::npos) continue;
    std::string_view rest = trim(line.substr(at + phase.size()));
    std::vector<std::optional<double>>& row = section.table[std::string(phase)];
    if (rest.ends_with("ops/sec")) {
      if (!rest.starts_with(':')) return;  // "File creation (stonewall)"
      const size_t comma = rest.rfind(',');
      rest = rest.substr(comma + 1, rest.size() - comma - 1 - std::string_view("ops/sec").size());
      if (const auto rate = imported::finite_number(rest))
        section.iteration_rates[std::string(phase)].push_back(*rate);
    } else if (section.in_rates && row.empty()) {
      if (rest.starts_with(':')) rest.remove_prefix(1);
      std::vector<std::string_view> words = words_of(rest);
      if (words.size() < 4) return;
      words.erase(words.begin(), words.end() - 4);  // --showRankStatistics puts three columns before them
      for (size_t i = 0; i < 3; ++i) row.push_back(imported::finite_number(words[i]));
    }
    return;
  }
}

// The rate of each iteration as far as it is known.
std::vector<double> samples_of(const std::vector<double>& rates, uint64_t iterations, double most,
                               double least, double mean) {
  if (iterations == 2) return {most, least};
  if (iterations == 3) return {most, least, std::clamp(3 * mean - most - least, least, most)};
  if (iterations == 1 || rates.size() != iterations) return {mean};
  double sum = 0;
  for (const double rate : rates) sum += rate;
  // The lines of -v are of the first task. They are the phase's only if the table was made of them.
  return std::abs(sum / double(iterations) - mean) <= 1e-3 * mean ? rates : std::vector<double>{mean};
}

void add_section(const MdtestSection& section, const std::string& id, Imported& found) {
  if (section.table.empty() || !section.has_rates) {
    found.problems.push_back("mdtest was started (" + section.command +
                             ") but its table of rates is missing: it was stopped, or run it without -Z");
    return;
  }
  for (const std::string_view phase : kPhases) {
    const std::string name(phase);
    const auto row = section.table.find(name);
    if (row == section.table.end() || row->second.empty() || row->second[0] == 0.0) continue;
    Record record = imported::new_record("mdtest", "mdtest", section.version);
    record.id = fmt::format("{}-{}", id, found.records.size());
    std::vector<std::string> words = imported::command_arguments(section.command);
    if (!words.empty()) record.argv = words;
    record.parameters["operation"] = lower_case(phase);
    record.parameters["ranks"] = section.tasks;
    record.parameters["threads"] = 1;
    record.parameters["nodes"] = section.nodes;
    record.parameters["items"] = section.items;
    record.parameters["options"] = imported::options_text(words, 1, kMdtestOptions);
    imported::set_tier(record, section.path, "");
    imported::set_work(record);
    const std::vector<std::optional<double>>& rates = row->second;
    const auto of_each = section.iteration_rates.find(name);
    if (std::all_of(rates.begin(), rates.end(), [](const auto& rate) { return rate.has_value(); }))
      for (const double rate :
           samples_of(of_each == section.iteration_rates.end() ? std::vector<double>() : of_each->second,
                      section.iterations, *rates[0], *rates[1], *rates[2]))
        add_sample(record, kPhaseRate, rate);
    else
      add_verdict(record.verdict, record.reason, Verdict::failed, "mdtest wrote no finite rate");
    if (section.has_wrong_data && phase.starts_with("File"))
      add_verdict(record.verdict, record.reason, Verdict::wrong_bytes,
                  "mdtest found errors in the data that it read");
    found.records.push_back(std::move(record));
  }
}

bool is_launch(std::string_view line) {
  return line.starts_with(kVersionBegin) && line.find(kVersionEnd) != std::string_view::npos;
}

bool is_mdtest(std::string_view text) {
  while (!text.empty())
    if (is_launch(take_part(text, '\n'))) return true;
  return false;
}

void import_mdtest(std::string_view text, const std::string& id, Imported& found) {
  MdtestSection section;
  bool is_open = false;
  bool is_finished = true;
  const auto check_end = [&] {
    if (!is_finished && section.has_rates)
      found.problems.push_back("mdtest (" + section.command +
                               ") printed no line '-- finished at': rows may be missing, because it was "
                               "stopped or its text is truncated");
  };
  const auto close = [&] {
    if (is_open) add_section(section, id, found);
    section.table.clear();
    section.iteration_rates.clear();
    section.in_rates = section.has_rates = section.has_wrong_data = is_open = false;
  };
  while (!text.empty()) {
    const std::string_view line = trim(take_part(text, '\n'), "\r");
    if (is_launch(line)) {
      check_end();
      close();
      is_finished = false;
      section = {};
      const size_t end = line.find(kVersionEnd);
      section.version = line.substr(kVersionBegin.size(), end - kVersionBegin.size());
      section.tasks = first_number(line.substr(end));
      section.nodes = first_number(line.substr(std::min(line.find(" on "), line.size())));
      is_open = true;
    } else if (line.starts_with(kCommandBegin)) {
      section.command = line.substr(kCommandBegin.size());
    } else if (line.starts_with("Path") && trim(line.substr(4)).starts_with(':')) {
      section.path = trim(line.substr(line.find(':') + 1));
    } else if (const auto words = words_of(line);
               words.size() >= 4 && words[1] == "tasks," && first_number(line) > 0) {
      // With -f and -l, one start measures several numbers of tasks.
      if (!section.table.empty()) close();
      is_open = true;
      section.tasks = first_number(words[0]);
      section.items = first_number(words[2]);
    } else if (line.starts_with("SUMMARY")) {
      section.in_rates = line.find("time") == std::string_view::npos;
      section.has_rates |= section.in_rates;
      section.iterations = first_number(line.substr(std::min(line.find("(of"), line.size())));
    } else if (line.starts_with("-- finished at")) {
      is_finished = true;
    } else if (line.find("ERROR: verifying the data") != std::string_view::npos) {
      section.has_wrong_data = true;
    } else if (is_open) {
      take_phase_line(line, section);
    }
  }
  check_end();
  close();
}

}  // namespace

const Importer importer_mdtest{.command = "mdtest",
                               .program = "mdtest",
                               .form = "its text",
                               .metrics = kMdtestMetrics,
                               .is_text = is_mdtest,
                               .import_text = import_mdtest};

}  // namespace penstock
