// warp (the JSON of `warp analyze --json`, with and without --full, and the unpacked data file of warp 1.1
// and later): one record for each type of operation (GET, PUT, ...). Rates are of the time that warp itself
// measures, without the first and the last seconds. Percentiles of a run that warp split into segments of ten
// seconds are one sample for each segment and client (`segment_latency_ns_*`), since those of the whole run
// are not in the file. The tier is the first host.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "results/import/import_parts.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

constexpr MetricInfo kObjectRate{"objects_per_s", "1/s", Better::higher, "repeat"};
constexpr MetricInfo kRequestRate{kOpRate.name, "1/s", Better::higher, "repeat", kHeadline};
constexpr MetricInfo kSegmentLatency{"segment_latency_ns_*", "ns", Better::lower, "segment"};
constexpr MetricInfo kWarpMetrics[] = {
    imported::kPayloadRate, imported::kErrors,  kRequestRate,   kObjectRate,
    imported::kWallTime,    imported::kLatency, kSegmentLatency};
constexpr double kNsPerMs = 1e6;
// Options of warp that are parameters of their own, secret, or say where results go. A '=' at the end: it has
// a value.
constexpr std::string_view kWarpOptions[] = {"--host=",        "--access-key=",
                                             "--secret-key=",  "--session-token=",
                                             "--benchdata=",   "--concurrent=",
                                             "--json",         "--no-color",
                                             "--quiet,",       "q",
                                             "--quiet",        "-q",
                                             "--analyze.out=", "--analyze.v",
                                             "--warp-client=", "--full",
                                             "--influxdb=",    "--serve=",
                                             "--analyze.dur=", "--noclear",
                                             "--keep-data",    "--bucket=",
                                             "--debug"};

std::string first_text(const Json* values) {
  if (values == nullptr || !values->is_array()) return "";
  for (const Json& value : *values)
    if (value.is_string()) return value.get<std::string>();
  return "";
}

uint64_t count_of_members(const Json* values) {
  return values != nullptr && values->is_array() ? values->size() : 0;
}

// The statistics of requests of one size: of the whole run, or of each segment of each client.
std::vector<const Json*> single_sized(const Json& operation) {
  std::vector<const Json*> all;
  if (const Json* const whole = member(operation, "single_sized_requests"); whole != nullptr)
    all.push_back(whole);
  for (const auto& [client, segments] : member_object(operation, "requests_by_client").items()) {
    if (!segments.is_array()) continue;
    for (const Json& segment : segments)
      if (const Json* const one = member(segment, "single_sized_requests"); one != nullptr)
        all.push_back(one);
  }
  std::erase_if(all, [](const Json* one) { return !one->is_object() || member_true(*one, "skipped"); });
  return all;
}

void add_request_figures(Record& record, const Json& operation) {
  const std::vector<const Json*> all = single_sized(operation);
  const MetricInfo& metric = all.size() == 1 ? imported::kLatency : kSegmentLatency;
  std::optional<double> size;
  bool is_one_size = !all.empty();
  for (const Json* const one : all) {
    for (const auto& [part, name] :
         {std::pair("p50", "dur_median_millis"), {"p90", "dur_90_millis"}, {"p99", "dur_99_millis"}})
      if (const auto ms = imported::number_of(*one, name); ms && *ms > 0)
        add_sample(record, metric, part, *ms * kNsPerMs);
    const auto bytes = imported::number_of(*one, "obj_size");
    is_one_size = is_one_size && bytes && (!size || size == bytes);
    size = bytes;
  }
  if (is_one_size && *size > 0 && *size < 1e18) record.parameters["block"] = uint64_t(*size);
}

void add_throughput(Record& record, const Json& operation) {
  const Json& throughput = member_object(operation, "throughput");
  const double ms = imported::number_of(throughput, "measure_duration_millis").value_or(0);
  if (!(ms > 0)) {
    add_verdict(record.verdict, record.reason, Verdict::failed,
                "warp has no rate, since it ran for too short a time: give it a longer --duration");
    return;
  }
  if (const auto bytes = imported::number_of(throughput, "bytes"); bytes && *bytes > 0)
    add_sample(record, imported::kPayloadRate, *bytes * 1e3 / ms);
  imported::add_if_known(record, kRequestRate, imported::number_of(throughput, "ops"), 1e3 / ms);
  imported::add_if_known(record, kObjectRate, imported::number_of(throughput, "objects"), 1e3 / ms);
  add_sample(record, imported::kWallTime, ms / 1e3);
}

// `hosts` and `clients` are arrays of names, or, with --full, numbers next to `host_names`.
void add_counts(Record& record, const Json& operation) {
  for (const char* const name : {"hosts", "clients"}) {
    const Json* const values = member(operation, name);
    const auto number = imported::number_of(operation, name);
    const uint64_t count =
        number && *number >= 1 && *number < 1e9 ? uint64_t(*number) : count_of_members(values);
    if (count > 0) record.parameters[name] = count;
  }
  if (const auto threads = imported::number_of(operation, "concurrency");
      threads && *threads >= 1 && *threads < 1e9)
    record.parameters["threads"] = uint64_t(*threads);
}

Record record_of_operation(const Json& document, const std::string& type, const Json& operation) {
  Record record = imported::new_record("warp", "warp", member_text(document, "warp_version"));
  record.started = imported::utc_of_date(member_text(operation, "start_time"));
  std::vector<std::string> words = imported::command_arguments(member_text(document, "commandline"));
  if (words.size() > 1) record.parameters["benchmark"] = words[1];
  if (member_true(document, "mixed")) record.parameters["benchmark"] = "mixed";
  record.parameters["operation"] = type;
  add_counts(record, operation);
  add_request_figures(record, operation);
  if (const std::string options = imported::options_text(words, 2, kWarpOptions); !options.empty())
    record.parameters["options"] = options;
  if (!words.empty()) record.argv = {words.front()};  // the other words may have keys
  std::string host = first_text(member(operation, "hosts"));
  if (host.empty()) host = first_text(member(operation, "host_names"));
  imported::set_tier(record, host, "s3");
  imported::set_work(record);
  add_throughput(record, operation);
  const Json* const total_errors = member(operation, "total_errors");
  const double errors =
      imported::number_of(operation, total_errors == nullptr ? "errors" : "total_errors").value_or(0);
  if (errors > 0) {
    add_sample(record, imported::kErrors, errors);
    add_verdict(record.verdict, record.reason, Verdict::degraded,
                fmt::format("warp counted {} errors and continued", errors));
  }
  if (const Json* const final = member(document, "final"); final != nullptr && *final == Json(false))
    add_verdict(record.verdict, record.reason, Verdict::interrupted, "warp wrote this before it ended");
  return record;
}

bool is_warp(const Json& document) {
  const Json* const operations = member(document, "operations");
  const bool is_full =
      operations != nullptr && operations->is_array() && member(document, "mixed") != nullptr;
  return is_full || (member(document, "by_op_type") != nullptr && member(document, "total") != nullptr);
}

void import_warp(const Json& document, const std::string& id, Imported& found) {
  std::vector<Record> records;
  for (const auto& [type, operation] : member_object(document, "by_op_type").items())
    if (operation.is_object()) records.push_back(record_of_operation(document, type, operation));
  if (const Json* const operations = member(document, "operations");
      operations != nullptr && operations->is_array())
    for (const Json& operation : *operations)
      if (operation.is_object())
        records.push_back(record_of_operation(document, member_text(operation, "type"), operation));
  if (records.empty()) found.problems.emplace_back("warp's summary has no operations");
  const auto has_rate = [](const Record& record) {
    return record.metrics.contains(std::string(kRequestRate.name));
  };
  if (std::any_of(records.begin(), records.end(), has_rate))
    std::erase_if(records, [&](const Record& record) { return !has_rate(record); });
  size_t number = 0;
  for (Record& record : records) {
    record.id = fmt::format("{}-{}", id, number++);
    found.records.push_back(std::move(record));
  }
}

}  // namespace

const Importer importer_warp{.command = "warp",
                             .program = "warp",
                             .form = "analyze --json",
                             .metrics = kWarpMetrics,
                             .is_document = is_warp,
                             .import_document = import_warp};

}  // namespace penstock
