#include "results/record/store.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class Store : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-store-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  static Record record(const std::string& id = "0123456789abcdef-0") {
    Record record;
    record.id = id;
    record.started = "2026-11-20T09:30:00Z";
    record.command = "read";
    record.metrics["wall_s"] = {"s", Better::lower, "run", {1.5}};
    return record;
  }
  RecordSet read(const fs::path& path) const {
    auto set = read_records(std::span(&path, 1));
    EXPECT_TRUE(set.ok()) << set.error().message();
    return set.ok() ? *std::move(set) : RecordSet{};
  }
  fs::path dir_;
};

constexpr const char* kSteps[] = {"create", "write", "sync", "rename", "sync_dir"};

TEST_F(Store, NamesTheFileByTimeCommandAndShortIdAndMakesTheFolder) {
  const std::vector<Record> records{record(), record("0123456789abcdef-1")};
  const auto path = write_records(dir_ / "a" / "b", records);
  ASSERT_TRUE(path.ok()) << path.error().message();
  EXPECT_EQ(*path, dir_ / "a" / "b" / "20261120T093000Z-read-01234567.jsonl");
  const RecordSet set = read(dir_ / "a" / "b");
  ASSERT_EQ(set.records.size(), 2U);
  EXPECT_TRUE(set.problems.empty());
  EXPECT_EQ(set.records[1].record.id, "0123456789abcdef-1");
  EXPECT_EQ(set.records[1].line, 2U);
  EXPECT_EQ(record_line(set.records[0].record), record_line(records[0]));
}

TEST_F(Store, NeverReplacesAFile) {
  const std::vector<Record> records{record()};
  const auto first = write_records(dir_, records);
  const auto second = write_records(dir_, records);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, *second);
  EXPECT_EQ(read(dir_).records.size(), 2U);
}

TEST_F(Store, AKillBeforeAnyStepLeavesAWholeFileOrNone) {
  for (const char* step : kSteps) {
    const fs::path folder = dir_ / step;
    const pid_t child = ::fork();
    if (child == 0) {
      const std::vector<Record> records{record()};
      (void)write_records(folder, records, [&](std::string_view name) -> Result<void> {
        if (name == step) ::_exit(9);
        return success();
      });
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(WEXITSTATUS(status), 9) << step;
    const RecordSet set = read(folder);
    EXPECT_TRUE(set.problems.empty()) << step;
    EXPECT_EQ(set.records.size(), std::string_view(step) == "sync_dir" ? 1U : 0U) << step;
  }
}

TEST_F(Store, AFailedStepIsAnErrorAndLeavesNoTemporaryFile) {
  for (const char* step : kSteps) {
    const fs::path folder = dir_ / step;
    const std::vector<Record> records{record()};
    const auto path = write_records(folder, records, [&](std::string_view name) -> Result<void> {
      if (name == step) return errno_error(EIO, "cannot write", "injected");
      return success();
    });
    ASSERT_FALSE(path.ok()) << step;
    EXPECT_EQ(path.error().code, Errc::io);
    for (const auto& entry : fs::directory_iterator(folder)) EXPECT_EQ(entry.path().extension(), ".jsonl");
    EXPECT_EQ(read(folder).records.size(), std::string_view(step) == "sync_dir" ? 1U : 0U) << step;
  }
}

TEST_F(Store, AFileIsReplacedOnlyIfRequested) {
  ASSERT_TRUE(write_durable_file(dir_, "it", "one", false).ok());
  EXPECT_EQ(write_durable_file(dir_, "it", "two", false).error().code, Errc::already_exists);
  ASSERT_TRUE(write_durable_file(dir_, "it", "three", true).ok());
  std::string text;
  std::ifstream(dir_ / "it") >> text;
  EXPECT_EQ(text, "three");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);
}

TEST_F(Store, ConcurrentWritersLoseNoRecords) {
  constexpr int kWriters = 8;
  {
    std::vector<std::jthread> writers;
    writers.reserve(kWriters);
    for (int i = 0; i < kWriters; ++i)
      writers.emplace_back([this] {
        const std::vector<Record> records{record()};  // all writers try the same file name
        EXPECT_TRUE(write_records(dir_, records).ok());
      });
  }
  EXPECT_EQ(read(dir_).records.size(), size_t(kWriters));
}

TEST_F(Store, NamesCorruptLinesAndKeepsTheRest) {
  const std::string good = record_line(record());
  std::ofstream(dir_ / "x.jsonl") << good << "\n"
                                  << good.substr(0, good.size() / 2) << "\n\n"
                                  << "[1]\n"
                                  << good << "\n"
                                  << std::string(100000, '[') << "\n";
  std::ofstream(dir_ / ".hidden.jsonl") << "junk";
  std::ofstream(dir_ / "notes.txt") << "junk";
  const RecordSet set = read(dir_);
  ASSERT_EQ(set.records.size(), 2U);
  EXPECT_EQ(set.records[1].line, 5U);
  ASSERT_EQ(set.problems.size(), 3U);
  EXPECT_NE(set.problems[0].find("x.jsonl:2: "), std::string::npos) << set.problems[0];
  EXPECT_NE(set.problems[1].find("x.jsonl:4: "), std::string::npos) << set.problems[1];
  EXPECT_NE(set.problems[2].find("x.jsonl:6: "), std::string::npos) << set.problems[2];
}

TEST_F(Store, AChangedOrMissingLineIsReportedAndTheRestIsKept) {
  const auto path =
      write_records(dir_, std::vector<Record>{record("0123456789abcdef-0"), record("0123456789abcdef-1"),
                                              record("0123456789abcdef-2")});
  ASSERT_TRUE(path.ok());
  std::ifstream in(*path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3U);
  std::string changed = lines[1];
  changed.replace(changed.find("1.5"), 3, "9.5");
  const fs::path torn = dir_ / "torn" / "a.jsonl";
  fs::create_directories(torn.parent_path());
  std::ofstream(torn) << lines[0] << "\n" << changed << "\n";
  const RecordSet set = read(torn);
  ASSERT_EQ(set.records.size(), 1U);
  ASSERT_EQ(set.problems.size(), 2U);
  EXPECT_NE(set.problems[0].find("a.jsonl:2: changed since it was written"), std::string::npos)
      << set.problems[0];
  EXPECT_NE(set.problems[1].find("a.jsonl: line 3 of 3"), std::string::npos) << set.problems[1];
}

TEST_F(Store, AFileWithoutSealsIsReadAndAnEmptyFileIsReported) {
  std::ofstream(dir_ / "early.jsonl") << record_line(record()) << "\n" << record_line(record("b-1")) << "\n";
  std::ofstream(dir_ / "gone.jsonl") << "\n";
  const RecordSet set = read(dir_);
  EXPECT_EQ(set.records.size(), 2U);
  ASSERT_EQ(set.problems.size(), 1U);
  EXPECT_NE(set.problems[0].find("gone.jsonl: holds no record"), std::string::npos) << set.problems[0];
}

TEST_F(Store, ConcatenatedFilesAreRead) {
  std::ofstream all(dir_ / "all.jsonl");
  for (const char* folder : {"a", "b"}) {
    const auto path =
        write_records(dir_ / folder, std::vector<Record>{record(), record("0123456789abcdef-1")});
    ASSERT_TRUE(path.ok());
    all << std::ifstream(*path).rdbuf();
  }
  all.close();
  const RecordSet set = read(dir_);
  EXPECT_EQ(set.records.size(), 4U);
  EXPECT_TRUE(set.problems.empty()) << set.problems.front();
}

TEST_F(Store, DeepNestingInsideARecordIsRefused) {
  std::string line = record_line(record());
  const std::string empty = R"("tiers":{})";
  line.replace(line.find(empty), empty.size(),
               R"("tiers":{"x":)" + std::string(5000, '[') + std::string(5000, ']') + "}");
  const auto parsed = parse_record_line(line);
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().message().find("nested"), std::string::npos);
}

TEST_F(Store, AFileThatIsReachedByTwoPathsCountsOnce) {
  const auto path = write_records(dir_, std::vector<Record>{record(), record("0123456789abcdef-1")});
  ASSERT_TRUE(path.ok()) << path.error().message();
  fs::create_symlink(*path, dir_ / "again.jsonl");
  const std::vector<fs::path> twice{dir_, *path};
  const auto set = read_records(twice);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->records.size(), 2U);
}

TEST_F(Store, ReportsWhichPathIsMissing) {
  const fs::path missing = dir_ / "nowhere";
  const auto set = read_records(std::span(&missing, 1));
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, Errc::not_found);
  EXPECT_NE(set.error().message().find("nowhere"), std::string::npos);
}

TEST_F(Store, HostileNamesCannotLeaveTheFolder) {
  Record hostile = record("../../../x");
  hostile.command = "../evil";
  hostile.started = "../../now";
  const std::vector<Record> records{hostile};
  const auto path = write_records(dir_, records);
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(path->parent_path(), dir_);
}

TEST_F(Store, CheckingAFolderLeavesItUnchanged) {
  for (const fs::path& folder : {dir_, dir_ / "a" / "b", dir_ / "a" / "b" / ""}) {
    const auto tried = check_results_folder(folder);
    EXPECT_TRUE(tried.ok()) << tried.error().message();
  }
  EXPECT_TRUE(fs::is_empty(dir_));
  std::ofstream(dir_ / "file") << "of somebody";
  fs::create_symlink("nowhere", dir_ / "link");
  // Nothing can make a folder in /proc, whatever its permissions are.
  for (const fs::path& folder : {dir_ / "file", dir_ / "file" / "runs", dir_ / "link", dir_ / "link" / "runs",
                                 dir_ / std::string(300, 'x'), fs::path("/proc/penstock-runs")}) {
    const auto refused = check_results_folder(folder);
    ASSERT_FALSE(refused.ok()) << folder;
    EXPECT_NE(refused.error().what.find("'" + folder.string() + "'"), std::string::npos);
    EXPECT_NE(refused.error().what.find("--results DIR"), std::string::npos);
  }
}

TEST_F(Store, ConcurrentChecksOfAFolderSucceed) {
  std::vector<std::jthread> threads;
  std::atomic<int> refused{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        if (!check_results_folder(dir_ / "a" / "b").ok()) ++refused;
    });
  threads.clear();
  EXPECT_EQ(refused, 0);
  EXPECT_TRUE(fs::is_empty(dir_)) << "each takes away what it made";
}

TEST_F(Store, CheckingAMissingFolderNeverShowsItToOthers) {
  std::atomic<bool> done{false};
  int seen = 0;
  {
    const std::jthread observer([&] {
      while (!done) seen += fs::exists(dir_ / "a") ? 1 : 0;
    });
    for (int i = 0; i < 500; ++i) EXPECT_TRUE(check_results_folder(dir_ / "a" / "b").ok());
    done = true;
  }
  EXPECT_EQ(seen, 0);
}

TEST(ParseRecord, LengthsOfIntervalsAreKeptAndFitTheirValues) {
  Record record;
  record.id = "0";
  record.started = "2026-11-20T09:30:00Z";
  record.command = "read";
  record.series["payload_bytes"].append_seconds(std::vector<double>{5, 6, 7}, 2.5);
  Json json = to_json(record);
  const auto parsed = record_from_json(json);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(parsed->series.at("payload_bytes").lengths_s, (std::vector<double>{1, 1.5}));
  for (const Json& wrong : {Json{1.0}, Json{1.0, 0.0}, Json{1.0, -1.0}, Json{"1", 2}}) {
    json["series"]["payload_bytes"]["lengths_s"] = wrong;
    EXPECT_FALSE(record_from_json(json).ok()) << wrong.dump();
  }
}

TEST(RandomId, IsHexAndDiffers) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert(random_id(8));
  EXPECT_GE(ids.size(), 99U);
  EXPECT_EQ(random_id(33).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(random_id(33).size(), 33U);
}

}  // namespace
}  // namespace penstock
