#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "results/record/records_testing.hpp"
#include "results/report/heat_map.hpp"
#include "results/report/page_testing.hpp"

namespace penstock::report {
namespace {

// The HTML of one section, up to the next section.
std::string section(const std::string& page, const std::string& id) {
  const size_t at = page.find("<section id=\"" + id + "\"");
  return at == std::string::npos ? "" : page.substr(at, page.find("</section>", at) - at);
}

TEST(RepeatRange, IsAnIntervalFromSixRepeatsOnAndElseTheFullRange) {
  const RepeatRange few = repeat_range({"B/s", Better::higher, "repeat", {3, 1, 2}});
  EXPECT_FALSE(few.is_interval);
  EXPECT_EQ(few.range.low, 1);
  EXPECT_EQ(few.range.high, 3);
  const RepeatRange many = repeat_range({"B/s", Better::higher, "repeat", {1, 2, 3, 4, 5, 6, 7, 8, 90}});
  EXPECT_TRUE(many.is_interval);
  EXPECT_EQ(many.range.low, 2);
  EXPECT_EQ(many.range.high, 8);
}

TEST(Sheet, QuotesFieldsThatWouldBreakALine) {
  EXPECT_EQ(csv_text({"", "", {"a", "b,c"}, {{"say \"x\"", "two\nlines"}, {"", "plain"}}}),
            "a,\"b,c\"\r\n\"say \"\"x\"\"\",\"two\nlines\"\r\n,plain\r\n");
  EXPECT_EQ(file_name_part("../Über 4 threads, \"cold\"/"), "ber-4-threads-cold");
  EXPECT_LE(file_name_part(std::string(500, 'x')).size(), 120U);
}

TEST(Sheet, LeavesNonFiniteNumbersEmpty) {
  Chart chart;
  chart.x_label = "seconds";
  chart.y_label = "MiB/s";
  chart.x = {0.5, 1};
  chart.series.push_back(
      {"a", 0, Stroke::solid, true, {std::numeric_limits<double>::infinity(), std::nullopt}, {}, {}});
  EXPECT_EQ(csv_text(chart_sheet(chart)), "seconds,a (MiB/s)\r\n0.5,\r\n1,\r\n");
}

TEST(Sheet, HasAFileNameWithoutNumberAndPathUnlessAnotherHasIt) {
  EXPECT_EQ(file_name_part("Saves of 64MiB, to /data/ck-b behind ./shm"),
            "saves-of-64mib-to-ck-b-behind-shm");
  EXPECT_EQ(file_name_part("alexnet: samples/s"), "alexnet-samples-s");
  Sheet first;
  first.name = sheet_name("Bandwidth, cold", {});
  EXPECT_EQ(first.name, "bandwidth-cold");
  EXPECT_EQ(sheet_name("Bandwidth, cold", std::span(&first, 1)), "bandwidth-cold-2");
  EXPECT_EQ(sheet_name("Bandwidth, warm", std::span(&first, 1)), "bandwidth-warm");
  EXPECT_EQ(sheet_name("Records", {}), "records-2") << "records.csv is the table of records";
  EXPECT_EQ(sheet_name("\xc3\x9c", {}), "table");
}

Record busy_record(int threads, int prefetch, double busy) {
  Record record = train_cell(prefetch, 1);
  record.id = std::to_string(threads) + "-" + std::to_string(prefetch);
  record.parameters["threads"] = threads;
  record.metrics["accelerator_utilization"] = {"1", Better::higher, "run", {busy}};
  return record;
}

TEST(HeatMap, HasItsNumbersInCellsThatLinkToTheirRecords) {
  const std::vector<Record> records{busy_record(1, 0, 0.31), busy_record(1, 4, 0.47), busy_record(4, 4, 0.96),
                                    busy_record(16, 4, 0.98)};
  const std::string page = page_of(records);
  EXPECT_TRUE(has(page, "class=\"number heat-3\"><a href=\"#record-1\">31%</a>"));
  EXPECT_TRUE(has(page, "class=\"number heat-9\"><a href=\"#record-4\">98%</a>"));
  EXPECT_TRUE(has(page, "class=\"number heat-none\">-<"));
  EXPECT_TRUE(has(section(page, "training"),
                  "16 threads with prefetch 4 reach AU 98%, the most that was measured for "
                  "alexnet on disk; 4 threads with prefetch 4 come within 5% of that (AU 96%)."));
}

TEST(HeatMap, ColoursNothingWithoutAScale) {
  const std::vector<Record> none;
  PageState state;
  state.first_record = none.data();
  const std::string html = heat_map_html(
      {"m", "rows", {"a", "b"}, {"1"}, {{{0.0, "0", nullptr}, {1e300, "huge", nullptr}}}, 0, "0", "0"},
      state);
  EXPECT_TRUE(has(html, "heat-0\">0<"));
  EXPECT_TRUE(has(html, "heat-0\">huge<"));
}

ComparedMetric compared_metric(const std::string& cell, GateOutcome outcome, double base, double candidate) {
  ComparedMetric row;
  row.cell = cell;
  row.metric = "samples_per_s";
  row.unit = "1/s";
  row.outcome = outcome;
  row.base = base;
  row.candidate = candidate;
  row.base_samples = row.candidate_samples = 20;
  row.change = candidate / base - 1;
  row.interval = Interval{*row.change - 0.02, *row.change + 0.02};
  row.p = 0.0012;
  return row;
}

TEST(Changes, AreDescribedDrawnAndListed) {
  NamedComparison one{"monday", "tuesday", {}};
  one.comparison.rows = {compared_metric("read <disk>, threads 4", GateOutcome::regression, 1000, 800),
                         compared_metric("read fast, threads 4", GateOutcome::better, 1000, 1300),
                         compared_metric("read fast, threads 8", GateOutcome::same, 1000, 1010)};
  one.comparison.rows[2].detectable = 0.07;
  one.comparison.remarks = {"unpaired: drift not excluded"};
  ComparedMetric gone;
  gone.cell = "train alexnet";
  gone.outcome = GateOutcome::missing;
  gone.base_samples = 5;
  one.comparison.rows.push_back(gone);
  const Page page = make_page(set_of({read_cell("disk", 1, "cold", 100)}), Output{}, "Title", {one});
  const std::string changes = section(page.html, "changes");
  for (const char* part :
       {"From monday to tuesday: 1 worse: samples_per_s \u221220% (read &lt;disk&gt;, threads 4); 1 better: "
        "samples_per_s "
        "+30% (read fast, threads 4); 1 missing: train alexnet; 1 without a difference that counts.",
        ">\u221222% to \u221218%<", "0.0012", "7% would have been found", "unpaired: drift not excluded",
        ">worse</span>", ">20, 20<", "href=\"#changes-1\"", "id=\"changes-1\""})
    EXPECT_TRUE(has(changes, part)) << part << "\n" << changes;
  bool listed = false;
  for (const Sheet& sheet : page.sheets)
    listed |= has(csv_text(sheet), "\"read <disk>, threads 4\",samples_per_s,1/s,regression,1000,800,");
  EXPECT_TRUE(listed);
  EXPECT_FALSE(has(page_of({read_cell("disk", 1, "cold", 100)}), "id=\"changes\""));
}

TEST(Changes, OfExtremeSizeBreakNothing) {
  NamedComparison one{"a", "b", {}};
  one.comparison.rows = {compared_metric("x", GateOutcome::regression, 1, 1)};
  one.comparison.rows[0].change = std::numeric_limits<double>::infinity();
  one.comparison.rows[0].interval = Interval{-1, std::numeric_limits<double>::infinity()};
  const std::string page = make_page(set_of({read_cell("disk", 1, "cold", 100)}), Output{}, "T", {one}).html;
  EXPECT_FALSE(has(section(page, "changes"), "nan%"));
}

TEST(Environment, ListsDifferencesWithTheirRecords) {
  std::vector<Record> records;
  for (int i = 0; i < 5; ++i) {
    Record record = read_cell("disk", i + 1, "cold", 100);
    record.environment =
        Json{{"host", "h"}, {"kernel", i == 3 ? "6.5" : "6.1"}, {"build", {{"type", "Release"}}}};
    record.tiers["data"] = Json{{"name", "disk"}, {"mount_options", i < 2 ? "rw" : "rw,noatime"}};
    records.push_back(record);
  }
  const std::string text = section(page_of(records), "environment");
  EXPECT_TRUE(has(text,
                  "2 facts differ between these records, which may explain different figures: kernel and "
                  "tier disk: mount "
                  "options."));
  EXPECT_TRUE(has(text, "<td>6.5</td><td><a href=\"#record-4\">4</a></td>"));
  EXPECT_TRUE(
      has(text, "<a href=\"#record-1\">1</a> to <a href=\"#record-3\">3</a>, <a href=\"#record-5\">5</a>"));
  EXPECT_TRUE(has(text, "<td>rw,noatime</td><td><a href=\"#record-3\">3</a> to <a href=\"#record-5\">5</a>"));
  for (Record& record : records) {
    record.environment["kernel"] = "6.1";
    record.tiers["data"]["mount_options"] = "rw";
  }
  EXPECT_TRUE(has(section(page_of(records), "environment"), "Nothing differs"));
}

TEST(Page, EveryLinkHasATargetOnThePage) {
  std::vector<Record> records{read_cell("disk", 4, "cold", 400),
                              read_cell("disk", 4, "warm", 900),
                              by_fio(4, 500),
                              of_ranks(1, {1, 1}),
                              of_ranks(2, {2, 2}),
                              busy_record(1, 0, 0.3),
                              busy_record(2, 4, 0.6),
                              saving_cell("direct", 0, {2}),
                              saving_cell("burst-buffer", 0, {1})};
  records.back().verdict = Verdict::degraded;
  const std::string page = page_of(records);
  const std::string link = "href=\"#";
  size_t links = 0;
  for (size_t at = page.find(link); at != std::string::npos; at = page.find(link, at + 1)) {
    const size_t from = at + link.size();
    const std::string id = page.substr(from, page.find('"', from) - from);
    EXPECT_TRUE(has(page, "id=\"" + id + "\"")) << id;
    ++links;
  }
  EXPECT_GT(links, 30U);
}

TEST(Page, FoldsPartsIfThereAreHundredsOfGroups) {
  std::vector<Record> records;
  for (int i = 0; i < 300; ++i) {
    Record record = read_cell("disk", 4, "cold", 100 + i);
    record.parameters["batch"] = i;
    records.push_back(record);
  }
  const std::string page = page_of(records);
  EXPECT_TRUE(has(page, "<h3 id=\"reading-4\">"));
  EXPECT_TRUE(has(page, "<details class=\"part\" id=\"reading-5\">"));
  EXPECT_TRUE(has(page, "<summary>Records 251 to 300</summary>"));
  EXPECT_TRUE(has(page, "id=\"record-300\""));
}

}  // namespace
}  // namespace penstock::report
