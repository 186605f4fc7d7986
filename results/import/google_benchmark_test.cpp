#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "results/import/foreign.hpp"
#include "results/import/json_documents.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

std::string benchmark_file(const std::string& benchmarks) {
  return R"({"context": {"date": "2026-11-20T10:30:00+01:00", "host_name": "h", "executable": "./bench", "num_cpus": 2},
"benchmarks": [)" +
         benchmarks + "]\n}\n";
}

std::string entry(const std::string& name, const std::string& more) {
  return R"({"name": ")" + name + R"(", "run_name": ")" + name +
         R"(", "run_type": "iteration", "threads": 2, )" + more + "}";
}

Imported imported(const std::string& benchmarks) {
  const auto found = import_foreign(benchmark_file(benchmarks));
  EXPECT_TRUE(found.has_value());
  return found.value_or(Imported{});
}

TEST(GoogleBenchmark, RepetitionsAreSamplesInSeconds) {
  const Imported found = imported(
      entry("a/8", R"("repetition_index": 0, "real_time": 250, "cpu_time": 240, "time_unit": "ns")") + "," +
      entry("a/8", R"("repetition_index": 1, "real_time": 260, "cpu_time": 250, "time_unit": "ns")"));
  ASSERT_EQ(found.records.size(), 1U);
  const Record& record = found.records[0];
  EXPECT_EQ(record.command, "google_benchmark");
  EXPECT_EQ(record.started, "2026-11-20T09:30:00Z");
  EXPECT_EQ(record.parameters.at("benchmark"), "a/8");
  EXPECT_EQ(record.parameters.at("threads"), 2U);
  EXPECT_EQ(record.environment.at("host"), "h");
  const Metric& real = record.metrics.at("real_time_s");
  ASSERT_EQ(real.samples.size(), 2U);
  EXPECT_DOUBLE_EQ(real.samples[0], 250e-9);
  EXPECT_DOUBLE_EQ(real.samples[1], 260e-9);
  EXPECT_EQ(real.better, Better::lower);
  EXPECT_DOUBLE_EQ(record.metrics.at("cpu_time_s").samples[1], 250e-9);
  EXPECT_EQ(record.verdict, Verdict::ok);
}

TEST(GoogleBenchmark, EveryUnitOfTimeIsKnownAndOthersFail) {
  for (const auto& [unit, seconds] : {std::pair("us", 3e-6), std::pair("ms", 3e-3), std::pair("s", 3.0)}) {
    const Imported found =
        imported(entry("a", R"("real_time": 3, "cpu_time": 1, "time_unit": ")" + std::string(unit) + '"'));
    EXPECT_DOUBLE_EQ(found.records.at(0).metrics.at("real_time_s").samples[0], seconds);
  }
  const Imported odd = imported(entry("a", R"("real_time": 3, "cpu_time": 1, "time_unit": "weeks")"));
  EXPECT_EQ(odd.records.at(0).verdict, Verdict::failed);
  EXPECT_NE(odd.records[0].reason.find("weeks"), std::string::npos);
}

TEST(GoogleBenchmark, AnEntryWithoutATimeIsNoSuccess) {
  const Imported found = imported(entry("a", R"("iterations": 10, "time_unit": "ns")"));
  EXPECT_EQ(found.records.at(0).verdict, Verdict::failed);
}

TEST(GoogleBenchmark, CountersAreMetricsAndRatesHaveOurNames) {
  const Imported found = imported(entry(
      "a",
      R"("real_time": 1, "cpu_time": 1, "iterations": 7, "bytes_per_second": 5e9, "items_per_second": 3e6, "depth": 4)"));
  const auto& metrics = found.records.at(0).metrics;
  EXPECT_EQ(metrics.at("payload_bytes_per_s").unit, "B/s");
  EXPECT_DOUBLE_EQ(metrics.at("payload_bytes_per_s").samples[0], 5e9);
  EXPECT_DOUBLE_EQ(metrics.at("samples_per_s").samples[0], 3e6);
  EXPECT_DOUBLE_EQ(metrics.at("depth").samples[0], 4);
  EXPECT_FALSE(metrics.contains("iterations"));
  EXPECT_FALSE(metrics.contains("threads"));
}

TEST(GoogleBenchmark, AggregatesAreLeftOutAndReportedIfTheyAreAlone) {
  const std::string mean =
      R"({"name": "a_mean", "run_name": "a", "run_type": "aggregate", "aggregate_name": "mean", "real_time": NaN, "cpu_time": -Infinity, "label": "NaN"})";
  const Imported both = imported(entry("a", R"("real_time": 1, "cpu_time": 1)") + "," + mean);
  EXPECT_EQ(both.records.size(), 1U);
  EXPECT_TRUE(both.problems.empty());
  const Imported alone = imported(mean);
  EXPECT_TRUE(alone.records.empty());
  ASSERT_EQ(alone.problems.size(), 1U);
  EXPECT_NE(alone.problems[0].find("'a'"), std::string::npos);
  const Imported family =
      imported(entry("a/8", R"("real_time": 1, "cpu_time": 1)") +
               R"(,{"name": "a_BigO", "run_name": "a", "run_type": "aggregate", "cpu_coefficient": 1})");
  EXPECT_EQ(family.records.size(), 1U);
  EXPECT_TRUE(family.problems.empty());
}

TEST(GoogleBenchmark, AggregatesOfEarlyVersionsAreRecognized) {
  const Imported found =
      imported(R"({"name": "a", "real_time": 1, "cpu_time": 1}, {"name": "a", "real_time": 2, "cpu_time": 1},
      {"name": "a_mean", "real_time": 1.5, "cpu_time": 1}, {"name": "b_mean", "real_time": 9, "cpu_time": 1})");
  ASSERT_EQ(found.records.size(), 2U) << "b_mean is a benchmark: there is no b";
  EXPECT_EQ(found.records[0].metrics.at("real_time_s").samples.size(), 2U);
}

TEST(GoogleBenchmark, ErrorsAndSkipsAreVerdicts) {
  const Imported found = imported(
      entry("a", R"("error_occurred": true, "error_message": "cannot open", "real_time": 0, "cpu_time": 0)") +
      "," + entry("b", R"("skipped": true, "skip_message": "no library", "real_time": 0, "cpu_time": 0)"));
  ASSERT_EQ(found.records.size(), 2U);
  EXPECT_EQ(found.records[0].verdict, Verdict::failed);
  EXPECT_EQ(found.records[0].reason, "cannot open");
  EXPECT_TRUE(found.records[0].metrics.empty());
  EXPECT_EQ(found.records[1].verdict, Verdict::skipped);
  EXPECT_EQ(found.records[1].reason, "no library");
}

TEST(Foreign, OtherJsonIsNotImported) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"benchmarks": 3, "context": {}})", R"({"jobs": []})", "no JSON"})
    EXPECT_FALSE(import_foreign(text).has_value()) << text;
}

TEST(Foreign, IsReadFromFoldersAndOtherJsonIsReportedOnlyIfNamed) {
  std::string name = (std::filesystem::temp_directory_path() / "penstock-foreign-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::filesystem::path dir = name;
  std::ofstream(dir / "bench.json") << benchmark_file(entry("a", R"("real_time": 1, "cpu_time": 1)"));
  std::ofstream(dir / "package.json") << "{}\n";
  std::ofstream(dir / "bench.out") << "Running ./bench\n"
                                   << benchmark_file(entry("b", R"("real_time": 1, "cpu_time": 1)"));
  const auto folder = read_records(std::span(&dir, 1));
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder->records.size(), 2U);
  EXPECT_EQ(folder->files.size(), 2U);
  EXPECT_TRUE(folder->problems.empty());
  ASSERT_EQ(folder->remarks.size(), 1U);
  EXPECT_NE(
      folder->remarks[0].find("1 file without results skipped (first: " + (dir / "package.json").string()),
      std::string::npos)
      << folder->remarks[0];
  const std::vector<std::filesystem::path> named{dir / "package.json", dir / "bench.out"};
  const auto both = read_records(named);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->records.at(0).record.parameters.at("benchmark"), "b");
  ASSERT_EQ(both->problems.size(), 1U);
  EXPECT_NE(both->problems[0].find("package.json: neither records nor results of"), std::string::npos);
  std::filesystem::remove_all(dir);
}

// A cut file gets the same words if it is named and if it is in a folder: the parser's place and reason.
TEST(Foreign, ACutFileIsReportedAlikeHoweverItIsFound) {
  const std::string whole = benchmark_file(entry("a", R"("real_time": 1, "cpu_time": 1)"));
  std::string name = (std::filesystem::temp_directory_path() / "penstock-foreign-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::filesystem::path dir = name;
  const std::filesystem::path file = dir / "cut.json";
  EXPECT_EQ(json_fault(whole), "");
  EXPECT_EQ(json_fault("[\n{},\n{}"), json_fault("[{},  {}"));
  for (size_t length = 0; length + 1 < whole.find_last_of('}'); length += 7) {
    std::ofstream(file) << whole.substr(0, length);
    const auto named = read_records(std::span(&file, 1));
    const auto found = read_records(std::span(&dir, 1));
    ASSERT_TRUE(named.ok() && found.ok());
    EXPECT_EQ(named->problems, found->problems);
    ASSERT_EQ(named->problems.size(), 1U) << length;
    const std::string expected =
        length == 0 ? "an empty file" : "byte " + std::to_string(length + 1) + ", at the end: ";
    EXPECT_NE(named->problems[0].find(expected), std::string::npos) << named->problems[0];
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace penstock
