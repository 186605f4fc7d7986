#include "results/import/json_documents.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "results/import/import_testing.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

// What fio writes after `elapsed_ms` of a run: an object of --status-interval, or the last one.
std::string fio_status(double written_ms, double elapsed_ms, double bytes, const std::string& job = "a") {
  return R"({"fio version": "fio-3.33", "timestamp_ms": )" + std::to_string(written_ms) +
         R"(, "jobs": [{"jobname": ")" + job + R"(", "groupid": 0, "elapsed": )" +
         std::to_string(int(elapsed_ms / 1000) + 1) +
         R"(, "job options": {"rw": "read"}, "read": {"io_bytes": )" + std::to_string(bytes) +
         R"(, "io_kbytes": 1, "total_ios": 1, "runtime": )" + std::to_string(elapsed_ms) + "}}]}";
}

std::vector<double> rates_in(const std::string& text) {
  std::vector<double> rates;
  for (const Record& record : imported_records(text))
    for (const double rate : samples_of_metric(record, "payload_bytes_per_s")) rates.push_back(rate);
  return rates;
}

TEST(JsonDocuments, ObjectsAreFoundHoweverTheyAreWritten) {
  for (const std::string text :
       {"{\"a\": 1}{\"a\": 2}", "{\"a\": 1}\n{\"a\": 2}\n", "note\n{\n\"a\": [{}, \"}\"]\n}\nmore\n{}\nend",
        "[{\"a\": 1},\n{\"a\": nan}]", "\n  {\"a\": -nan} {\"b\": inf}"}) {
    std::vector<std::string> faults;
    EXPECT_EQ(json_documents(text, faults).size(), 2U) << text;
    EXPECT_TRUE(faults.empty()) << text;
  }
}

TEST(JsonDocuments, ADamagedObjectIsNamedAndTheOthersAreRead) {
  std::vector<std::string> faults;
  EXPECT_EQ(json_documents("{\"a\": 1}\n{\"b\": \n{\"c\": 3}\n", faults).size(), 2U);
  EXPECT_EQ(faults.size(), 1U);
  faults.clear();
  EXPECT_EQ(json_documents("{\"a\": 1}\n{\"b\": [nan, 2", faults).size(), 1U);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_NE(faults[0].find("byte 23, at the end"), std::string::npos) << faults[0];
  faults.clear();
  std::string hostile;
  for (int i = 0; i < 100'000; ++i) hostile += "{\n";
  EXPECT_TRUE(json_documents(hostile, faults).empty());
  EXPECT_LE(faults.size(), 16U);
}

TEST(JsonDocuments, OfOneRunOfFioTheLastObjectCountsAndRunsStayApart) {
  const std::string early = fio_status(100'795, 795, 1000);
  const std::string last = fio_status(103'008, 3008, 6016);
  const std::string next_run = fio_status(104'100, 1000, 4000);
  EXPECT_EQ(rates_in(early + "\n" + fio_status(101'799, 1799, 3000) + last), std::vector{2000.0});
  EXPECT_EQ(rates_in(last + "\n" + next_run), (std::vector{2000.0, 4000.0}))
      << "it began after the first ended";
  EXPECT_EQ(rates_in(last + fio_status(103'008, 3008, 3008, "b")), (std::vector{2000.0, 1000.0}))
      << "another job";
}

TEST(JsonDocuments, ObjectsOfNoKnownProgramAreCounted) {
  const auto found = import_foreign(fio_status(103'008, 3008, 6016) + "\n{}\n{\"a\": 1}\n{\"cut\": \n");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->records.size(), 1U);
  ASSERT_EQ(found->problems.size(), 2U);
  EXPECT_NE(found->problems[0].find("object 2 of 3"), std::string::npos) << found->problems[0];
  EXPECT_NE(found->problems[0].find("1 more"), std::string::npos);
  EXPECT_NE(found->problems[1].find("at the end"), std::string::npos) << found->problems[1];
}

TEST(JsonDocuments, ARunThatIsTooShortForFiosClockHasNoRate) {
  const auto records = imported_records(
      R"({"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"io_bytes": 4096, "total_ios": 1, "bw_bytes": 0, "iops": nan, "runtime": 0}}]})");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_FALSE(records[0].metrics.contains("payload_bytes_per_s"));
  EXPECT_FALSE(records[0].metrics.contains("ops_per_s"));
  EXPECT_FALSE(records[0].metrics.contains("wall_s"));
  EXPECT_EQ(samples_of_metric(records[0], "payload_bytes"), std::vector{4096.0});
}

TEST(JsonDocuments, AFolderGivesWhatCanBeReadAndCountsTheRest) {
  std::string name = (std::filesystem::temp_directory_path() / "penstock-documents-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::filesystem::path dir = name;
  const std::string result = fio_status(103'008, 3008, 6016);
  std::ofstream(dir / "a.json") << result;
  std::ofstream(dir / "b.txt") << "fio says\n" << fio_status(103'008, 3008, 6016, "b");
  std::ofstream(dir / "copy.json") << result;
  std::ofstream(dir / "x.csv") << "access,bw(MiB/s),IOPS\n";
  std::ofstream(dir / "y.log") << std::string(3 << 20, 'y');
  std::ofstream(dir / "z.json") << "{}\n";
  const auto found = read_records(std::span(&dir, 1));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->records.size(), 2U);
  EXPECT_TRUE(found->problems.empty());
  ASSERT_EQ(found->remarks.size(), 2U);
  EXPECT_NE(found->remarks[0].find("2 files"), std::string::npos) << found->remarks[0];
  EXPECT_NE(found->remarks[0].find("x.csv: it is IOR's CSV: run IOR with"), std::string::npos)
      << found->remarks[0];
  EXPECT_NE(found->remarks[1].find("1 result"), std::string::npos) << found->remarks[1];
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace penstock
