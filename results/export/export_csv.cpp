#include "results/export/export_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/csv_field.hpp"
#include "results/cells/cells.hpp"
#include "results/record/json_members.hpp"
#include "results/record/statistics.hpp"
#include "results/record/work.hpp"

namespace penstock {
namespace {

// A row of a table under construction: the columns that it has, with their values as text.
using CsvRow = std::vector<std::pair<std::string, std::string>>;

// Adds those columns of the rows to `headings` that it does not have yet, in the order of their appearance.
void add_headings(const std::vector<CsvRow>& rows, std::vector<std::string>& headings) {
  std::set<std::string> known(headings.begin(), headings.end());
  for (const CsvRow& row : rows)
    for (const auto& [heading, value] : row)
      if (known.insert(heading).second) headings.push_back(heading);
}

// One line of headings, and one for each row. A field is empty if the row does not have the column.
std::string csv_of(const std::vector<std::string>& headings, const std::vector<CsvRow>& rows) {
  std::map<std::string, size_t> position;  // heading -> its index
  for (size_t i = 0; i < headings.size(); ++i) position[headings[i]] = i;
  std::string out;
  const auto add_line = [&](const std::vector<std::string>& fields) {
    for (size_t i = 0; i < fields.size(); ++i) out += (i > 0 ? "," : "") + csv_field(fields[i]);
    out += "\r\n";
  };
  add_line(headings);
  for (const CsvRow& row : rows) {
    std::vector<std::string> fields(headings.size());
    for (const auto& [heading, value] : row) fields[position[heading]] = value;
    add_line(fields);
  }
  return out;
}

std::string number_field(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

// Identifies the record in both tables. Results of other tools have no id.
std::string record_id(const StoredRecord& stored) {
  return stored.record.id.empty() ? fmt::format("{}:{}", utf8_name(stored.file.string()), stored.line)
                                  : stored.record.id;
}

CsvRow identity_fields(const StoredRecord& stored) {
  const Record& record = stored.record;
  return {{"record", record_id(stored)},
          {"command", record.command},
          {"tier", measured_tier(record)},
          {"verdict", std::string(verdict_name(record.verdict))},
          {"cache_state", cache_state(record)},
          {"host", environment_text(record, "host")},
          {"version", member_text(member_object(record.environment, "versions"), "penstock")},
          {"started", record.started}};
}

// The further facts of a record that do not come from its parameters.
CsvRow fact_fields(const StoredRecord& stored) {
  const Record& record = stored.record;
  CsvRow fields{{"reason", record.reason},
                {"tier_spec", member_text(member_object(record.tiers, "data"), "spec")},
                {"corpus", corpus_text(record, "recipe")},
                {"corpus_samples", corpus_text(record, "samples")},
                {"corpus_bytes", corpus_text(record, "bytes")},
                {"suite", member_text(record.pair, "suite")},
                {"pair", member_any_text(record.pair, "index")},
                {"pair_arm", member_text(record.pair, "arm")},
                {"file", utf8_name(stored.file.string())},
                {"line", std::to_string(stored.line)}};
  for (const auto& [role, facts] : record.tiers.items())
    if (role != "data") fields.emplace_back("tier_" + role, role_name(record, role));
  return fields;
}

// Adds a column for each work parameter but the tier, which identity_fields() has. If another version has a
// parameter with the name of one of our columns, its heading is "parameter_NAME".
void add_parameters(const Record& record, const std::vector<std::string>& own_headings, CsvRow& row) {
  for (const std::string& name : work_parameters(record)) {
    if (name == "tier") continue;
    const bool is_taken = std::find(own_headings.begin(), own_headings.end(), name) != own_headings.end();
    row.emplace_back(is_taken ? "parameter_" + name : name, parameter_text(record, name));
  }
  for (const auto& [key, value] : record.label) row.emplace_back("label_" + key, value);
}

std::vector<std::string> own_headings() {
  std::vector<std::string> headings;
  add_headings({identity_fields({}), fact_fields({})}, headings);
  return headings;
}

void add_metric_fields(const std::string& name, const Metric& metric, CsvRow& row) {
  const std::vector<double> samples = finite_samples(metric.samples);
  if (samples.empty()) return;
  const RepeatRange range = repeat_range(metric);
  row.emplace_back(name + "_median", number_field(metric.value()));
  row.emplace_back(name + "_low", number_field(range.range.low));
  row.emplace_back(name + "_high", number_field(range.range.high));
  row.emplace_back(name + "_range", range_text(range.is_interval));
  row.emplace_back(name + "_n", std::to_string(samples.size()));
  row.emplace_back(name + "_unit", metric.unit);
}

}  // namespace

std::string records_csv(const RecordSet& set, const ExportedMetrics& metrics) {
  const std::vector<std::string> own = own_headings();
  std::vector<CsvRow> rows;
  for (const StoredRecord& stored : set.records)
    add_parameters(stored.record, own, rows.emplace_back(identity_fields(stored)));
  // The parameters of all records come before the metrics of all records, and these before the facts.
  std::vector<std::string> headings;
  add_headings(rows, headings);
  for (size_t i = 0; i < rows.size(); ++i)
    for (const auto& [name, metric] : set.records[i].record.metrics)
      if (metrics.is_listed(set.records[i].record, name)) add_metric_fields(name, metric, rows[i]);
  add_headings(rows, headings);
  for (size_t i = 0; i < rows.size(); ++i) {
    const CsvRow facts = fact_fields(set.records[i]);
    rows[i].insert(rows[i].end(), facts.begin(), facts.end());
  }
  add_headings(rows, headings);
  return csv_of(headings, rows);
}

std::string repeats_csv(const RecordSet& set, const ExportedMetrics& metrics) {
  const std::vector<std::string> own = own_headings();
  std::vector<CsvRow> rows;
  for (const StoredRecord& stored : set.records) {
    CsvRow head = identity_fields(stored);
    for (const auto& [name, metric] : stored.record.metrics) {
      if (!metrics.is_listed(stored.record, name)) continue;
      for (size_t i = 0; i < metric.samples.size(); ++i) {
        CsvRow& row = rows.emplace_back(head);
        row.insert(row.end(), {{"metric", name},
                               {"unit", metric.unit},
                               {"per", metric.per},
                               {"index", std::to_string(i)},
                               {"value", number_field(metric.samples[i])}});
        add_parameters(stored.record, own, row);
      }
    }
  }
  std::vector<std::string> headings;
  add_headings({identity_fields({})}, headings);
  headings.insert(headings.end(), {"metric", "unit", "per", "index", "value"});
  add_headings(rows, headings);
  return csv_of(headings, rows);
}

}  // namespace penstock
