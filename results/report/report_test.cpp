#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/record/records_testing.hpp"
#include "results/report/assets.hpp"
#include "results/report/charts.hpp"
#include "results/report/html.hpp"
#include "results/report/page_testing.hpp"

namespace penstock::report {
namespace {

constexpr const char* kHostile = "</script><img src=x onerror=alert(1)>\"'&<!--";

Record tier_cell(const std::string& tier, int threads, double bytes_per_s) {
  Record record;
  record.id = "0-" + std::to_string(threads);
  record.started = "2026-11-20T09:30:00Z";
  record.command = "read";
  record.parameters = Json{{"tier", tier}, {"threads", threads}, {"cache", "cold"}};
  record.tiers["data"] = Json{{"name", tier}};
  record.metrics["payload_bytes_per_s"] = {"B/s", Better::higher, "repeat", {bytes_per_s}};
  return record;
}

TEST(Html, EscapesMarkupInTextAndAttributes) {
  EXPECT_EQ(escape("<b a=\"x\" c='y'>&amp;"), "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(escape("16 384 füße"), "16 384 füße");
}

TEST(Html, ReplacesInvalidUtf8AndControlCharacters) {
  EXPECT_EQ(escape("a\xff"
                   "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(escape(std::string_view("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(escape("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // '/' in two bytes instead of one
  EXPECT_EQ(escape("\xED\xA0\x80").size(), 9U);               // a lone surrogate
  EXPECT_EQ(escape("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // the last byte is missing
  EXPECT_EQ(escape("\xF4\x90\x80\x80").size(), 12U);          // above U+10FFFF
  EXPECT_EQ(escape("a\nb\tc"), "a\nb\tc");
}

TEST(Html, JsonInAScriptElementCannotEndIt) {
  const std::string json = script_json(Json{{kHostile, kHostile}});
  EXPECT_FALSE(has(json, "<"));
  EXPECT_FALSE(has(json, "&"));
  EXPECT_EQ(Json::parse(json)[kHostile], kHostile);
}

TEST(Page, TextOfAHostileRecordIsEscapedEverywhere) {
  Record record = tier_cell(kHostile, 2, 1e9);
  record.label[kHostile] = kHostile;
  record.reason = kHostile;
  record.argv = {kHostile};
  record.command = "read";
  record.tiers["data"] = Json{{"name", kHostile}, {"device", kHostile}};
  record.cache = Json{{"client_data", kHostile}};
  record.corpus = Json{{"recipe", kHostile}, {"samples", 3U}, {"bytes", 4U}};
  record.environment = Json{{"host", kHostile}, {kHostile, kHostile}};
  record.started = kHostile;
  record.series["payload_bytes"] = {1.0, {1, 2, 3, 4, 5}};
  Record train = record;
  train.command = "train";
  train.parameters = Json{{"app", kHostile}, {"prefetch", 0}, {"batch", kHostile}};
  train.metrics["input_wait_s"] = {"s", Better::lower, "step", {1}};
  train.metrics["step_s"] = {"s", Better::lower, "step", {1}};
  train.metrics[std::string("stage_busy_s.") + kHostile] = {"s", Better::lower, "run", {1}};
  Record other = record;
  other.command = kHostile;
  other.metrics[kHostile] = {kHostile, Better::higher, kHostile, {1}};
  Record failed = record;
  failed.verdict = Verdict::failed;
  const std::string page = page_of({record, train, other, failed}, {kHostile});
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_FALSE(has(page, "onerror=alert(1)>"));
  size_t ends = 0;
  for (size_t at = page.find("</script"); at != std::string::npos; at = page.find("</script", at + 1)) ++ends;
  EXPECT_EQ(ends, 4U);  // <script> elements: charts, sheets, records and the script itself
}

TEST(Page, ContainsNoAddressToLoadFrom) {
  const std::string page = page_of({tier_cell("disk", 1, 1e8)});
  EXPECT_FALSE(has(page, "src=\"http"));
  EXPECT_FALSE(has(page, "href=\"http"));
  EXPECT_FALSE(has(page, "@import"));
  EXPECT_TRUE(has(page, "default-src 'none'"));
}

TEST(Page, OneThreadCountAndOneTierMakeATableAndAChart) {
  const std::string page = page_of({tier_cell("disk", 1, 100 * 1048576.0)});
  EXPECT_TRUE(has(page, "100.0"));
  EXPECT_TRUE(has(page, "id=\"reading\""));
  EXPECT_FALSE(has(page, "id=\"training\""));
  EXPECT_EQ(has(page, "id=\"chart-1\""), !chart_library_js.empty());
  EXPECT_EQ(has(page, "id=\"no-charts\""), chart_library_js.empty());
  EXPECT_EQ(has(page, "Leon Sorokin"), !chart_library_licence.empty());
}

TEST(Page, EveryTierHasATileAndColdRatesArePreferred) {
  Record warm = tier_cell("disk", 1, 900 * 1048576.0);
  warm.parameters["cache"] = "warm";
  Record memory = tier_cell("memory", 2, 700 * 1048576.0);
  memory.parameters["cache"] = "warm";
  memory.cache = Json{{"client_data", "memory"}};
  const std::string page = page_of({warm, memory, tier_cell("disk", 1, 100 * 1048576.0)});
  EXPECT_TRUE(has(page, ">disk, highest rate cold: 1 thread<"));
  EXPECT_FALSE(has(page, ">disk, highest rate warm: 1 thread<"));
  EXPECT_TRUE(has(page, ">memory, highest rate in memory: 2 threads<"));
}

TEST(Page, HugeAndMissingNumbersDoNotBreakIt) {
  Record record = tier_cell("disk", 1, 1e300);
  record.metrics["samples_per_s"] = {"1/s", Better::higher, "repeat", {}};
  record.metrics["latency_ns_p50"] = {"ns", Better::lower, "run", {1e308}};
  record.parameters["threads"] = 1000000;
  const std::string page = page_of({record, tier_cell("disk", 2, 0)});
  EXPECT_TRUE(has(page, "1000000"));
  EXPECT_FALSE(has(page, ">nan<"));
  EXPECT_FALSE(has(page, ">inf<"));
}

TEST(Page, CellsWithoutANumberAreRowsWithAReason) {
  Record failed = tier_cell("disk", 4, 1e8);
  failed.verdict = Verdict::failed;
  failed.reason = "cannot open 'x'";
  Record cut = tier_cell("disk", 8, 1e8);
  cut.verdict = Verdict::interrupted;
  Record skipped;
  skipped.command = "read";
  skipped.verdict = Verdict::skipped;
  const std::string page = page_of({failed, cut, skipped});
  EXPECT_TRUE(has(page, "cannot open &#39;x&#39;"));
  EXPECT_TRUE(has(page, ">interrupted</span>"));
  EXPECT_TRUE(has(page, ">skipped</span>"));
  EXPECT_FALSE(has(page, "id=\"reading\""));
}

TEST(Page, LabelsAreShownSideBySide) {
  Record old = tier_cell("disk", 1, 100 * 1048576.0);
  old.label["disk"] = "old";
  Record fresh = tier_cell("disk", 1, 200 * 1048576.0);
  fresh.label["disk"] = "new";
  const std::string page = page_of({old, fresh});
  EXPECT_TRUE(has(page, "Labels side by side"));
  EXPECT_TRUE(has(page, "disk=old, MiB/s"));
  EXPECT_FALSE(has(page_of({old}), "Labels side by side"));
}

TEST(Page, MarksWhatDiffersBetweenEnvironments) {
  Record one = tier_cell("disk", 1, 1e8);
  one.environment = Json{{"host", "a"}, {"kernel", "6.1"}, {"clock_read_ns", 20.5}};
  Record two = one;
  two.environment["kernel"] = "6.5";
  two.environment["clock_read_ns"] = 21.0;
  EXPECT_TRUE(has(page_of({one, two}), "kernel <span class=\"mark\">differs</span>"));
  two.environment["kernel"] = "6.1";
  EXPECT_FALSE(has(page_of({one, two}), "class=\"mark\""));
}

TEST(Page, ListsFilesThatCouldNotBeRead) {
  EXPECT_TRUE(
      has(page_of({tier_cell("disk", 1, 1e8)}, {"x.jsonl:3: not a record"}), "x.jsonl:3: not a record"));
}

Record train_record(int threads, int prefetch, double busy) {
  Record record = tier_cell("disk", threads, 1e9);
  record.id = std::to_string(threads) + "-" + std::to_string(prefetch);
  record.command = "train";
  record.parameters =
      Json{{"app", "alexnet"}, {"threads", threads}, {"prefetch", prefetch}, {"step_s", 0.01}};
  record.metrics["accelerator_utilization"] = {"1", Better::higher, "run", {busy}};
  return record;
}

TEST(Page, TrainingOverThreadsAndPrefetchIsOneTable) {
  const std::vector<Record> records{train_record(1, 0, 0.31), train_record(1, 4, 0.47),
                                    train_record(16, 4, 0.98)};
  const std::string page = page_of(records);
  const std::string caption = "alexnet on disk: accelerator utilization (AU)";
  ASSERT_TRUE(has(page, caption));
  const std::string table = page.substr(page.find(caption), 1500);
  for (const char* part : {"prefetch 0", "prefetch 4", "31%", "47%", "98%"})
    EXPECT_TRUE(has(table, part)) << part;
  EXPECT_FALSE(has(page_of({records[0], records[1]}), caption)) << "one number of threads needs none";
}

TEST(Page, ATimelineIsATableOfMergedAndSummedReads) {
  Record record = train_record(2, 4, 0.5);
  EXPECT_FALSE(has(page_of({record}), "Reading in the timeline"));
  for (const auto& [name, value] : {std::pair{"read_merged_s", 2.0}, std::pair{"read_share", 0.25},
                                    std::pair{"read_train_overlap_s", 1.5}, std::pair{"read_summed_s", 6.0},
                                    std::pair{"train_merged_s", 4.0}})
    record.metrics[name] = {"s", Better::neither, "run", {value}};
  record.metrics["read_merged_bytes_per_s"] = {"B/s", Better::neither, "run", {300 * 1048576.0}};
  record.metrics["read_summed_bytes_per_s"] = {"B/s", Better::neither, "run", {100 * 1048576.0}};
  const std::string page = page_of({record});
  const std::string caption = "Reading in the timeline of alexnet on disk";
  ASSERT_TRUE(has(page, caption));
  const std::string table = page.substr(page.find(caption), 2500);
  for (const char* part :
       {">2 s<", ">25%<", ">75%<", ">6 s<", ">4 s<", ">300.0<", ">100.0<", "no device time"})
    EXPECT_TRUE(has(table, part)) << part;
}

Record checkpoint_record(const std::string& arm, std::vector<double> block_s) {
  Record record = saving_cell(arm, 0, std::move(block_s));
  record.series["slow_bytes_written"] = {0.5, {0, 5e7, 2.5e7}};
  record.series["steps_ended"] = {0.5, {4, 0, 2}};
  if (arm != "direct") record.series["fast_bytes_written"] = {0.5, {1e8, 0}};
  return record;
}

TEST(Page, CheckpointsAreOnlyInTheirOwnSection) {
  const std::string page =
      page_of({checkpoint_record("direct", {2}), checkpoint_record("burst-buffer", {0.25, 0.25, 1})});
  ASSERT_TRUE(has(page, "id=\"checkpoints\""));
  EXPECT_FALSE(has(page, "id=\"other\""));
  const std::string section = page.substr(page.find("id=\"checkpoints\""));
  for (const char* part : {"straight to disk", "through shm (volatile)", "more, up to the median 150 ms",
                           "more, up to the longest 750 ms", "what its tier&#39;s ceiling allows 100 ms"})
    EXPECT_TRUE(has(section, part)) << part;
  EXPECT_TRUE(has(page, ">8.0<small>x shorter</small>"));
  Record single = checkpoint_record("direct", {1});
  single.parameters.erase("arm");
  EXPECT_TRUE(has(page_of({single}), "id=\"checkpoints-saves\""));
  single.metrics.clear();
  single.metrics["wall_s"] = {"s", Better::lower, "run", {1}};
  EXPECT_TRUE(has(page_of({single}), "id=\"other\"")) << "what saved nothing is still shown";
}

}  // namespace
}  // namespace penstock::report
