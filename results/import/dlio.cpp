// DLIO (summary.json): one record for the training and one for the evaluation, with the epochs as samples,
// and one for the saves and one for the loads of checkpoints, of which DLIO writes the mean alone. `au_dlio`
// is its accelerator utilization (a part, not percent). `payload_bytes_per_s` is its "MB/s": samples per
// second times the configured bytes of a sample, in MiB. The summary has no workload, batch size or number of
// threads: see add_dlio_overrides(). Its times are local ones without an offset, so that `started` is
// unknown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "io_backends/core/text.hpp"
#include "results/import/import_parts.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

constexpr MetricInfo kEpochSampleRate{"samples_per_s", "1/s", Better::higher, "epoch", kHeadline};
constexpr MetricInfo kEpochRate{"payload_bytes_per_s", "B/s", Better::higher, "epoch"};
constexpr MetricInfo kCheckpointTime{"checkpoint_s", "s", Better::lower, "run", kHeadline};
constexpr MetricInfo kCheckpointRate{"checkpoint_bytes_per_s", "B/s", Better::higher, "run", kHeadline};
constexpr MetricInfo kDlioMetrics[] = {kEpochSampleRate, kDlioUtilization, kEpochRate, kCheckpointTime,
                                       kCheckpointRate};
constexpr double kDlioMiB = 1 << 20;
constexpr double kDlioGiB = 1 << 30;

// The record's parameters and the members of the summary.
constexpr NamedText kCounts[] = {
    {"accelerators", "num_accelerators"},         {"hosts", "num_hosts"},
    {"files_train", "num_files_train"},           {"files_eval", "num_files_eval"},
    {"samples_per_file", "num_samples_per_file"}, {"epochs", "epochs"}};

Record new_dlio_record(const Json& summary, std::string_view operation) {
  Record record = imported::new_record("dlio", "DLIO", "");
  if (const std::string host = member_text(summary, "hostname"); !host.empty())
    record.environment["host"] = host;
  for (const char* const name : {"host_memory_GB", "host_cpu_count"})
    if (const Json* const of_each_host = member(summary, name);
        of_each_host != nullptr && of_each_host->is_array())
      record.environment[name] = *of_each_host;
  record.parameters["operation"] = std::string(operation);
  imported::add_counts(record, summary, kCounts);
  if (const auto per_host = imported::number_of(summary, "data_size_per_host_GB"))
    record.parameters["bytes_per_host"] = uint64_t(std::clamp(std::round(*per_host * kDlioGiB), 0.0, 1e18));
  return record;
}

void add_epochs(Record& record, const MetricInfo& metric, const Json& metrics, const std::string& name,
                double factor) {
  const Json* const values = member(metrics, name);
  if (values == nullptr || !values->is_array()) return;
  for (const Json& value : *values)
    if (value.is_number()) imported::add_if_known(record, metric, value.get<double>(), factor);
}

// `prefix` is "train" or "eval".
std::optional<Record> epochs_record(const Json& summary, const std::string& prefix,
                                    std::string_view operation) {
  const Json& metrics = member_object(summary, "metric");
  if (member(metrics, prefix + "_au_percentage") == nullptr) return std::nullopt;
  Record record = new_dlio_record(summary, operation);
  add_epochs(record, kEpochSampleRate, metrics, prefix + "_throughput_samples_per_second", 1);
  add_epochs(record, kDlioUtilization, metrics, prefix + "_au_percentage", 0.01);
  // The bytes of a sample are the same in all epochs, so that the means give them.
  const auto mean_mib = imported::number_of(metrics, prefix + "_io_mean_MB_per_second");
  const auto mean_samples = imported::number_of(metrics, prefix + "_throughput_mean_samples_per_second");
  if (mean_mib && mean_samples && *mean_samples > 0)
    add_epochs(record, kEpochRate, metrics, prefix + "_throughput_samples_per_second",
               *mean_mib * kDlioMiB / *mean_samples);
  if (!record.metrics.contains(std::string(kEpochSampleRate.name)))
    add_verdict(record.verdict, record.reason, Verdict::failed, "DLIO wrote no epoch");
  return record;
}

// `prefix` is "save" or "load".
std::optional<Record> checkpoint_record(const Json& summary, const std::string& prefix) {
  const Json& metrics = member_object(summary, "metric");
  const auto seconds = imported::number_of(metrics, prefix + "_checkpoint_duration_mean_seconds");
  const auto gib_per_s = imported::number_of(metrics, prefix + "_checkpoint_io_mean_GB_per_second");
  if (!seconds && !gib_per_s) return std::nullopt;
  Record record = new_dlio_record(summary, "checkpoint " + prefix);
  imported::add_if_known(record, kCheckpointTime, seconds);
  imported::add_if_known(record, kCheckpointRate, gib_per_s, kDlioGiB);
  if (const auto gib = imported::number_of(metrics, "checkpoint_size_GB"); gib && *gib >= 0 && *gib < 1e9)
    record.parameters["checkpoint_bytes"] = uint64_t(std::round(*gib * kDlioGiB));
  return record;
}

bool is_dlio(const Json& document) {
  return member(document, "num_accelerators") != nullptr && member(document, "num_hosts") != nullptr &&
         member(document, "metric") != nullptr;
}

void import_dlio(const Json& summary, const std::string& id, Imported& found) {
  size_t number = 0;
  std::optional<Record> all[] = {epochs_record(summary, "train", "train"),
                                 epochs_record(summary, "eval", "evaluate"),
                                 checkpoint_record(summary, "save"), checkpoint_record(summary, "load")};
  for (std::optional<Record>& record : all) {
    if (!record) continue;
    record->id = fmt::format("{}-{}", id, number++);
    imported::set_work(*record);
    found.records.push_back(*std::move(record));
  }
  if (number == 0) found.problems.emplace_back("DLIO's summary has no training, evaluation or checkpoint");
}

}  // namespace

void add_dlio_overrides(Record& record, std::string_view overrides) {
  // A YAML list of texts: "- ++workload.reader.batch_size=4".
  constexpr std::string_view kWorkload = "workload.";
  const std::string valid = imported::valid_utf8(overrides);
  overrides = valid;
  while (!overrides.empty()) {
    std::string_view line = trim(take_part(overrides, '\n'));
    if (!line.starts_with("- ")) continue;
    line = trim(line.substr(2), " '\"+~");
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view name = line.substr(0, equals);
    const std::string value(line.substr(equals + 1));
    if (name.starts_with(kWorkload)) name.remove_prefix(kWorkload.size());
    if (name == "dataset.data_folder")
      imported::set_tier(record, value, "");
    else if (!name.starts_with("output.") && !name.starts_with("hydra.") &&
             !record.parameters.contains(std::string(name)))
      record.parameters[std::string(name)] = value;
  }
  imported::set_work(record);
}

const Importer importer_dlio{.command = "dlio",
                             .program = "DLIO",
                             .form = "summary.json",
                             .metrics = kDlioMetrics,
                             .is_document = is_dlio,
                             .import_document = import_dlio};

}  // namespace penstock
