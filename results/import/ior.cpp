// IOR (-O summaryFormat=JSON, version 3.2 and later): one record for each test and operation (read, write),
// with IOR's repetitions as samples. `block` is the transfer size, `block_size` IOR's block: what one task
// reads or writes in a piece. Options of a back end, such as --posix.odirect, are `options`. IOR's times have
// four digits after the point: one of 0.0000 s is unknown. The removal of the files is not read. IOR writes
// its start as local time without an offset, so that `started` is unknown.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "results/import/import_parts.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

constexpr MetricInfo kOpenTime{"open_s", "s", Better::lower, "repeat"};
constexpr MetricInfo kCloseTime{"close_s", "s", Better::lower, "repeat"};
constexpr MetricInfo kIorMetrics[] = {imported::kPayloadRate, kOpRate, imported::kWallTime, kOpenTime,
                                      kCloseTime};
constexpr double kIorMiB = 1 << 20;

// Parameters of a test that identify its work: the record's name, and IOR's.
constexpr NamedText kTestNumbers[] = {{"block", "transferSize"},
                                      {"block_size", "blockSize"},
                                      {"segments", "segmentCount"},
                                      {"nodes", "nodes"},
                                      {"tasks_per_node", "tasksPerNode"},
                                      {"stonewall_s", "deadlineForStonewall"},
                                      {"wear_out", "stoneWallingWearOut"},
                                      {"most_minutes", "maxTimeDuration"},
                                      {"memory_per_task", "memoryPerTask"},
                                      {"memory_per_node", "memoryPerNode"}};
constexpr NamedText kTestFlags[] = {{"file_per_process", "filePerProc"},
                                    {"collective", "collective"},
                                    {"random", "randomOffset"},
                                    {"fsync", "fsync"},
                                    {"fsync_per_write", "fsyncperwrite"},
                                    {"reorder_tasks", "reorderTasks"},
                                    {"reorder_random", "reorderTasksRandom"},
                                    {"unique_dir", "uniqueDir"},
                                    {"multi_file", "multiFile"},
                                    {"check_write", "checkWrite"},
                                    {"check_read", "checkRead"},
                                    {"direct", "useO_DIRECT"},
                                    {"preallocate", "preallocate"},
                                    {"file_view", "useFileView"},
                                    {"strided", "useStridedDatatype"},
                                    {"shared_file_pointer", "useSharedFilePointer"},
                                    {"use_existing_file", "useExistingTestFile"}};

// The words of the command line that are options of a back end: "--posix.odirect". "" if there are none.
std::string backend_options(const std::vector<std::string>& words) {
  std::string options;
  for (const std::string& word : words)
    if (word.starts_with("--") && word.find('.') < word.find('='))
      options += (options.empty() ? "" : " ") + word;
  return options;
}

void add_test_parameters(Record& record, const Json& test, const std::string& operation) {
  const Json& asked = member_object(test, "Parameters");
  const Json& options = member_object(test, "Options");
  record.parameters["operation"] = operation;
  record.parameters["api"] =
      member_text(options, "api").empty() ? member_text(asked, "api") : member_text(options, "api");
  if (const auto tasks = imported::number_of(options, "tasks"); tasks && *tasks >= 1 && *tasks < 1e9) {
    record.parameters["ranks"] = uint64_t(*tasks);
    record.parameters["threads"] = 1;
  }
  imported::add_counts(record, asked, kTestNumbers);
  for (const auto& [name, ior_name] : kTestFlags)
    if (const auto number = imported::number_of(asked, ior_name))
      record.parameters[std::string(name)] = *number != 0;
  if (const std::string backend = backend_options(record.argv); !backend.empty()) {
    record.parameters["options"] = backend;
    if (backend.find("odirect") != std::string::npos) record.parameters["direct"] = true;
  }
  if (record.parameters.value("direct", false)) record.cache["client_data"] = "bypassed";
  imported::set_tier(record, member_text(asked, "testFileName"), record.parameters.value("api", ""));
  imported::set_work(record);
}

// Adds a time, unless it is so short that IOR wrote 0.
void add_time(Record& record, const MetricInfo& metric, const Json& result, const char* name) {
  if (const auto seconds = imported::number_of(result, name); seconds && *seconds > 0)
    add_sample(record, metric, *seconds);
}

// The samples of all repeats must stay side by side, so a metric that not every repeat has is left out.
void remove_partial_metrics(Record& record, size_t repeats) {
  for (const MetricInfo& metric : {kOpRate, imported::kWallTime, kOpenTime, kCloseTime}) {
    const auto at = record.metrics.find(std::string(metric.name));
    if (at != record.metrics.end() && at->second.samples.size() != repeats) record.metrics.erase(at);
  }
}

Record record_of_test(const Json& document, const Json& test, const std::string& operation) {
  Record record = imported::new_record("ior", "IOR", member_text(document, "Version"));
  if (std::vector<std::string> words = imported::command_arguments(member_text(document, "Command line"));
      !words.empty())
    record.argv = std::move(words);
  std::string machine =
      member_text(document, "Machine");  // "Linux node-1", with more words if IOR is verbose
  machine.erase(0, std::min(machine.find(' '), machine.size() - 1) + 1);
  if (machine = machine.substr(0, machine.find(' ')); !machine.empty()) record.environment["host"] = machine;
  add_test_parameters(record, test, operation);
  size_t repeats = 0;
  const Json* const results = member(test, "Results");
  if (results != nullptr && results->is_array())
    for (const Json& result : *results) {
      if (member_text(result, "access") != operation) continue;
      ++repeats;
      imported::add_if_known(record, imported::kPayloadRate, imported::number_of(result, "bwMiB"), kIorMiB);
      imported::add_if_known(record, kOpRate, imported::number_of(result, "iops"));
      add_time(record, imported::kWallTime, result, "totalTime");
      add_time(record, kOpenTime, result, "openTime");
      add_time(record, kCloseTime, result, "closeTime");
    }
  remove_partial_metrics(record, repeats);
  if (record.metrics.find(std::string(imported::kPayloadRate.name)) == record.metrics.end())
    add_verdict(record.verdict, record.reason, Verdict::failed,
                fmt::format("IOR has no rate of its {} in this test", operation));
  return record;
}

bool is_ior(const Json& document) {
  const Json* const tests = member(document, "tests");
  return tests != nullptr && tests->is_array() && !member_text(document, "Command line").empty() &&
         member(document, "Began") != nullptr;
}

void import_ior(const Json& document, const std::string& id, Imported& found) {
  size_t number = 0;
  for (const Json& test : document.at("tests")) {
    const Json& asked = member_object(test, "Parameters");
    for (const auto& [operation, flag] : {std::pair("write", "writeFile"), {"read", "readFile"}}) {
      if (imported::number_of(asked, flag).value_or(0) == 0) continue;
      Record record = record_of_test(document, test, operation);
      record.id = fmt::format("{}-{}", id, number++);
      found.records.push_back(std::move(record));
    }
  }
  if (number == 0) found.problems.emplace_back("IOR's results have no test that reads or writes");
}

}  // namespace

const Importer importer_ior{.command = "ior",
                            .program = "IOR",
                            .form = "-O summaryFormat=JSON",
                            .metrics = kIorMetrics,
                            .is_document = is_ior,
                            .import_document = import_ior};

}  // namespace penstock
