#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "results/compare/gate_text.hpp"
#include "results/record/record.hpp"

namespace penstock {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Comparison of_each_outcome() {
  Comparison comparison;
  comparison.tested_metrics = 3;
  comparison.least_samples = 9;
  comparison.remarks = {"unpaired: drift not excluded", "the kernel: <6.1> in the base"};
  for (const GateOutcome outcome :
       {GateOutcome::regression, GateOutcome::missing, GateOutcome::failed, GateOutcome::incomparable,
        GateOutcome::inconclusive, GateOutcome::differs, GateOutcome::same}) {
    ComparedMetric& row = comparison.rows.emplace_back();
    row.cell = "read a|b \"disk\" & 100%, threads 4";
    row.metric = "payload_bytes_per_s";
    row.unit = "B/s";
    row.outcome = outcome;
    row.base_samples = row.candidate_samples = 20;
    row.base = 100 * 1048576.0;
    row.candidate = 90 * 1048576.0;
    row.change = -0.1;
    row.interval = Interval{-0.12, -0.08};
    row.p = 0.0004;
    row.detectable = 0.06;
  }
  comparison.rows[1].reason = "line one\r\nline two";
  return comparison;
}

TEST(GateFormats, GithubValuesAndPropertiesAreEscaped) {
  EXPECT_EQ(github_value("100% of\r\na:b,c"), "100%25 of%0D%0Aa:b,c");
  EXPECT_EQ(github_property("100% of\r\na:b,c"), "100%25 of%0D%0Aa%3Ab%2Cc");
  EXPECT_EQ(github_value("%0A"), "%250A");
}

TEST(GateFormats, OutcomesThatNeedAttentionAreAnnotated) {
  const std::string text = comparison_annotations(of_each_outcome(), {});
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 6U);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(lines[i].starts_with("::error title=read a|b \"disk\" & 100%25%2C threads 4%3A "))
        << lines[i];
  for (size_t i = 4; i < 6; ++i) EXPECT_TRUE(lines[i].starts_with("::warning title=")) << lines[i];
  EXPECT_TRUE(has(lines[0],
                  "::REGRESSION; 100.0 MiB/s in the base, 90.0 MiB/s in the candidate: -10%25 (-12%25 to "
                  "-8.0%25), p 0.0004"))
      << lines[0];
  EXPECT_TRUE(has(lines[1], "line one%0D%0Aline two"));
}

TEST(GateFormats, JunitHasCountsAndEscapedText) {
  const std::string xml = comparison_junit(of_each_outcome(), {}, {});
  EXPECT_TRUE(has(xml, "tests=\"7\" failures=\"1\" errors=\"3\" skipped=\"1\""));
  EXPECT_TRUE(
      has(xml, "classname=\"read a|b &quot;disk&quot; &amp; 100%, threads 4\" name=\"payload_bytes_per_s\""));
  EXPECT_TRUE(has(xml, "line one&#13;&#10;line two"));
  EXPECT_TRUE(has(xml, "the kernel: &lt;6.1&gt; in the base"));
  Comparison odd;
  odd.rows.emplace_back().cell = "a\x01\xff";
  EXPECT_TRUE(has(comparison_junit(odd, {}, {}), "classname=\"a?\xEF\xBF\xBD\""));
}

TEST(GateFormats, JsonHasALineForEachRowAndASummary) {
  std::istringstream in(comparison_json(of_each_outcome(), {}));
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  ASSERT_EQ(lines.size(), 8U);
  EXPECT_EQ(lines[0]["kind"], "row");
  EXPECT_EQ(lines[0]["outcome"], "regression");
  EXPECT_EQ(lines[0]["interval"][1], -0.08);
  EXPECT_EQ(lines[7]["kind"], "summary");
  EXPECT_EQ(lines[7]["exit_code"], 5);
  EXPECT_EQ(lines[7]["outcomes"]["failed"], 1);
  EXPECT_EQ(lines[7]["least_samples"], 9);
  ComparedMetric bare;
  Comparison none;
  none.rows.push_back(bare);
  EXPECT_TRUE(has(comparison_json(none, {}), "\"change\":null,\"interval\":null,\"p\":null"));
}

TEST(GateText, MarkdownTextIsEscaped) {
  const std::string text = comparison_markdown(of_each_outcome(), {}, {});
  EXPECT_TRUE(has(text, "### Incomparable"));
  EXPECT_TRUE(has(
      text,
      "| read a\\|b \"disk\" & 100%, threads 4 | payload\\_bytes\\_per\\_s | 100.0 MiB/s | 90.0 MiB/s |"));
  EXPECT_TRUE(has(text, "MISSING: line one  line two |"));
  EXPECT_TRUE(has(text, "- the kernel: &lt;6.1> in the base\n"));
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("| read")) {
      EXPECT_TRUE(line.ends_with("|")) << line;
    }
}

TEST(GateText, TheTableIsFollowedByTheRule) {
  const std::string text = comparison_text(of_each_outcome(), {}, {});
  EXPECT_TRUE(has(text, "-10% (-12% to -8.0%)  0.0004       6.0%       20  REGRESSION"));
  EXPECT_TRUE(
      has(text,
          "1 regression, 1 missing, 1 failed, 1 incomparable, 1 inconclusive, 1 differs, 1 without a change. "
          "3 tested: a change counts if p over all of them is at most 0.01 and the change is at least 5%. "
          "That needs 9 samples a side."))
      << text;
  EXPECT_TRUE(has(text, "unpaired: drift not excluded\n"));
}

TEST(GateText, ValuesHaveTheirUnits) {
  EXPECT_EQ(format_metric(135.5 * 1048576, "B/s", {}), "135.5 MiB/s");
  EXPECT_EQ(format_metric(135.5e6, "B/s", {.si_units = true}), "135.5 MB/s");
  EXPECT_EQ(format_metric(4.5e6, "ns", {}), "4.5 ms");
  EXPECT_EQ(format_metric(1234, "1/s", {}), "1234 /s");
  EXPECT_EQ(format_metric(12, "1", {}), "12.0");
}

TEST(GateText, ChangesFromZeroHaveNoPercentage) {
  ComparedMetric row;
  row.metric = "errors";
  row.base_samples = row.candidate_samples = 8;
  row.candidate = 3;
  EXPECT_EQ(change_text(row), "from 0");
  row.change = 0.031;
  EXPECT_EQ(change_text(row), "+3.1%");
}

// The conclusion gives the loss that may be there unseen: the largest of the cells that show no change.
TEST(GateText, NoRegressionHasABound) {
  Comparison comparison = of_each_outcome();
  comparison.rows.resize(2);
  for (ComparedMetric& row : comparison.rows) row.outcome = GateOutcome::same;
  const auto conclusion = [&] { return comparison_text(comparison, {}, {}); };
  EXPECT_EQ(comparison.exit_code(), 0);
  EXPECT_TRUE(has(conclusion(), "a loss below 6.0% may not have been seen")) << conclusion();
  comparison.rows[1].detectable = 0.83;
  EXPECT_TRUE(has(conclusion(), "a loss below 83% may not have been seen")) << conclusion();
  comparison.rows[0].detectable.reset();
  EXPECT_TRUE(has(conclusion(), "is unknown")) << conclusion();
}

}  // namespace
}  // namespace penstock
