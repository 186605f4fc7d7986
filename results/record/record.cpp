#include "results/record/record.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "io_backends/decorators/traced.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

constexpr std::array<std::pair<Verdict, std::string_view>, 12> kVerdicts{{
    {Verdict::ok, "ok"},
    {Verdict::short_time, "short"},
    {Verdict::client_bound, "client_bound"},
    {Verdict::ceiling_invalid, "ceiling_invalid"},
    {Verdict::degraded, "degraded"},
    {Verdict::not_warm, "not_warm"},
    {Verdict::not_cold, "not_cold"},
    {Verdict::wrong_bytes, "wrong_bytes"},
    {Verdict::timed_out, "timed_out"},
    {Verdict::failed, "failed"},
    {Verdict::skipped, "skipped"},
    {Verdict::interrupted, "interrupted"},
}};

std::string_view better_name(Better better) {
  switch (better) {
    case Better::higher:
      return "higher";
    case Better::lower:
      return "lower";
    case Better::neither:
      break;
  }
  return "neither";
}

Json metric_json(const Metric& metric) {
  Json json = Json::object();
  const bool known = std::any_of(metric.samples.begin(), metric.samples.end(),
                                 [](double sample) { return std::isfinite(sample); });
  json["value"] = known ? Json(metric.value()) : Json();
  json["unit"] = metric.unit;
  json["better"] = better_name(metric.better);
  json["per"] = metric.per;
  if (metric.headline) json["headline"] = true;
  json["samples"] = metric.samples;
  return json;
}

Error bad_field(std::string_view field, std::string_view wanted) {
  return make_error(Errc::corrupt, "not a record: field '" + std::string(field) + "' is missing or no " +
                                       std::string(wanted));
}

// Reads the fields of one object; the first failure sticks, so that a caller looks once.
class Fields {
 public:
  Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  const Json* find(std::string_view name) const {
    const auto at = json_.find(std::string(name));
    return at == json_.end() ? nullptr : &*at;
  }
  Result<std::string> text(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_string()) return bad_field(path_ + std::string(name), "text");
    return value->get<std::string>();
  }
  Result<double> number(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_number()) return bad_field(path_ + std::string(name), "number");
    return value->get<double>();
  }
  Result<std::uint64_t> whole(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_number_integer() ||
        (!value->is_number_unsigned() && value->get<std::int64_t>() < 0))
      return bad_field(path_ + std::string(name), "whole number");
    return value->get<std::uint64_t>();
  }
  Result<std::vector<double>> numbers(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_array())
      return bad_field(path_ + std::string(name), "list of numbers");
    std::vector<double> numbers;
    for (const Json& entry : *value) {
      // A measurement that is no finite number has no JSON spelling but null.
      if (!entry.is_number() && !entry.is_null())
        return bad_field(path_ + std::string(name), "list of numbers");
      numbers.push_back(entry.is_null() ? std::nan("") : entry.get<double>());
    }
    return numbers;
  }
  // Absent is empty.
  Result<Json> object(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr) return Json(Json::object());
    if (!value->is_object()) return bad_field(path_ + std::string(name), "object");
    return *value;
  }

 private:
  const Json& json_;
  std::string path_;
};

Result<Metric> metric_from_json(const Json& json, const std::string& name) {
  if (!json.is_object()) return bad_field("metrics." + name, "object");
  const Fields fields(json, "metrics." + name + ".");
  Metric metric;
  PENSTOCK_ASSIGN(metric.unit, fields.text("unit"));
  PENSTOCK_ASSIGN(metric.per, fields.text("per"));
  PENSTOCK_ASSIGN(metric.samples, fields.numbers("samples"));
  PENSTOCK_ASSIGN(const std::string better, fields.text("better"));
  if (better == "higher") {
    metric.better = Better::higher;
  } else if (better == "lower") {
    metric.better = Better::lower;
  } else if (better == "neither") {
    metric.better = Better::neither;
  } else {
    return bad_field("metrics." + name + ".better", "'higher', 'lower' or 'neither'");
  }
  if (const Json* headline = fields.find("headline"); headline != nullptr) {
    if (!headline->is_boolean()) return bad_field("metrics." + name + ".headline", "true or false");
    metric.headline = headline->get<bool>();
  }
  return metric;
}

Result<void> read_identity(const Json& json, Record& record) {
  const Fields fields(json, "");
  PENSTOCK_ASSIGN(const std::uint64_t schema, fields.whole("schema"));
  if (schema != 1)
    return make_error(Errc::unsupported,
                      "record of schema " + std::to_string(schema) + "; this program reads schema 1");
  PENSTOCK_ASSIGN(record.id, fields.text("id"));
  PENSTOCK_ASSIGN(record.started, fields.text("started"));
  PENSTOCK_ASSIGN(record.command, fields.text("command"));
  if (const Json* argv = fields.find("argv"); argv != nullptr) {
    if (!argv->is_array()) return bad_field("argv", "list of words");
    for (const Json& word : *argv) {
      if (!word.is_string()) return bad_field("argv", "list of words");
      record.argv.push_back(word.get<std::string>());
    }
  }
  PENSTOCK_ASSIGN(const Json label, fields.object("label"));
  for (const auto& [key, value] : label.items()) {
    if (!value.is_string()) return bad_field("label." + key, "text");
    record.label[key] = value.get<std::string>();
  }
  if (fields.find("seed") != nullptr) {
    PENSTOCK_ASSIGN(record.seed, fields.whole("seed"));
  }
  return success();
}

Result<void> read_work_names(const Json& json, Record& record) {
  const Json* const work = Fields(json, "").find("work");
  if (work == nullptr) return success();
  if (!work->is_array()) return bad_field("work", "list of names");
  record.work.emplace();
  for (const Json& name : *work) {
    if (!name.is_string()) return bad_field("work", "list of names");
    record.work->push_back(name.get<std::string>());
  }
  return success();
}

Result<void> read_measurements(const Json& json, Record& record) {
  const Fields fields(json, "");
  PENSTOCK_ASSIGN(const Json metrics, fields.object("metrics"));
  for (const auto& [name, value] : metrics.items()) {
    PENSTOCK_ASSIGN(record.metrics[name], metric_from_json(value, name));
  }
  PENSTOCK_ASSIGN(const Json series, fields.object("series"));
  for (const auto& [name, value] : series.items()) {
    if (!value.is_object()) return bad_field("series." + name, "object");
    const Fields one(value, "series." + name + ".");
    Series& target = record.series[name];
    PENSTOCK_ASSIGN(target.interval_s, one.number("interval_s"));
    PENSTOCK_ASSIGN(target.values, one.numbers("values"));
  }
  PENSTOCK_ASSIGN(const std::string verdict, fields.text("verdict"));
  PENSTOCK_ASSIGN(record.verdict, parse_verdict(verdict));
  if (const Json* reason = fields.find("reason"); reason != nullptr) {
    if (!reason->is_string()) return bad_field("reason", "text");
    record.reason = reason->get<std::string>();
  }
  return success();
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  for (const auto& [value, name] : kVerdicts)
    if (value == verdict) return name;
  return "failed";
}

Result<Verdict> parse_verdict(std::string_view name) {
  for (const auto& [value, known] : kVerdicts)
    if (known == name) return value;
  return make_error(Errc::corrupt, "not a record: unknown verdict '" + std::string(name) + "'");
}

int verdict_exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
    case Verdict::short_time:
    case Verdict::degraded:
    case Verdict::client_bound:
    case Verdict::ceiling_invalid:
      return 0;
    case Verdict::skipped:
      return 77;
    case Verdict::not_warm:
    case Verdict::not_cold:
    case Verdict::wrong_bytes:
    case Verdict::timed_out:
    case Verdict::failed:
    case Verdict::interrupted:
      break;
  }
  return 1;
}

void judge(Verdict& verdict, std::string& reason, Verdict what, std::string_view why) {
  if (what == verdict) return;
  const Verdict lesser = std::min(verdict, what);
  const std::string lesser_reason = what > verdict ? reason : std::string(why);
  if (what > verdict) {
    verdict = what;
    reason = why;
  }
  const std::string also = "; also " + std::string(verdict_name(lesser)) + ": ";
  if (lesser != Verdict::ok && verdict_exit_code(verdict) == 0 && reason.find(also) == std::string::npos)
    reason += also + lesser_reason;
}

double Metric::value() const {
  return median(samples);
}

void add_sample(Record& record, const MetricInfo& metric, double value) {
  add_sample(record, metric, "", value);
}

void add_sample(Record& record, const MetricInfo& family, std::string_view part, double value) {
  const auto [at, fresh] = record.metrics.try_emplace(family.with(part));
  if (fresh)
    at->second = {std::string(family.unit), family.better, std::string(family.per), {}, family.headline};
  at->second.samples.push_back(value);
}

bool is_declared(std::string_view name, const Metric& metric, std::span<const MetricInfo> table) {
  return std::any_of(table.begin(), table.end(), [&](const MetricInfo& info) {
    return info.matches(name) && info.unit == metric.unit && info.better == metric.better &&
           info.per == metric.per && info.headline == metric.headline;
  });
}

Json to_json(const Record& record) {
  Json json = Json::object();
  json["schema"] = record.schema;
  json["id"] = record.id;
  json["started"] = record.started;
  json["command"] = record.command;
  json["argv"] = record.argv;
  json["label"] = Json::object();
  for (const auto& [key, value] : record.label) json["label"][key] = value;
  json["seed"] = record.seed;
  json["parameters"] = record.parameters;
  if (record.work) json["work"] = *record.work;
  json["tiers"] = record.tiers;
  json["cache"] = record.cache;
  json["corpus"] = record.corpus;
  json["environment"] = record.environment;
  json["metrics"] = Json::object();
  for (const auto& [name, metric] : record.metrics) json["metrics"][name] = metric_json(metric);
  json["series"] = Json::object();
  for (const auto& [name, series] : record.series)
    json["series"][name] = Json{{"interval_s", series.interval_s}, {"values", series.values}};
  if (!record.pair.empty()) json["pair"] = record.pair;
  json["verdict"] = verdict_name(record.verdict);
  json["reason"] = record.reason;
  return json;
}

Result<Record> record_from_json(const Json& json) {
  if (!json.is_object()) return make_error(Errc::corrupt, "not a record: no JSON object");
  Record record;
  PENSTOCK_TRY(read_identity(json, record));
  const Fields fields(json, "");
  PENSTOCK_ASSIGN(record.parameters, fields.object("parameters"));
  PENSTOCK_TRY(read_work_names(json, record));
  PENSTOCK_ASSIGN(record.tiers, fields.object("tiers"));
  PENSTOCK_ASSIGN(record.cache, fields.object("cache"));
  PENSTOCK_ASSIGN(record.corpus, fields.object("corpus"));
  PENSTOCK_ASSIGN(record.environment, fields.object("environment"));
  PENSTOCK_ASSIGN(record.pair, fields.object("pair"));
  PENSTOCK_TRY(read_measurements(json, record));
  return record;
}

std::string record_line(const Record& record) {
  return one_line(to_json(record));
}

Json calls_json(const TimesByCall& times) {
  Json json = Json::object();
  for (const auto& [call, of_call] : times) {
    const Histogram& ns = of_call.ns;
    json[std::string(timed_call_name(call))] = {
        {"count", ns.count()},         {"errors", of_call.errors},
        {"bytes", of_call.bytes},      {"total_s", ns.mean() * static_cast<double>(ns.count()) * 1e-9},
        {"ns_p50", ns.percentile(50)}, {"ns_p95", ns.percentile(95)},
        {"ns_p99", ns.percentile(99)}, {"ns_p999", ns.percentile(99.9)},
        {"ns_max", ns.max()}};
  }
  return json;
}

Json tier_json(const Tier& tier) {
  Json json = Json::object();
  json["name"] = tier.name;
  json["backend"] = tier.backend_name;
  json["root"] = tier.root;
  json["spec"] = tier.spec;
  json["fs_type"] = tier.facts.fs_type;
  json["device"] = tier.facts.device;
  json["mount_point"] = tier.facts.mount_point;
  json["mount_options"] = tier.facts.mount_options;
  json["striping"] = tier.facts.striping;
  json["network"] = tier.facts.network;
  json["memory"] = tier.facts.memory;
  if (const std::vector<std::string> remarks = tier.remarks(); !remarks.empty()) json["remarks"] = remarks;
  if (TimedCalls* const calls = tier.backend == nullptr ? nullptr : timed_calls(*tier.backend))
    json["calls"] = calls_json(calls->all());
  if (!tier.ceilings.empty()) {
    json["ceilings"] = Json::object();
    for (const Ceiling& ceiling : tier.ceilings) json["ceilings"][ceiling.what] = ceiling.bytes_per_s;
  }
  return json;
}

Json cache_json(const CacheState& cache) {
  Json json = Json::object();
  json["client_data"] = cache.client_data;
  json["client_metadata"] = cache.client_metadata;
  json["server"] = cache.server;
  json["host"] = cache.host;
  json["method"] = cache.method;
  if (cache.resident_fraction_before) json["resident_fraction_before"] = *cache.resident_fraction_before;
  if (cache.resident_fraction_after) json["resident_fraction_after"] = *cache.resident_fraction_after;
  if (cache.device_bytes_fraction) json["device_bytes_fraction"] = *cache.device_bytes_fraction;
  return json;
}

Json corpus_json(const CorpusFacts& corpus) {
  Json json = Json::object();
  json["recipe"] = corpus.recipe;
  json["format"] = corpus.format;
  json["samples"] = corpus.samples;
  json["bytes"] = corpus.bytes;
  json["checksum"] = corpus.checksum;
  json["over_ram"] = corpus.over_ram;
  return json;
}

}  // namespace penstock
