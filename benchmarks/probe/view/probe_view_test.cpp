#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "benchmarks/probe/view/probe_parts.hpp"
#include "results/cells/record_view.hpp"

namespace penstock {
namespace {

constexpr double kMiB = 1048576;

// A record with two repeats of five probes. `factor` makes all of them faster.
Record probed(const std::string& tier, int clients, double factor, double apart = 0.02) {
  Record record;
  record.command = "tiers";
  record.id = tier + std::to_string(clients);
  record.parameters = Json{{"tier", tier}, {"threads", clients}};
  record.tiers["data"] = Json{{"name", tier}};
  const auto add = [&](const std::string& probe, double rate, const char* unit, const char* suffix) {
    record.metrics[probe + suffix] = {
        unit, Better::higher, "repeat", {rate * factor * (1 - apart / 2), rate * factor * (1 + apart / 2)}};
  };
  for (const char* const probe : {"read.sequential.1m.1", "write.sequential.1m.1"}) {
    add(probe, 100 * kMiB, "B/s", ".bytes_per_s");
    add(probe, 100, "1/s", ".ops_per_s");
  }
  add("read.random.4k.1", 50, "1/s", ".ops_per_s");
  add("read.random.4k.32", 60, "1/s", ".ops_per_s");
  add("metadata.create", 700, "1/s", ".ops_per_s");
  return record;
}

std::vector<std::string> texts(const std::vector<Record>& records, Tone tone) {
  std::vector<std::string> found;
  for (const Sentence& sentence : sentences(records, {}))
    if (sentence.tone == tone) found.push_back(sentence.text);
  return found;
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += one + "\n";
  return text;
}

TEST(ProbeView, GivesProbesPlainNamesAndUnits) {
  EXPECT_EQ(probe_title("read.random.4k.8"), "random reads of 4 KiB, depth 8");
  EXPECT_EQ(probe_title("read.small_files.112k.best"), "reads of small files (112 KiB), best found");
  EXPECT_EQ(probe_title("metadata.create"), "create files");
  EXPECT_EQ(probe_title("of a later version"), "of a later version");
  EXPECT_EQ(probe_unit("read.random.4k.8", {}), "IOPS");
  EXPECT_EQ(probe_unit("write.sequential.1m.1", {}), "MiB/s");
  EXPECT_EQ(probe_depth("read.random.4k.32"), 32U);
  EXPECT_FALSE(probe_depth("read.small_files.112k.best"));
}

TEST(ProbeView, ComparesTheBestOfEachTierOverClientsAndDepths) {
  const std::vector<Record> records{probed("disk", 1, 1), probed("disk", 4, 2), probed("shm", 1, 6)};
  const std::string all = joined(texts(records, Tone::finding));
  EXPECT_NE(all.find("shm reads sequentially at 600.0 MiB/s (1 client, depth 1), and disk at "
                     "200.0 MiB/s, a factor of 3."),
            std::string::npos)
      << all;
  EXPECT_NE(all.find("shm reads blocks of 4 KiB at random at 360.0 IOPS (1 client, depth 32)"),
            std::string::npos)
      << all;
  const auto lines = bottom_line(records, {});
  EXPECT_EQ(lines[0], "disk is the slower tier in 4 of 4 kinds of work.");
  EXPECT_NE(lines[1].find("shm reads sequentially 3 times as fast"), std::string::npos) << lines[1];
}

TEST(ProbeView, ClaimsNoDifferenceWithinTheNoise) {
  const std::vector<Record> records{probed("disk", 1, 1, 0.8), probed("shm", 1, 1.2, 0.8)};
  const auto lines = bottom_line(records, {});
  EXPECT_NE(lines[0].find("unknown"), std::string::npos) << lines[0];
  EXPECT_NE(lines[2].find("--repeat 9"), std::string::npos) << lines[2];
  EXPECT_NE(joined(texts(records, Tone::caution)).find("10 of 10 probe results are noisy"), std::string::npos)
      << joined(texts(records, Tone::caution));
}

TEST(ProbeView, OneTierAloneIsNotJudged) {
  const auto lines = bottom_line(std::vector{probed("disk", 1, 1)}, {});
  EXPECT_NE(lines[0].find("unknown"), std::string::npos);
  EXPECT_NE(lines[2].find("--tier"), std::string::npos);
}

TEST(ProbeView, TheSectionHasATableAndChartsAndMarksNoise) {
  const std::vector<Record> records{probed("disk", 1, 1, 0.5), probed("shm", 1, 6)};
  report::PageState state;
  state.first_record = records.data();
  const std::string html = report::probe_section(records, state);
  EXPECT_NE(html.find("<h3 id=\"probe-1\">Reads</h3>"), std::string::npos);
  EXPECT_NE(html.find("<h3 id=\"probe-3\">Metadata</h3>"), std::string::npos);
  EXPECT_NE(html.find("spread 50%</small> <span class=\"mark\">noisy</span>"), std::string::npos) << html;
  ASSERT_EQ(state.charts.size(), 1U) << "only random reads have several depths";
  EXPECT_EQ(state.charts[0].x, (std::vector<double>{1, 32}));
  EXPECT_EQ(state.charts[0].series[1].y[1], 360);
  EXPECT_EQ(state.sheets.size(), 4U) << "one table of each kind, and the chart";
}

}  // namespace
}  // namespace penstock
