#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "results/record/records_testing.hpp"
#include "results/report/heat_map.hpp"
#include "results/report/page.hpp"
#include "results/report/waterfall.hpp"

namespace penstock::report {
namespace {

constexpr double kMiB = 1048576;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

RecordSet set_of(const std::vector<Record>& records) {
  RecordSet set;
  for (const Record& record : records)
    set.records.push_back({record, "runs/x.jsonl", set.records.size() + 1});
  return set;
}

std::string page_of(const std::vector<Record>& records) {
  return make_page(set_of(records), Output{}, "Title").html;
}

// What stands between the tags of the section, to the next one.
std::string section(const std::string& page, const std::string& id) {
  const std::size_t at = page.find("<section id=\"" + id + "\"");
  return at == std::string::npos ? "" : page.substr(at, page.find("</section>", at) - at);
}

Record with_rates(Record record, std::vector<double> mib_per_s) {
  for (double& rate : mib_per_s) rate *= kMiB;
  record.metrics["payload_bytes_per_s"].samples = std::move(mib_per_s);
  return record;
}

Record of_ranks(int ranks, std::vector<double> mib_per_s) {
  Record record = with_rates(read_cell("pfs", 2, "cold", 1), std::move(mib_per_s));
  record.parameters["ranks"] = ranks;
  record.environment["ranks"] = Json::array();
  for (int rank = 0; rank < ranks; ++rank)
    record.environment["ranks"].push_back(Json{{"rank", rank}, {"host", rank % 2 == 0 ? "a" : "b"}});
  return record;
}

Record by_fio(int threads, double mib_per_s) {
  Record record;
  record.id = "fio-" + std::to_string(threads);
  record.command = "fio";
  record.label["peer"] = "fio-3.33";
  record.parameters = Json{{"tier", "disk"}, {"threads", threads}, {"rw", "randread"},    {"block", 131072},
                           {"depth", 8},     {"direct", 1},        {"ioengine", "libaio"}};
  record.metrics["payload_bytes_per_s"] = {"B/s", Better::higher, "run", {mib_per_s * kMiB}};
  record.metrics["ops_per_s"] = {"1/s", Better::higher, "run", {mib_per_s * 8}};
  record.metrics["latency_ns_p99"] = {"ns", Better::lower, "run", {2.5e6}};
  return record;
}

TEST(Band, CoversTheMedianFromSixRepeatsOnAndElseAllRepeats) {
  const Band few = band_of({"B/s", Better::higher, "repeat", {3, 1, 2}});
  EXPECT_FALSE(few.sure);
  EXPECT_EQ(few.range.low, 1);
  EXPECT_EQ(few.range.high, 3);
  const Band many = band_of({"B/s", Better::higher, "repeat", {1, 2, 3, 4, 5, 6, 7, 8, 90}});
  EXPECT_TRUE(many.sure);
  EXPECT_EQ(many.range.low, 2);
  EXPECT_EQ(many.range.high, 8);
}

TEST(Band, IsDrawnWrittenAndListed) {
  const std::vector<Record> records{
      with_rates(read_cell("disk", 1, "cold", 1), {100, 101, 102, 103, 104, 105}),
      with_rates(read_cell("disk", 2, "cold", 1), {190, 200, 210})};
  std::vector<std::string> tiers;
  const Chart chart = bandwidth_chart(read_groups(records)[0], {}, tiers, Output{});
  EXPECT_EQ(chart.series.at(0).sure, (std::vector<bool>{true, false}));
  EXPECT_EQ(chart_json(chart)["series"][0]["sure"].dump(), "[true,false]");
  const std::string csv = csv_text(chart_sheet(chart));
  EXPECT_EQ(csv,
            "threads,disk (MiB/s),disk: low,disk: high,disk: range\r\n"
            "1,102.5,100,105,95% of the median\r\n"
            "2,200,190,210,lowest to highest\r\n");
  EXPECT_TRUE(has(page_of(records), "100.0 to 105.0"));
}

TEST(Sheet, QuotesWhatWouldBreakALine) {
  EXPECT_EQ(csv_text({"", "", {"a", "b,c"}, {{"say \"x\"", "two\nlines"}, {"", "plain"}}}),
            "a,\"b,c\"\r\n\"say \"\"x\"\"\",\"two\nlines\"\r\n,plain\r\n");
  EXPECT_EQ(file_text("../Über 4 threads, \"cold\"/"), "ber-4-threads-cold");
  EXPECT_LE(file_text(std::string(500, 'x')).size(), 60U);
}

TEST(Sheet, HoldsNoNumberThatIsNone) {
  Chart chart;
  chart.x_label = "seconds";
  chart.y_label = "MiB/s";
  chart.x = {0.5, 1};
  chart.series.push_back(
      {"a", 0, Stroke::solid, true, {std::numeric_limits<double>::infinity(), std::nullopt}, {}, {}});
  EXPECT_EQ(csv_text(chart_sheet(chart)), "seconds,a (MiB/s)\r\n0.5,\r\n1,\r\n");
}

TEST(Ranks, HaveAChartATableAndASentence) {
  const std::vector<Record> records{of_ranks(1, {100, 101, 99}), of_ranks(2, {195, 200, 201}),
                                    of_ranks(4, {204, 205, 206})};
  const auto groups = rank_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  const Chart chart = ranks_chart(groups[0], Output{});
  EXPECT_EQ(chart.x, (std::vector<double>{1, 2, 4}));
  ASSERT_EQ(chart.series.size(), 1U);
  EXPECT_EQ(chart.series[0].label, "pfs, 2 threads a rank");
  const std::string page = page_of(records);
  EXPECT_TRUE(
      has(section(page, "ranks"), "pfs, 2 threads a rank stops scaling at 2 ranks, 2.00x of 1 rank (cold)."));
  EXPECT_TRUE(has(section(page, "ranks"), "2.05x"));
  EXPECT_EQ(node_count(records[0]), 1U);
  EXPECT_EQ(node_count(records[2]), 2U);
  EXPECT_TRUE(rank_groups(std::vector<Record>{records[0]}).empty());
  EXPECT_FALSE(has(page_of({records[0]}), "id=\"ranks\""));
}

TEST(Ranks, WithinTheSpreadSayNothing) {
  const std::string page = page_of({of_ranks(1, {100, 150, 50}), of_ranks(2, {130, 120, 125})});
  EXPECT_TRUE(has(section(page, "ranks"), "bring nothing to pfs, 2 threads a rank that can be told"));
}

TEST(Peers, AreNextToTheTierOfTheSameNameAndInATable) {
  const std::vector<Record> records{read_cell("disk", 4, "cold", 400), read_cell("fast", 4, "cold", 900),
                                    by_fio(4, 500), by_fio(8, 640)};
  const auto peers = peer_curves(records);
  ASSERT_EQ(peers.size(), 1U);
  EXPECT_TRUE(peers[0].reads);
  std::vector<std::string> tiers;
  const Chart chart = bandwidth_chart(read_groups(records)[0], peers, tiers, Output{});
  EXPECT_EQ(chart.x, (std::vector<double>{4, 8}));
  const ChartSeries& series = chart.series.back();
  EXPECT_EQ(series.label, "fio-3.33 on disk");
  EXPECT_EQ(series.stroke, Stroke::dash_dotted);
  EXPECT_TRUE(series.mark.has_value());
  EXPECT_EQ(series.colour, chart.series.front().colour) << "of the same tier";
  const std::string page = page_of(records);
  const std::string table = section(page, "peers");
  for (const char* part : {"fio-3.33", "randread of 128 KiB, depth 8, libaio, direct", ">500.0<", ">4 000<",
                           ">2.50<", "fio-3.33 on disk moved 125% of what read moved at 4 threads"})
    EXPECT_TRUE(has(table, part)) << part << "\n" << table;
  EXPECT_FALSE(has(page, "id=\"other\"")) << "not also elsewhere";
}

TEST(Peers, AreNotHeldAgainstWhatTheyDidNotDo) {
  const auto comparable = [](Record peer, Record ours) {
    const std::vector<Record> records{std::move(ours), std::move(peer)};
    return is_comparable(peer_curves(records)[0], read_groups(records)[0]);
  };
  EXPECT_TRUE(comparable(by_fio(4, 500), read_cell("disk", 4, "cold", 400)));
  EXPECT_FALSE(comparable(by_fio(4, 500), read_cell("disk", 4, "warm", 400))) << "direct against cached";
  Record cached = by_fio(4, 500);
  cached.parameters["direct"] = 0;
  EXPECT_TRUE(comparable(cached, read_cell("disk", 4, "warm", 400)));
  Record job = read_cell("disk", 4, "cold", 400);
  job.parameters["ranks"] = 8;
  EXPECT_FALSE(comparable(by_fio(4, 500), job));
}

TEST(Peers, ThatWriteOrHaveNoTierInCommonAreInTheTableAlone) {
  Record writes = by_fio(4, 300);
  writes.parameters["rw"] = "write";
  Record elsewhere = by_fio(4, 300);
  elsewhere.parameters["tier"] = "tape";
  const std::vector<Record> records{read_cell("disk", 4, "cold", 400), writes, elsewhere};
  std::vector<std::string> tiers;
  EXPECT_EQ(bandwidth_chart(read_groups(records)[0], peer_curves(records), tiers, Output{}).series.size(),
            1U);
  EXPECT_TRUE(has(section(page_of(records), "peers"), "stands here alone"));
}

Record trained(int threads, int prefetch, double busy) {
  Record record = train_cell(prefetch, 1);
  record.id = std::to_string(threads) + "-" + std::to_string(prefetch);
  record.parameters["threads"] = threads;
  record.metrics["accelerator_utilization"] = {"1", Better::higher, "run", {busy}};
  return record;
}

TEST(HeatMap, HasItsNumbersInCellsThatLinkToTheirRecords) {
  const std::vector<Record> records{trained(1, 0, 0.31), trained(1, 4, 0.47), trained(4, 4, 0.96),
                                    trained(16, 4, 0.98)};
  const std::string page = page_of(records);
  EXPECT_TRUE(has(page, "class=\"number heat-3\"><a href=\"#record-1\">31%</a>"));
  EXPECT_TRUE(has(page, "class=\"number heat-9\"><a href=\"#record-4\">98%</a>"));
  EXPECT_TRUE(has(page, "class=\"number heat-none\">-<"));
  EXPECT_TRUE(has(
      section(page, "training"),
      "16 threads with prefetch 4 keep the accelerator busy 98% of the time, the most that was measured for "
      "alexnet on disk; 4 threads with prefetch 4 come within 5% of that (96%)."));
}

TEST(HeatMap, ColoursNothingWithoutAScale) {
  const std::vector<Record> none;
  PageState state;
  state.first = none.data();
  const std::string html = heat_map_html(
      {"m", "rows", {"a", "b"}, {"1"}, {{{0.0, "0", nullptr}, {1e300, "huge", nullptr}}}, 0, "0", "0"},
      state);
  EXPECT_TRUE(has(html, "heat-0\">0<"));
  EXPECT_TRUE(has(html, "heat-0\">huge<"));
}

TEST(Waterfall, FallsFromTheWallToWhatTheAcceleratorComputed) {
  Record record = trained(4, 4, 0.5);
  const auto put = [&](const char* name, std::vector<double> samples) {
    record.metrics[name] = {"s", Better::lower, "run", std::move(samples)};
  };
  put("wall_s", {20});
  put("step_s", {5, 5, 5});  // jitter: longer than the accelerators computed in the mean
  put("stage_busy_s.accelerator", {23.6});
  record.parameters["ranks"] = 2;
  put("lost_s.decode", {4});
  put("lost_s.read", {2});
  put("lost_s.straggler", {1});
  put("lost_s.queue", {0});
  put("checkpoint_block_s", {0.5, 0.7});
  const Waterfall fall = waterfall_of(record);
  EXPECT_DOUBLE_EQ(fall.computing_s, 11.8);
  ASSERT_EQ(fall.losses.size(), 4U) << "what took no time is left out";
  const char* const words[] = {"opening and reading", "decoding", "other ranks at work",
                               "saving checkpoints"};
  const double seconds[] = {2, 4, 1, 1.2};
  double left = fall.wall_s;
  for (std::size_t i = 0; i < fall.losses.size(); ++i) {
    EXPECT_EQ(fall.losses[i].words, words[i]);
    EXPECT_NEAR(fall.losses[i].seconds, seconds[i], 1e-9);
    left -= fall.losses[i].seconds;
  }
  EXPECT_NEAR(left, fall.computing_s, 1e-9);
  EXPECT_TRUE(has(page_of({record}), "Where the time went, alexnet on disk with prefetch 4"));
  put("lost_s.barrier", {2});
  const auto barrier = [&] { return waterfall_of(record).losses[3].words; };
  EXPECT_EQ(barrier(), "meeting at the barrier");
  record.parameters["accelerator"] = "emulated:step=5s,burn=cpu:0.5";
  EXPECT_EQ(barrier(), "meeting at the barrier, and longer steps");
  record.parameters["ranks"] = 1;
  EXPECT_EQ(barrier(), "steps that lacked processors");
  record.metrics.erase("accelerator_utilization");
  EXPECT_TRUE(waterfall_of(record).losses.empty()) << "without a step nothing is lost of it";
}

ComparedMetric compared(const std::string& cell, GateOutcome outcome, double base, double candidate) {
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

TEST(Changes, AreSaidDrawnAndListed) {
  NamedComparison one{"monday", "tuesday", {}};
  one.comparison.rows = {compared("read <disk>, threads 4", GateOutcome::regression, 1000, 800),
                         compared("read fast, threads 4", GateOutcome::better, 1000, 1300),
                         compared("read fast, threads 8", GateOutcome::same, 1000, 1010)};
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

TEST(Changes, BeyondMeasureBreakNothing) {
  NamedComparison one{"a", "b", {}};
  one.comparison.rows = {compared("x", GateOutcome::regression, 1, 1)};
  one.comparison.rows[0].change = std::numeric_limits<double>::infinity();
  one.comparison.rows[0].interval = Interval{-1, std::numeric_limits<double>::infinity()};
  const std::string page = make_page(set_of({read_cell("disk", 1, "cold", 100)}), Output{}, "T", {one}).html;
  EXPECT_FALSE(has(section(page, "changes"), "nan%"));
}

TEST(Environment, SaysWhatDiffersAndInWhichRecords) {
  std::vector<Record> records;
  for (int i = 0; i < 5; ++i) {
    Record record = read_cell("disk", i + 1, "cold", 100);
    record.environment =
        Json{{"host", "h"}, {"kernel", i == 3 ? "6.5" : "6.1"}, {"build", {{"type", "Release"}}}};
    record.tiers["data"] = Json{{"name", "disk"}, {"mount_options", i < 2 ? "rw" : "rw,noatime"}};
    records.push_back(record);
  }
  const std::string text = section(page_of(records), "environment");
  EXPECT_TRUE(
      has(text,
          "2 things differ between these records, and may be why figures do: kernel and tier disk: mounted "
          "with."));
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

TEST(Page, EveryLinkLeadsToAPlaceOnIt) {
  std::vector<Record> records{read_cell("disk", 4, "cold", 400),
                              read_cell("disk", 4, "warm", 900),
                              by_fio(4, 500),
                              of_ranks(1, {1, 1}),
                              of_ranks(2, {2, 2}),
                              trained(1, 0, 0.3),
                              trained(2, 4, 0.6),
                              saving_cell("direct", 0, {2}),
                              saving_cell("burst-buffer", 0, {1})};
  records.back().verdict = Verdict::degraded;
  const std::string page = page_of(records);
  const std::string link = "href=\"#";
  std::size_t links = 0;
  for (std::size_t at = page.find(link); at != std::string::npos; at = page.find(link, at + 1)) {
    const std::size_t from = at + link.size();
    const std::string id = page.substr(from, page.find('"', from) - from);
    EXPECT_TRUE(has(page, "id=\"" + id + "\"")) << id;
    ++links;
  }
  EXPECT_GT(links, 30U);
}

TEST(Page, FoldsAwayWhatHundredsOfGroupsSay) {
  std::vector<Record> records;
  for (int i = 0; i < 300; ++i) {
    Record record = read_cell("disk", 4, "cold", 100 + i);
    record.parameters["batch"] = i;
    records.push_back(record);
  }
  const std::string page = page_of(records);
  EXPECT_TRUE(has(page, "<h3 id=\"reading-8\">"));
  EXPECT_TRUE(has(page, "<details class=\"part\" id=\"reading-9\">"));
  EXPECT_TRUE(has(page, "<summary>Records 251 to 300</summary>"));
  EXPECT_TRUE(has(page, "id=\"record-300\""));
}

}  // namespace
}  // namespace penstock::report
