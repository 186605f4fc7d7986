#include "results/record/store.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace penstock {
namespace {

// Reads the fields of one JSON object. In errors, `path` comes before the name of a field.
class Fields {
 public:
  Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  Error field_error(std::string_view name, std::string_view expected) const {
    return make_error(Errc::corrupt, "not a record: field '" + path_ + std::string(name) +
                                         "' is missing or no " + std::string(expected));
  }
  const Json* find(std::string_view name) const {
    const auto at = json_.find(std::string(name));
    return at == json_.end() ? nullptr : &*at;
  }
  Result<std::string> text(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_string()) return field_error(name, "text");
    return value->get<std::string>();
  }
  Result<double> number(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_number()) return field_error(name, "number");
    return value->get<double>();
  }
  Result<uint64_t> whole_number(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_number_integer() ||
        (!value->is_number_unsigned() && value->get<int64_t>() < 0))
      return field_error(name, "whole number");
    return value->get<uint64_t>();
  }
  Result<std::vector<double>> numbers(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_array()) return field_error(name, "list of numbers");
    std::vector<double> numbers;
    for (const Json& entry : *value) {
      // JSON cannot express a number that is not finite; such a number is written as null.
      if (!entry.is_number() && !entry.is_null()) return field_error(name, "list of numbers");
      numbers.push_back(entry.is_null() ? std::nan("") : entry.get<double>());
    }
    return numbers;
  }
  // Returns a field that is a list of texts. The field must exist; it is an error if it is something else.
  // The error message then says `expected`: "list of words".
  Result<std::vector<std::string>> texts(std::string_view name, std::string_view expected) const {
    const Json& value = *find(name);
    if (!value.is_array()) return field_error(name, expected);
    std::vector<std::string> texts;
    for (const Json& entry : value) {
      if (!entry.is_string()) return field_error(name, expected);
      texts.push_back(entry.get<std::string>());
    }
    return texts;
  }
  // Returns a field that is a JSON object; an empty object if the field is missing.
  Result<Json> object(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr) return Json(Json::object());
    if (!value->is_object()) return field_error(name, "object");
    return *value;
  }

 private:
  const Json& json_;
  std::string path_;
};

Result<Metric> metric_from_json(const Json& json, const std::string& name) {
  const Fields fields(json, "metrics." + name + ".");
  Metric metric;
  PENSTOCK_ASSIGN(metric.unit, fields.text("unit"));
  PENSTOCK_ASSIGN(metric.per, fields.text("per"));
  PENSTOCK_ASSIGN(metric.samples, fields.numbers("samples"));
  PENSTOCK_ASSIGN(const std::string better, fields.text("better"));
  for (const Better known : {Better::higher, Better::lower, Better::neither})
    if (better_name(known) == better) metric.better = known;
  if (better_name(metric.better) != better)
    return fields.field_error("better", "'higher', 'lower' or 'neither'");
  if (const Json* headline = fields.find("headline"); headline != nullptr) {
    if (!headline->is_boolean()) return fields.field_error("headline", "true or false");
    metric.headline = headline->get<bool>();
  }
  return metric;
}

Result<void> read_identity(const Fields& fields, Record& record) {
  PENSTOCK_ASSIGN(const uint64_t schema, fields.whole_number("schema"));
  if (schema != 1)
    return make_error(Errc::unsupported, "not a record that this penstock reads: it has schema " +
                                             std::to_string(schema) + ", not 1; use a newer penstock");
  PENSTOCK_ASSIGN(record.id, fields.text("id"));
  PENSTOCK_ASSIGN(record.started, fields.text("started"));
  PENSTOCK_ASSIGN(record.command, fields.text("command"));
  if (fields.find("argv") != nullptr) {
    PENSTOCK_ASSIGN(record.argv, fields.texts("argv", "list of words"));
  }
  PENSTOCK_ASSIGN(const Json label, fields.object("label"));
  for (const auto& [key, value] : label.items()) {
    if (!value.is_string()) return fields.field_error("label." + key, "text");
    record.label[key] = value.get<std::string>();
  }
  if (fields.find("seed") != nullptr) {
    PENSTOCK_ASSIGN(record.seed, fields.whole_number("seed"));
  }
  return success();
}

Result<void> read_measurements(const Fields& fields, Record& record) {
  PENSTOCK_ASSIGN(const Json metrics, fields.object("metrics"));
  for (const auto& [name, value] : metrics.items()) {
    if (!value.is_object()) return fields.field_error("metrics." + name, "object");
    PENSTOCK_ASSIGN(record.metrics[name], metric_from_json(value, name));
  }
  PENSTOCK_ASSIGN(const Json series, fields.object("series"));
  for (const auto& [name, value] : series.items()) {
    if (!value.is_object()) return fields.field_error("series." + name, "object");
    const Fields series_fields(value, "series." + name + ".");
    Series& target = record.series[name];
    PENSTOCK_ASSIGN(target.interval_s, series_fields.number("interval_s"));
    PENSTOCK_ASSIGN(target.values, series_fields.numbers("values"));
    if (series_fields.find("lengths_s") == nullptr) continue;
    PENSTOCK_ASSIGN(target.lengths_s, series_fields.numbers("lengths_s"));
    if (target.lengths_s.size() != target.values.size() ||
        std::any_of(target.lengths_s.begin(), target.lengths_s.end(),
                    [](double length) { return !(length > 0); }))
      return series_fields.field_error("lengths_s", "list of one positive number for each value");
  }
  PENSTOCK_ASSIGN(const std::string verdict, fields.text("verdict"));
  PENSTOCK_ASSIGN(record.verdict, parse_verdict(verdict));
  if (fields.find("reason") != nullptr) {
    PENSTOCK_ASSIGN(record.reason, fields.text("reason"));
  }
  return success();
}

constexpr size_t kChecksumBytes = kChecksumBegin.size() + 8 + kChecksumEnd.size();

bool is_checksum(std::string_view text) {
  return text.starts_with(kChecksumBegin) && text.ends_with(kChecksumEnd);
}

size_t count_at(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number_unsigned() ? at->get<size_t>() : 0;
}

}  // namespace

Result<std::optional<SealedPosition>> check_seal(std::string_view line, const Json& json) {
  line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  const size_t body_bytes = line.size() < kChecksumBytes ? 0 : line.size() - kChecksumBytes;
  const auto seal = json.find("seal");
  if (seal == json.end() && !is_checksum(line.substr(body_bytes))) return std::optional<SealedPosition>();
  const Error changed_error =
      make_error(Errc::corrupt,
                 "changed since it was written: its checksum does not hold (without the member 'seal' it is "
                 "read as it is)");
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  if (line.substr(body_bytes) != seal_checksum(line.substr(0, body_bytes))) return changed_error;
#endif
  if (seal == json.end() || !seal->is_object()) return changed_error;
  const SealedPosition position{count_at(*seal, "line"), count_at(*seal, "of")};
  if (position.line == 0 || position.line > position.lines) return changed_error;
  return std::optional<SealedPosition>(position);
}

Result<Verdict> parse_verdict(std::string_view name) {
  for (int i = 0; i <= int(kWorstVerdict); ++i)
    if (const auto verdict = static_cast<Verdict>(i); verdict_name(verdict) == name) return verdict;
  return make_error(Errc::corrupt, "not a record: unknown verdict '" + std::string(name) + "'");
}

Result<Record> record_from_json(const Json& json) {
  if (!json.is_object()) return make_error(Errc::corrupt, "not a record: no JSON object");
  Record record;
  const Fields fields(json, "");
  PENSTOCK_TRY(read_identity(fields, record));
  PENSTOCK_ASSIGN(record.parameters, fields.object("parameters"));
  if (fields.find("work") != nullptr) {
    PENSTOCK_ASSIGN(record.work, fields.texts("work", "list of names"));
  }
  PENSTOCK_ASSIGN(record.tiers, fields.object("tiers"));
  PENSTOCK_ASSIGN(record.cache, fields.object("cache"));
  PENSTOCK_ASSIGN(record.corpus, fields.object("corpus"));
  PENSTOCK_ASSIGN(record.environment, fields.object("environment"));
  PENSTOCK_ASSIGN(record.pair, fields.object("pair"));
  PENSTOCK_TRY(read_measurements(fields, record));
  return record;
}

}  // namespace penstock
