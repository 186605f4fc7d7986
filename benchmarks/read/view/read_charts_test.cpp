#include "benchmarks/read/view/read_charts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "results/cells/cells.hpp"
#include "results/record/records_testing.hpp"
#include "results/report/page_testing.hpp"

namespace penstock::report {
namespace {

// The HTML of one section, up to its end tag.
std::string section(const std::string& page, const std::string& id) {
  const size_t at = page.find("<section id=\"" + id + "\"");
  return at == std::string::npos ? "" : page.substr(at, page.find("</section>", at) - at);
}

TEST(Chart, KeepsATiersColourAndLeavesGapsWhereNothingWasMeasured) {
  const std::vector<Record> records{read_cell("disk", 1, "cold", 1), read_cell("disk", 4, "cold", 4),
                                    read_cell("fast", 2, "cold", 2)};
  std::vector<std::string> tiers{"fast"};
  const auto groups = read_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  const Chart chart = bandwidth_chart(groups[0], {}, tiers, Output{});
  EXPECT_EQ(chart.x, (std::vector<double>{1, 2, 4}));
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[0].label, "disk");
  EXPECT_EQ(chart.series[0].colour, 1U);
  EXPECT_EQ(chart.series[1].colour, 0U);
  EXPECT_EQ(chart_json(chart)["series"][0]["y"].dump(), "[1.0,null,4.0]");
}

TEST(Chart, LeavesOutACeilingThatWouldSquashTheLinesAndSaysSo) {
  Record record = read_cell("disk", 1, "cold", 100);
  for (const double times : {2.0, 60.0}) {
    record.metrics["ceiling_bytes_per_s"] = {"B/s", Better::neither, "run", {times * 100 * 1048576.0}};
    std::vector<std::string> tiers;
    const std::vector<Record> records{record};
    const Chart chart = bandwidth_chart(read_groups(records)[0], {}, tiers, Output{});
    EXPECT_EQ(chart.series.size(), times < 5 ? 2U : 1U);
    EXPECT_EQ(has(chart.title, "left out"), times > 5);
  }
}

TEST(RepeatRange, IsDrawnWrittenAndListed) {
  const std::vector<Record> records{
      with_rates(read_cell("disk", 1, "cold", 1), {100, 101, 102, 103, 104, 105}),
      with_rates(read_cell("disk", 2, "cold", 1), {190, 200, 210})};
  std::vector<std::string> tiers;
  const Chart chart = bandwidth_chart(read_groups(records)[0], {}, tiers, Output{});
  EXPECT_EQ(chart.series.at(0).is_interval, (std::vector<bool>{true, false}));
  EXPECT_EQ(chart_json(chart)["series"][0]["sure"].dump(), "[true,false]");
  const std::string csv = csv_text(chart_sheet(chart));
  EXPECT_EQ(csv,
            "threads,disk (MiB/s),disk: low,disk: high,disk: range\r\n"
            "1,102.5,100,105,95% of the median\r\n"
            "2,200,190,210,lowest to highest\r\n");
  EXPECT_TRUE(has(page_of(records), "100.0 to 105.0"));
}

TEST(Ranks, HaveAChartATableAndASentence) {
  const std::vector<Record> records{of_ranks(1, {100, 101, 99}), of_ranks(2, {195, 200, 201}),
                                    of_ranks(4, {204, 205, 206})};
  const auto groups = rank_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  const Chart chart = ranks_chart(groups[0], "ranks", Output{});
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

TEST(Ranks, OnDifferentNodesAreCurvesOfTheirOwn) {
  Record on_one_node = of_ranks(2, {150, 151, 152});
  for (Json& rank : on_one_node.environment["ranks"]) rank["host"] = "a";
  const std::vector<Record> records{of_ranks(1, {100, 101, 99}), of_ranks(2, {195, 200, 201}), on_one_node,
                                    of_ranks(4, {204, 205, 206})};
  const auto groups = rank_groups(records);
  ASSERT_EQ(groups.size(), 1U);
  std::map<std::string, std::vector<uint64_t>> ranks;
  for (const ReadCurve& curve : groups[0].curves)
    for (const auto& [count, record] : curve.by_count) ranks[curve.tier].push_back(count);
  EXPECT_EQ(ranks,
            (std::map<std::string, std::vector<uint64_t>>{{"pfs, 2 threads a rank, 1 a node", {1, 2}},
                                                          {"pfs, 2 threads a rank, 2 a node", {2, 4}}}));
}

TEST(Ranks, WithinTheSpreadGiveNoFinding) {
  const std::string page = page_of({of_ranks(1, {100, 150, 50}), of_ranks(2, {130, 120, 125})});
  EXPECT_TRUE(
      has(section(page, "ranks"), "More than 1 rank may or may not help pfs, 2 threads a rank: repeats"));
}

TEST(Peers, AreNextToTheTierOfTheSameNameAndInATable) {
  const std::vector<Record> records{read_cell("disk", 4, "cold", 400), read_cell("fast", 4, "cold", 900),
                                    by_fio(4, 500), by_fio(8, 640)};
  const auto peers = peer_curves(records);
  ASSERT_EQ(peers.size(), 1U);
  EXPECT_TRUE(peers[0].rate_is_of_reads);
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
  for (const char* part : {"fio-3.33", "randread of 128 KiB, depth 8, libaio, direct", ">500.0<", ">4,000<",
                           ">2.50<", "fio-3.33 on disk reached 125% of the rate of read at 4 threads"})
    EXPECT_TRUE(has(table, part)) << part << "\n" << table;
  EXPECT_FALSE(has(page, "id=\"other\"")) << "not also elsewhere";
}

TEST(Peers, AreNotComparedWithOtherCacheStatesOrSeveralRanks) {
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
  EXPECT_TRUE(has(section(page_of(records), "peers"), "There is no record of read to compare with"));
}

TEST(ReadCharts, SwitchToSamplesPerSecond) {
  Record record = read_cell("disk", 1, "cold", 100);
  record.corpus["format"] = "files";
  std::vector<std::string> tiers;
  const auto chart_of = [&](const Record& one) {
    return bandwidth_chart(read_groups(std::vector{one}).front(), {}, tiers, Output{});
  };
  const Json json = chart_json(chart_of(record));
  EXPECT_EQ(json["other"]["y_label"], "files/s");
  EXPECT_NEAR(json["other"]["series"][0]["y"][0].get<double>(), 100 * 1048576.0 / 115000, 1e-6);
  record.parameters["block"] = 4096;
  EXPECT_EQ(chart_of(record).other_y_label, "IOPS");
  record.metrics.erase("samples_per_s");
  EXPECT_FALSE(chart_json(chart_of(record)).contains("other"));
}

TEST(ReadCharts, DistributionIsThatOfTheFastestThreadCount) {
  std::vector<Record> records{read_cell("disk", 1, "cold", 100), read_cell("disk", 4, "cold", 300)};
  for (size_t i = 0; i < records.size(); ++i)
    for (const auto& [name, ms] : {std::pair{"latency_ns_p50", 1.0}, std::pair{"latency_ns_p99", 4.0},
                                   std::pair{"latency_ns_p999", 9.0}})
      records[i].metrics[name] = {"ns", Better::lower, "repeat", {ms * 1e6 * double(i + 1)}};
  std::vector<std::string> tiers;
  const Chart chart = distribution_chart(read_groups(records).front(), tiers);
  EXPECT_EQ(chart.x_names, (std::vector<std::string>{"50%", "99%", "99.9%"}));
  ASSERT_EQ(chart.series.size(), 1U);
  EXPECT_EQ(chart.series[0].label, "disk, 4 threads");
  EXPECT_EQ(chart.series[0].y, (std::vector<std::optional<double>>{2, 8, 18}));
  records[1].metrics.erase("latency_ns_p99");
  records[0].metrics.erase("latency_ns_p99");
  EXPECT_TRUE(distribution_chart(read_groups(records).front(), tiers).series.empty())
      << "two points are no line";
}

TEST(ReadCharts, ProcessorTimeIsForEachGigabyte) {
  Record record = read_cell("disk", 1, "cold", 100);
  EXPECT_FALSE(cpu_seconds_per_gb(record));
  record.metrics["cpu_s"] = {"s", Better::lower, "repeat", {1, 2, 4}};
  record.metrics["payload_bytes"] = {"B", Better::neither, "repeat", {2e9, 2e9, 2e9}};
  EXPECT_DOUBLE_EQ(*cpu_seconds_per_gb(record), 1);
}

}  // namespace
}  // namespace penstock::report
