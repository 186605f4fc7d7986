#include "results/record/record.hpp"

#include <algorithm>
#include <cmath>

#include "results/record/statistics.hpp"

namespace penstock {
namespace {

// In the order of Verdict.
constexpr std::string_view kVerdictNames[] = {"ok",        "short",    "client_bound", "ceiling_invalid",
                                              "degraded",  "not_warm", "not_cold",     "wrong_bytes",
                                              "timed_out", "failed",   "skipped",      "interrupted"};

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

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  return kVerdictNames[static_cast<std::size_t>(verdict)];
}

int verdict_exit_code(Verdict verdict) {
  if (verdict <= Verdict::degraded) return 0;  // the record has a number
  return verdict == Verdict::skipped ? 77 : 1;
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
  Json json{{"schema", record.schema},
            {"id", record.id},
            {"started", record.started},
            {"command", record.command},
            {"argv", record.argv}};
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

std::string record_line(const Record& record) {
  return one_line(to_json(record));
}

}  // namespace penstock
