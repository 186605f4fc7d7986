#include "results/record/baseline.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class Baselines : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-baseline-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    runs_ = dir_ / "runs";
  }
  void TearDown() override { fs::remove_all(dir_); }

  fs::path write(const fs::path& folder, double rate) const {
    return write_records(folder, std::vector<Record>{read_cell("disk", 1, "cold", rate)}).value();
  }
  Result<Baseline> save(const std::string& name, const std::vector<fs::path>& paths) const {
    return save_baseline(runs_, name, paths);
  }
  Result<RecordSet> read(const std::string& name) const {
    const fs::path path = runs_ / ("baseline:" + name);
    return read_records(std::span(&path, 1));
  }
  fs::path dir_;
  fs::path runs_;
};

TEST_F(Baselines, ResolveToTheirFiles) {
  const fs::path first = write(runs_, 100);
  const fs::path second = write(runs_, 200);
  const fs::path elsewhere = write(dir_ / "other", 300);
  ASSERT_TRUE(save("main", {first, elsewhere}).ok());
  const auto set = read("main");
  ASSERT_TRUE(set.ok()) << set.error().message();
  ASSERT_EQ(set->files.size(), 2U);
  EXPECT_EQ(set->files[0].filename(), first.filename());
  EXPECT_EQ(set->files[1].filename(), elsewhere.filename());
  EXPECT_EQ(fs::exists(second), true);
}

TEST_F(Baselines, OfAFolderListItsPresentFiles) {
  write(runs_, 100);
  ASSERT_TRUE(save("main", {runs_}).ok());
  write(runs_, 200);
  const auto set = read("main");
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->records.size(), 1U)
      << "the folder's own baselines are no records, and later runs are not of it";
  const auto all = read_records(std::span(&runs_, 1));
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->records.size(), 2U);
  EXPECT_TRUE(all->problems.empty());
}

TEST_F(Baselines, StayValidIfTheirFolderMoves) {
  ASSERT_TRUE(save("main", {write(runs_, 100)}).ok());
  fs::rename(runs_, dir_ / "moved");
  const fs::path path = dir_ / "moved" / "baseline:main";
  const auto set = read_records(std::span(&path, 1));
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->records.size(), 1U);
}

TEST_F(Baselines, AreInvalidIfFilesAreMissingOrChanged) {
  const fs::path file = write(runs_, 100);
  ASSERT_TRUE(save("main", {file}).ok());
  std::ofstream(file, std::ios::app) << " ";
  auto set = read("main");
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, Errc::corrupt);
  EXPECT_NE(set.error().what.find("'main'"), std::string::npos) << set.error().what;
  EXPECT_NE(set.error().what.find(file.filename().string()), std::string::npos) << set.error().what;
  fs::remove(file);
  set = read("main");
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, Errc::not_found);
  EXPECT_NE(set.error().what.find("was deleted"), std::string::npos) << set.error().what;
  EXPECT_FALSE(check_baseline(runs_, list_baselines(runs_).value()[0]).ok());
}

TEST_F(Baselines, AreReplacedAtomically) {
  ASSERT_TRUE(save("main", {write(runs_, 100)}).ok());
  const std::vector<fs::path> next{write(runs_, 200)};
  for (const char* step : {"create", "write", "sync", "rename"}) {
    const auto failed = save_baseline(runs_, "main", next, [&](std::string_view name) -> Result<void> {
      if (name == step) return errno_error(EIO, "cannot write", "injected");
      return success();
    });
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, Errc::io);
    EXPECT_EQ(read("main").value().records[0].record.metrics.at("payload_bytes_per_s").value(),
              100.0 * 1048576);
    EXPECT_EQ(list_baselines(runs_).value().size(), 1U) << "nothing is left of it";
  }
  ASSERT_TRUE(save("main", next).ok());
  EXPECT_EQ(read("main").value().records[0].record.metrics.at("payload_bytes_per_s").value(),
            200.0 * 1048576);
}

TEST_F(Baselines, AreListedByNameAndRemoved) {
  EXPECT_TRUE(list_baselines(runs_).value().empty());
  const fs::path file = write(runs_, 100);
  for (const char* name : {"v2", "main"}) ASSERT_TRUE(save(name, {file}).ok());
  const auto all = list_baselines(runs_);
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].name, "main");
  EXPECT_EQ((*all)[1].name, "v2");
  EXPECT_TRUE(remove_baseline(runs_, "v2").ok());
  EXPECT_EQ(remove_baseline(runs_, "v2").error().code, Errc::not_found);
  EXPECT_EQ(list_baselines(runs_).value().size(), 1U);
  EXPECT_TRUE(fs::exists(file));
}

TEST_F(Baselines, RefuseInvalidNamesAndRecords) {
  for (const char* name : {"", "../x", ".hidden", "a/b", "a b"})
    EXPECT_EQ(save(name, {write(runs_, 100)}).error().code, Errc::invalid_argument) << name;
  fs::create_directories(dir_ / "empty");
  EXPECT_EQ(save("main", {dir_ / "empty"}).error().code, Errc::invalid_argument);
  EXPECT_EQ(save("main", {dir_ / "nowhere"}).error().code, Errc::not_found);
  std::ofstream(dir_ / "torn.jsonl") << "{";
  EXPECT_EQ(save("main", {dir_ / "torn.jsonl"}).error().code, Errc::corrupt);
  EXPECT_EQ(read("main").error().code, Errc::not_found);
  EXPECT_NE(read("main").error().what.find("no baseline 'main'"), std::string::npos);
  fs::create_directories(runs_ / "baselines");
  std::ofstream(runs_ / "baselines" / "main")
      << R"({"files": [{"path": "x", "crc32c": "0000000g", "bytes": 1}]})";
  EXPECT_EQ(read("main").error().code, Errc::corrupt);
}

}  // namespace
}  // namespace penstock
