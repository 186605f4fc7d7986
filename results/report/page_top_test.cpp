// Tests of the first screen of the page: title, hardware, the three sentences, findings, and all tiers side
// by side.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/cells/cells.hpp"
#include "results/record/records_testing.hpp"
#include "results/report/html.hpp"
#include "results/report/page_testing.hpp"

namespace penstock::report {
namespace {

std::string part_of(const std::string& page, const std::string& from, const std::string& to) {
  const size_t at = page.find(from);
  return at == std::string::npos ? "" : page.substr(at, page.find(to, at) - at);
}

size_t count_in(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Page page_with(const std::vector<Record>& records, const std::vector<NamedComparison>& comparisons = {}) {
  return make_page(set_of(records), Output{}, "", comparisons);
}

std::string title_of(const std::vector<Record>& records) {
  const std::string heading = part_of(page_with(records).html, "<h1>", "</h1>");
  return heading.empty() ? heading : heading.substr(4);
}

TEST(PageTop, TitleNamesWhatWasMeasuredAndWhere) {
  EXPECT_EQ(title_of({read_cell("disk", 1, "cold", 100), read_cell("fast", 1, "cold", 200)}),
            "Reading: disk and fast");
  EXPECT_EQ(title_of({saving_cell("direct", 0, {2}), saving_cell("burst-buffer", 0, {1})}),
            "Checkpoints: disk and shm");
  EXPECT_EQ(title_of({read_cell("disk", 1, "cold", 100), train_cell(4, 1)}), "Reading and training: disk");
  Record unknown = read_cell("disk", 1, "cold", 100);
  unknown.command = "frobnicate";
  EXPECT_EQ(title_of({unknown}), "Frobnicate: disk");
}

TEST(PageTop, HardwareIsOneLine) {
  Record record = read_cell("disk", 1, "cold", 100);
  record.environment = Json{{"host", "a"},
                            {"cpu", "Some Xeon"},
                            {"cpu_count", 8},
                            {"memory_bytes", 17179869184U},
                            {"kernel", "Linux 6.1"}};
  record.tiers["data"] = Json{{"name", "disk"}, {"fs_type", "ext4"}, {"device", "/dev/vda1"}};
  record.corpus["over_ram"] = 1.5;
  Record other = record;
  other.environment["host"] = "b";
  EXPECT_TRUE(
      has(page_with({record, other}).html,
          "a and b (each): 8 processors (Some Xeon), 16 GiB RAM, Linux 6.1; disk: ext4 on /dev/vda1; data "
          "are 150% of the RAM"))
      << part_of(page_with({record, other}).html, "<h1>", "<nav");
}

TEST(PageTop, AtMostEightFindingsTheFirstOfEachKindFirst) {
  std::vector<Sentence> all;
  for (int i = 0; i < 20; ++i) all.push_back({Tone::finding, "a", "a" + std::to_string(i)});
  for (int i = 0; i < 3; ++i) all.push_back({Tone::finding, "b", "b" + std::to_string(i)});
  all.push_back({Tone::caution, "c", "c"});
  const auto leading = leading_sentences(all, Tone::finding, 8);
  ASSERT_EQ(leading.size(), 8U);
  EXPECT_EQ(leading[4]->text, "a4");
  EXPECT_EQ(leading[5]->text, "b0");
  EXPECT_EQ(leading[7]->text, "b2");
  all[0].is_secondary = true;
  EXPECT_EQ(leading_sentences(all, Tone::finding, 8)[0]->text, "a1");
}

TEST(PageTop, FindingsAreOfTheBestOptions) {
  std::vector<Record> records;
  for (int i = 0; i < 30; ++i) {
    records.push_back(with_rates(read_cell("disk", 1, "cold", 1), {100.0 + i, 100.0 + i}));
    records.push_back(with_rates(read_cell("disk", 4, "cold", 1), {200.0 + i, 200.0 + i}));
    for (size_t k = records.size() - 2; k < records.size(); ++k) {
      records[k].parameters["batch"] = i;
      records[k].metrics["ceiling_bytes_per_s"] = {"B/s", Better::neither, "run", {300 * 1048576.0}};
    }
  }
  const std::string page = page_with(records).html;
  const std::string findings = part_of(page, "<div class=\"sentences finding\">", "<details");
  EXPECT_EQ(count_in(findings, "of its ceiling"), 1U) << findings;
  EXPECT_TRUE(has(findings, "batch 29")) << findings;
  EXPECT_LE(count_in(findings, "<li>"), 8U);
  EXPECT_TRUE(has(page, "batch 28"));
}

TEST(PageTop, SentencesAreNeverRepeated) {
  std::vector<Record> records;
  for (const char* const sweep : {"base", "other"})
    for (const int ranks : {1, 2}) {
      records.push_back(with_rates(of_ranks(ranks, {1}), {100, 150}));
      records.back().label["sweep"] = sweep;
    }
  std::vector<std::string> labels;
  for (const Sentence& sentence : sentences(records, {}))
    if (sentence.kind == "labels") labels.push_back(sentence.text);
  ASSERT_EQ(labels.size(), 2U);
  EXPECT_NE(labels[0], labels[1]);
  EXPECT_TRUE(has(labels[0] + labels[1], "ranks 2"));
}

TEST(PageTop, ARegressionComesFirst) {
  NamedComparison one{"monday", "tuesday", {}};
  ComparedMetric row;
  row.cell = "read <disk>, threads 4";
  row.metric = "payload_bytes_per_s";
  row.unit = "B/s";
  row.outcome = GateOutcome::regression;
  row.base = 100 * 1048576.0;
  row.candidate = 75 * 1048576.0;
  row.base_samples = row.candidate_samples = 9;
  row.change = -0.25;
  row.interval = Interval{-0.27, -0.23};
  one.comparison.rows = {row};
  const Page page = page_with({read_cell("disk", 4, "cold", 75)}, {one});
  ASSERT_EQ(page.bottom_line.size(), 3U);
  EXPECT_EQ(
      page.bottom_line[0],
      "tuesday is worse than monday in 1 metric: payload_bytes_per_s \u221225% (read <disk>, threads 4).");
  EXPECT_TRUE(has(page.bottom_line[1], "from 100.0 MiB/s to 75.0 MiB/s"));
  EXPECT_EQ(page.sentences[0].kind, "regression");
  EXPECT_TRUE(has(page.html, "<h1>Reading: tuesday against monday</h1>"));
  one.comparison.rows[0].outcome = GateOutcome::same;
  EXPECT_TRUE(has(page_with({read_cell("disk", 4, "cold", 75)}, {one}).bottom_line[0], "disk"));
}

TEST(PageTop, SaysWhatToRunWithoutAnyFigure) {
  Record failed = read_cell("disk", 1, "cold", 100);
  failed.verdict = Verdict::failed;
  failed.reason = "cannot open 'a'";
  const auto lines = page_with({failed}).bottom_line;
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(has(lines[1], "cannot open 'a'"));
  Record other = read_cell("disk", 1, "cold", 100);
  other.command = "verify";
  EXPECT_TRUE(has(page_with({other}).bottom_line[2], "penstock read"));
}

TEST(PageTop, TiersAreSideBySide) {
  const std::string page = page_with({read_cell("disk", 1, "cold", 100), read_cell("disk", 8, "cold", 300),
                                      read_cell("fast", 1, "cold", 900)})
                               .html;
  const std::string section = part_of(page, "<section id=\"tiers\"", "</section>");
  EXPECT_TRUE(has(section,
                  "reads, cold, MiB/s</th><td class=\"number\"><a href=\"#record-2\">300.0</a></td><td "
                  "class=\"number\"><a href=\"#record-3\">900.0</a>"))
      << section;
  EXPECT_FALSE(has(page_with({read_cell("disk", 1, "cold", 100)}).html, "id=\"tiers\""));
}

TEST(HtmlTable, LeavesOutEmptyColumns) {
  HtmlTable table("t", {{"name"}, {"empty"}, {"dashes"}, {"some"}});
  table.row(std::vector<std::string>{"a", "", "-", "-"});
  table.row(std::vector<std::string>{"b", "", "-", "1"});
  const std::string html = table.html();
  EXPECT_FALSE(has(html, "empty"));
  EXPECT_FALSE(has(html, "dashes"));
  EXPECT_TRUE(has(html, "some"));
  EXPECT_EQ(count_in(html, "<td"), 2U);
}

TEST(CorpusName, OfAScanIsItsFolder) {
  Record record = read_cell("disk", 1, "cold", 100);
  EXPECT_EQ(corpus_name(record), "imagenet");
  record.corpus["recipe"] = "scan";
  EXPECT_EQ(corpus_name(record), "data");
  record.tiers["data"]["root"] = "/mnt/photos 2026/";
  EXPECT_EQ(corpus_name(record), "photos 2026");
}

}  // namespace
}  // namespace penstock::report
