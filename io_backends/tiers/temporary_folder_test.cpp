#include "io_backends/tiers/temporary_folder.hpp"

#include <fstream>
#include <optional>
#include <vector>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

class TemporaryFolderTest : public testing::Test {
 protected:
  TemporaryFolderTest() : tier_(open_tier(scratch_.path().string(), kNoNamedTiers).value()) {}

  std::filesystem::path make(const std::string& name) {
    std::ofstream(scratch_.path() / name, std::ios::trunc) << "x";
    return scratch_.path() / name;
  }
  void sweep() {
    const auto note = [this](std::string_view text) { notes_.emplace_back(text); };
    sweep_dead_folders(tier_, kDemoFolderPrefix, note, note);
  }
  static void ignore(std::string_view) {}

  ScratchFolder scratch_;
  Tier tier_;
  std::vector<std::string> notes_;
};

TEST_F(TemporaryFolderTest, IsRemovedAtItsEndWithEverythingInIt) {
  std::filesystem::path path;
  {
    TemporaryFolder folder(tier_, kDemoFolderPrefix, ignore);
    folder.occupy();
    path = scratch_.path() / folder.name();
    ASSERT_TRUE(std::filesystem::is_directory(path));
    std::filesystem::create_directories(path / "data" / "deep");
    make(folder.name() + "/data/deep/file");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TemporaryFolderTest, OfALivingProcessStaysAndOfADeadOneIsRemoved) {
  TemporaryFolder alive(tier_, kDemoFolderPrefix, ignore);
  alive.occupy();
  for (const char* name : {"penstock-demo-00000001", "penstock-demo-mine", "penstock-probe-00000001"}) {
    std::filesystem::create_directory(scratch_.path() / name);
    make(std::string(name) + "/lock");
    make(std::string(name) + "/file");
  }
  sweep();
  EXPECT_TRUE(std::filesystem::exists(scratch_.path() / alive.name() / "lock"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "penstock-demo-00000001"));
  EXPECT_TRUE(std::filesystem::exists(scratch_.path() / "penstock-demo-mine")) << "not our name";
  EXPECT_TRUE(std::filesystem::exists(scratch_.path() / "penstock-probe-00000001")) << "of another kind";
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_NE(notes_[0].find("penstock-demo-00000001"), std::string::npos);
}

TEST_F(TemporaryFolderTest, ThatIsKeptIsNotRemovedByTheNext) {
  std::string name;
  {
    TemporaryFolder folder(tier_, kDemoFolderPrefix, ignore);
    folder.occupy();
    name = folder.name();
    make(name + "/data");
    folder.keep();
  }
  sweep();
  EXPECT_TRUE(std::filesystem::exists(scratch_.path() / name / "data"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / name / "lock"));
  EXPECT_TRUE(notes_.empty());
}

TEST_F(TemporaryFolderTest, WhoseRemovalWasInterruptedIsRemoved) {
  std::filesystem::create_directory(scratch_.path() / "penstock-demo-00000002");  // only the lock was removed
  sweep();
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "penstock-demo-00000002"));
}

TEST_F(TemporaryFolderTest, OnANetworkNothingIsRemoved) {
  std::filesystem::create_directory(scratch_.path() / "penstock-demo-00000001");
  make("penstock-demo-00000001/lock");
  tier_.facts.network = true;
  sweep();
  EXPECT_TRUE(std::filesystem::exists(scratch_.path() / "penstock-demo-00000001"));
}

}  // namespace
}  // namespace penstock
