#include "results/record/record.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "io_backends/files/page_cache.hpp"
#include "results/record/environment.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

Record full_record() {
  Record record;
  record.id = "0123456789abcdef-0";
  record.started = "2026-11-20T09:30:00Z";
  record.command = "read";
  record.argv = {"penstock", "read", "corpora/imagenet"};
  record.label = {{"k", "v"}};
  record.seed = UINT64_MAX;
  record.parameters = Json{{"tier", "disk"}, {"threads", 4}};
  record.tiers["data"] = Json{{"name", "disk"}};
  record.cache = cache_json(CacheState{.client_data = "cold",
                                       .client_metadata = "cold",
                                       .server = "none",
                                       .host = "unknown",
                                       .method = "drop",
                                       .resident_fraction_before = 0.0,
                                       .device_bytes_fraction = 1.0});
  record.corpus = {{"recipe", "imagenet"}, {"format", "files"}, {"samples", 16384},
                   {"bytes", 1900000000},  {"checksum", "abc"}, {"over_ram", 0.08}};
  record.environment = Json{{"host", "h"}, {"cgroup", Json::object()}};
  record.metrics["payload_bytes_per_s"] = {"B/s", Better::higher, "repeat", {1.0e9, 0.98e9}};
  record.metrics["samples_per_s"] = {"1/s", Better::higher, "repeat", {5}, kHeadline};
  record.metrics["input_wait_s"] = {"s", Better::lower, "step", {0.5}};
  record.metrics["errors"] = {"1", Better::neither, "run", {0}};
  record.series["payload_bytes"] = {1.0, {10, 20}};
  record.pair = Json{{"suite", "s"}, {"index", 3}, {"arm", "base"}};
  record.verdict = Verdict::short_time;
  record.reason = "1.2 s of 2 s";
  return record;
}

TEST(Series, AddsUpToTheRunAndHasNoIntervalThatIsTooShort) {
  Series series;
  series.append_seconds(std::vector<double>{80, 82, 7}, 2.09);
  series.append_seconds(std::vector<double>{30}, 0.4);
  series.append_seconds(std::vector<double>{10, 10, 1}, 1.995);  // a sample that ended late
  series.append_seconds(std::vector<double>{50}, 3.5);           // then it stalled
  EXPECT_EQ(series.values, (std::vector<double>{80, 89, 30, 10, 11, 50, 0, 0}));
  double length_s = 0;
  for (const double one : series.lengths_s) length_s += one;
  EXPECT_DOUBLE_EQ(length_s, 2.09 + 0.4 + 1.995 + 3.5);
  const std::vector<double> rates = series.rates();
  EXPECT_DOUBLE_EQ(rates[1], 89 / 1.09);
  EXPECT_DOUBLE_EQ(rates[2], 75);
  EXPECT_DOUBLE_EQ(series.ends_s()[2], 2.49);
}

TEST(Series, OfAnEarlierVersionLeavesItsLastIntervalOut) {
  const Series series{2.0, {80, 82, 7}};
  EXPECT_EQ(series.rates(), (std::vector<double>{40, 41}));
  EXPECT_EQ(series.ends_s(), (std::vector<double>{2, 4}));
  EXPECT_TRUE(Series{}.rates().empty());
}

// The field names that docs/reference/records.md documents, as one text. If a field is renamed, this test fails first.
TEST(Record, HasExactlyTheDocumentedFields) {
  const Json json = to_json(full_record());
  std::string names;
  for (const auto& [name, value] : json.items()) names += name + " ";
  EXPECT_EQ(
      names,
      "schema id started command argv label seed parameters tiers cache corpus environment metrics series "
      "pair verdict reason ");
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["verdict"], "short");
  const Json& metric = json["metrics"]["payload_bytes_per_s"];
  EXPECT_EQ(
      metric.dump(),
      R"({"value":990000000.0,"unit":"B/s","better":"higher","per":"repeat","samples":[1000000000.0,980000000.0]})");
  EXPECT_EQ(json["metrics"]["samples_per_s"]["headline"], true);
  EXPECT_EQ(json["metrics"]["input_wait_s"]["better"], "lower");
  EXPECT_EQ(json["metrics"]["errors"]["better"], "neither");
  EXPECT_EQ(json["series"]["payload_bytes"].dump(), R"({"interval_s":1.0,"values":[10.0,20.0]})");
  EXPECT_EQ(json["cache"]["resident_fraction_before"], 0.0);
  EXPECT_FALSE(json["cache"].contains("resident_fraction_after"));
  EXPECT_EQ(json["corpus"]["over_ram"], 0.08);
}

TEST(Record, SurvivesTheRoundTripThroughText) {
  const std::string line = record_line(full_record());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto back = record_from_json(Json::parse(line));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(record_line(*back), line);
  EXPECT_EQ(back->seed, UINT64_MAX);
  EXPECT_EQ(back->verdict, Verdict::short_time);
  EXPECT_TRUE(back->metrics.at("samples_per_s").headline);
  EXPECT_FALSE(back->metrics.at("errors").headline) << "without the member";
}

TEST(Record, OmitsPairIfArmsWereNotInterleaved) {
  Record record = full_record();
  record.pair = Json::object();
  EXPECT_FALSE(to_json(record).contains("pair"));
}

TEST(Record, WritesNonFiniteNumbersAsNullAndReadsThemBack) {
  Record record = full_record();
  record.metrics["m"] = {"s", Better::lower, "run", {std::nan(""), std::numeric_limits<double>::infinity()}};
  const std::string line = record_line(record);
  EXPECT_EQ(Json::parse(line)["metrics"]["m"].dump(),
            R"({"value":null,"unit":"s","better":"lower","per":"run","samples":[null,null]})");
  const auto back = record_from_json(Json::parse(line));
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(std::isnan(back->metrics.at("m").samples[0]));
}

TEST(Record, IsUtf8EvenWhenAFileNameIsNot) {
  Record record = full_record();
  record.reason = "cannot open 'n\xff.jpg'";
  EXPECT_TRUE(Json::try_parse(record_line(record)).has_value());
}

TEST(Record, NamesTheFieldThatIsWrong) {
  const auto error_after = [](const char* path, Json value) {
    Json json = to_json(full_record());
    Json* at = &json;
    std::istringstream names(path);
    for (std::string name; std::getline(names, name, '/');) at = &(*at)[name];
    *at = std::move(value);
    const auto back = record_from_json(json);
    return back.ok() ? std::string("fine") : back.error().message();
  };
  EXPECT_NE(error_after("started", 3).find("'started'"), std::string::npos);
  EXPECT_NE(error_after("argv", Json::array({1})).find("'argv'"), std::string::npos);
  EXPECT_NE(error_after("label", Json{{"k", 1}}).find("'label.k'"), std::string::npos);
  EXPECT_NE(error_after("seed", -1).find("'seed'"), std::string::npos);
  EXPECT_NE(error_after("seed", 1.5).find("'seed'"), std::string::npos);
  EXPECT_NE(error_after("tiers", 7).find("'tiers'"), std::string::npos);
  EXPECT_NE(error_after("metrics/errors/samples", "x").find("'metrics.errors.samples'"), std::string::npos);
  EXPECT_NE(error_after("metrics/errors/better", "up").find("'metrics.errors.better'"), std::string::npos);
  EXPECT_NE(error_after("series/payload_bytes", 1).find("'series.payload_bytes'"), std::string::npos);
  EXPECT_NE(error_after("verdict", "fine").find("unknown verdict 'fine'"), std::string::npos);
  EXPECT_NE(error_after("schema", 2).find("schema 2"), std::string::npos);
  EXPECT_NE(error_after("schema", 1e300).find("'schema'"), std::string::npos);
  EXPECT_FALSE(record_from_json(Json::array()).ok());
}

TEST(Verdict, NamesRoundTripAndHaveTheDocumentedExitCodes) {
  const std::pair<const char*, int> expected[] = {
      {"ok", 0},          {"short", 0},    {"degraded", 0},    {"client_bound", 0}, {"ceiling_invalid", 0},
      {"not_warm", 1},    {"not_cold", 1}, {"wrong_bytes", 1}, {"timed_out", 1},    {"failed", 1},
      {"interrupted", 1}, {"skipped", 77},
  };
  for (const auto& [name, code] : expected) {
    const auto verdict = parse_verdict(name);
    ASSERT_TRUE(verdict.ok()) << name;
    EXPECT_EQ(verdict_name(*verdict), name);
    EXPECT_EQ(verdict_exit_code(*verdict), code) << name;
  }
}

}  // namespace
}  // namespace penstock
