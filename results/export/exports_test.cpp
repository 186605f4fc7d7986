// Tests of export_csv, export_ci and open_metrics.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "results/export/export_ci.hpp"
#include "results/export/export_csv.hpp"
#include "results/export/open_metrics.hpp"
#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

RecordSet exported_set(const std::vector<Record>& records) {
  RecordSet set;
  for (const Record& record : records)
    set.records.push_back({record, "runs/x.jsonl", set.records.size() + 1});
  return set;
}

using Rows = std::vector<std::map<std::string, std::string>>;  // of each row: heading -> field

// Parses CSV that has no quoted fields.
Rows rows_of(const std::string& csv) {
  std::vector<std::vector<std::string>> lines;
  for (size_t at = 0; at < csv.size();) {
    const size_t end = csv.find("\r\n", at);
    std::vector<std::string>& fields = lines.emplace_back();
    std::string_view line(csv.data() + at, end - at);
    for (size_t comma = line.find(','); comma != std::string_view::npos; comma = line.find(',')) {
      fields.emplace_back(line.substr(0, comma));
      line.remove_prefix(comma + 1);
    }
    fields.emplace_back(line);
    at = end + 2;
  }
  Rows rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].size(), lines[0].size());
    auto& row = rows.emplace_back();
    for (size_t field = 0; field < lines[0].size(); ++field) row[lines[0][field]] = lines[i][field];
    EXPECT_EQ(row.size(), lines[0].size()) << "no heading occurs twice";
  }
  return rows;
}

Rows record_rows(const std::vector<Record>& records) {
  const RecordSet set = exported_set(records);
  return rows_of(records_csv(set, ExportedMetrics(set, known_commands())));
}

Rows repeat_rows(const std::vector<Record>& records) {
  const RecordSet set = exported_set(records);
  return rows_of(repeats_csv(set, ExportedMetrics(set, known_commands())));
}

Json bencher(const std::vector<Record>& records) {
  const RecordSet set = exported_set(records);
  return Json::parse(bencher_json(set, ExportedMetrics(set, known_commands())));
}

std::string github(const std::vector<Record>& records, Better better) {
  const RecordSet set = exported_set(records);
  return github_json(set, ExportedMetrics(set, known_commands()), better);
}

std::string open_metrics(const std::vector<Record>& records) {
  const RecordSet set = exported_set(records);
  return open_metrics_text(set, ExportedMetrics(set, known_commands()));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Record failed_cell() {
  Record record = read_cell("disk", 1, "cold", 1);
  record.metrics.clear();
  record.verdict = Verdict::failed;
  record.reason = "no file";
  return record;
}

TEST(ExportCsv, EachRecordHasARowWithWorkAndHeadlines) {
  Record labelled = with_rates(read_cell("fast", 4, "warm", 1), {3, 1, 2});
  labelled.label["kernel"] = "6.1";
  labelled.environment["versions"] = Json{{"penstock", "0.1.0"}};
  labelled.metrics["errors"] = {"1", Better::lower, "run", {0}};
  labelled.metrics["wall_s"] = {"s", Better::neither, "repeat", {1, 1, 1}};
  const Rows rows = record_rows({failed_cell(), labelled});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("verdict"), "failed");
  EXPECT_EQ(rows[0].at("reason"), "no file");
  EXPECT_EQ(rows[0].at("payload_bytes_per_s_median"), "");
  const auto& row = rows[1];
  for (const auto& [heading, field] : std::map<std::string, std::string>{{"record", "fastwarm4"},
                                                                         {"command", "read"},
                                                                         {"tier", "fast"},
                                                                         {"threads", "4"},
                                                                         {"cache", "warm"},
                                                                         {"cache_state", "warm"},
                                                                         {"host", "h"},
                                                                         {"version", "0.1.0"},
                                                                         {"verdict", "ok"},
                                                                         {"label_kernel", "6.1"},
                                                                         {"corpus", "imagenet"},
                                                                         {"started", "2026-11-20T09:30:00Z"},
                                                                         {"line", "2"},
                                                                         {"file", "runs/x.jsonl"},
                                                                         {"errors_median", "0"}})
    EXPECT_EQ(row.at(heading), field) << heading;
  EXPECT_EQ(row.at("payload_bytes_per_s_median"), "2097152");
  EXPECT_EQ(row.at("payload_bytes_per_s_low"), "1048576");
  EXPECT_EQ(row.at("payload_bytes_per_s_high"), "3145728");
  EXPECT_EQ(row.at("payload_bytes_per_s_range"), "lowest to highest");
  EXPECT_EQ(row.at("payload_bytes_per_s_n"), "3");
  EXPECT_EQ(row.at("payload_bytes_per_s_unit"), "B/s");
  EXPECT_EQ(row.at("samples_per_s_n"), "1") << "a throughput is listed, too";
  EXPECT_FALSE(row.contains("wall_s_median")) << "it is no headline";
  for (const auto& [heading, field] : row) {
    EXPECT_FALSE(contains(heading, "fast"));
    EXPECT_FALSE(contains(heading, "disk"));
  }
}

TEST(ExportCsv, AColumnMeansTheSameWhateverElseIsInTheTable) {
  const Rows alone = record_rows({read_cell("disk", 1, "cold", 100)});
  Record other = train_cell(4, 1.5);
  other.parameters["host"] = "an option of another version";
  const Rows both = record_rows({read_cell("disk", 1, "cold", 100), other, saving_cell("direct", 0, {2, 3})});
  for (const auto& [heading, field] : alone[0]) EXPECT_EQ(both[0].at(heading), field) << heading;
  EXPECT_EQ(both[1].at("parameter_host"), "an option of another version");
  EXPECT_EQ(both[1].at("host"), "");
  EXPECT_EQ(both[2].at("tier"), "disk");
  EXPECT_EQ(both[2].at("pair_arm"), "direct");
}

TEST(ExportCsv, EachSampleOfAHeadlineHasARow) {
  Record record = with_rates(read_cell("disk", 2, "cold", 1), {3, 1});
  record.metrics["payload_bytes_per_s"].samples.push_back(std::nan(""));
  const Rows rows = repeat_rows({record, failed_cell()});
  ASSERT_EQ(rows.size(), 4U) << "three of the rate, one of the samples per second";
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i].at("metric"), "payload_bytes_per_s");
    EXPECT_EQ(rows[i].at("index"), std::to_string(i));
    EXPECT_EQ(rows[i].at("record"), "diskcold2");
    EXPECT_EQ(rows[i].at("threads"), "2");
    EXPECT_EQ(rows[i].at("tier"), "disk");
    EXPECT_EQ(rows[i].at("unit"), "B/s");
  }
  EXPECT_EQ(rows[0].at("value"), "3145728");
  EXPECT_EQ(rows[1].at("value"), "1048576");
  EXPECT_EQ(rows[2].at("value"), "") << "not a number";
}

TEST(ExportBencher, HasTheMedianAndRangeOfEachHeadline) {
  Record record = with_rates(read_cell("disk", 4, "cold", 1), {1, 3, 2});
  record.metrics["errors"] = {"1", Better::lower, "run", {0}};
  const Json json = bencher({record, failed_cell()});
  ASSERT_EQ(json.size(), 1U);
  const Json& measures = json.at("read/disk/threads:4/cache:cold/order:shuffled");
  EXPECT_EQ(measures.size(), 2U);
  EXPECT_EQ(measures.at("payload_bytes_per_s").at("value"), 2097152.0);
  EXPECT_EQ(measures.at("payload_bytes_per_s").at("lower_value"), 1048576.0);
  EXPECT_EQ(measures.at("payload_bytes_per_s").at("upper_value"), 3145728.0);
  EXPECT_EQ(measures.at("errors"), (Json{{"value", 0.0}}));
}

TEST(ExportBencher, JoinsRunsOfACellAndKeepsOtherCorporaApart) {
  Record other = read_cell("disk", 1, "cold", 7);
  other.corpus["checksum"] = "other";
  const Json json = bencher({read_cell("disk", 1, "cold", 1), read_cell("disk", 1, "cold", 3), other});
  ASSERT_EQ(json.size(), 2U);
  const std::string name = "read/disk/threads:1/cache:cold/order:shuffled/corpus.checksum:";
  EXPECT_EQ(json.at(name + "abc").at("payload_bytes_per_s").at("value"), 2097152.0);
  EXPECT_EQ(json.at(name + "other").at("payload_bytes_per_s").at("value"), 7 * 1048576.0);
}

TEST(ExportGitHub, PutsEachDirectionIntoAFileOfItsOwn) {
  Record record = with_rates(read_cell("disk", 4, "cold", 1), {1, 3, 2});
  record.metrics["errors"] = {"1", Better::lower, "run", {5}};
  record.metrics["calls.pread"] = {"1", Better::neither, "repeat", {5}};
  const Json bigger = Json::parse(github({record, failed_cell()}, Better::higher));
  const Json smaller = Json::parse(github({record, failed_cell()}, Better::lower));
  ASSERT_EQ(bigger.size(), 1U);
  ASSERT_EQ(smaller.size(), 1U);
  EXPECT_EQ(bigger.at(size_t{0}).at("name"),
            "read/disk/threads:4/cache:cold/order:shuffled/payload_bytes_per_s");
  EXPECT_EQ(bigger.at(size_t{0}).at("unit"), "B/s");
  EXPECT_EQ(bigger.at(size_t{0}).at("value"), 2097152.0);
  EXPECT_EQ(bigger.at(size_t{0}).at("range"), "1048576 to 3145728");
  EXPECT_EQ(smaller.at(size_t{0}).at("value"), 5.0);
  EXPECT_FALSE(smaller.at(size_t{0}).contains("range"));
  EXPECT_EQ(github({failed_cell()}, Better::higher), "");
}

TEST(OpenMetrics, WritesGaugesWithTimesInOrder) {
  Record later = with_rates(read_cell("disk", 4, "cold", 1), {2});
  later.started = "2026-11-20T09:31:00Z";
  const std::string text = open_metrics({later, with_rates(read_cell("disk", 4, "cold", 1), {1, 3})});
  const std::string labels =
      R"({command="read",tier="disk",host="h",corpus="imagenet",threads="4",cache="cold",order="shuffled"})";
  EXPECT_TRUE(contains(text, "# TYPE penstock_result_payload_bytes_per_s gauge\n"));
  EXPECT_TRUE(contains(text, "penstock_result_payload_bytes_per_s" + labels + " 2097152 1795167000\n" +
                                 "penstock_result_payload_bytes_per_s" + labels + " 2097152 1795167060\n"));
  EXPECT_TRUE(contains(text, "penstock_result_payload_bytes_per_s_high" + labels + " 3145728 1795167000\n"));
  EXPECT_TRUE(contains(text, "penstock_result_usable" + labels + " 1 1795167000\n"));
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
}

TEST(OpenMetrics, HasNoFiguresOfAFailedRecord) {
  Record failed = read_cell("disk", 4, "cold", 1);
  failed.verdict = Verdict::failed;
  const std::string text = open_metrics({failed});
  EXPECT_FALSE(contains(text, "payload"));
  EXPECT_TRUE(contains(text, "order=\"shuffled\"} 0 1795167000\n"));
}

TEST(OpenMetrics, EscapesWhatARecordContains) {
  Record record = read_cell("a\"b\\c\nd\xff", 1, "cold", 1);
  record.started = "yesterday";
  record.label = {{"a.b", "1"}, {"a_b", "2"}};
  const std::string text = open_metrics({record, record});
  EXPECT_TRUE(contains(text, R"(tier="a\"b\\c\nd)"
                             "\xEF\xBF\xBD\""));
  EXPECT_TRUE(contains(text, R"(label_a_b="1",label_a_b_="2",started="unknown"} 1)"
                             "\n"));
  EXPECT_EQ(open_metrics_name("9.a-b"), "_9_a_b");
  EXPECT_EQ(open_metrics_name(""), "_");
  std::string sample;
  add_open_metrics_sample(sample, "x", {}, -INFINITY);
  add_open_metrics_sample(sample, "x", {}, std::nan(""), 5);
  EXPECT_EQ(sample, "x -Inf\nx NaN 5\n");
}

}  // namespace
}  // namespace penstock
