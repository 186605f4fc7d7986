#include "io_backends/configuration/config_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace penstock {
namespace {

class SiteFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-site-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    if (read("", "read").ok()) return;
    GTEST_SKIP() << "this build lacks yaml-cpp";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  Result<SiteFile> read(const std::string& text, std::string_view command = "read") const {
    std::ofstream(dir_ / "penstock.yaml") << text;
    return read_site_file(
        dir_ / "penstock.yaml", command,
        {{"read", "tiers", "train"}, {"min-time", "results", "threads"}, {"probe", "tier"}});
  }
  std::string refusal(const std::string& text) const {
    const auto site = read(text);
    return site.ok() ? "it was taken" : site.error().message();
  }
  std::filesystem::path dir_;
};

std::string words(const std::vector<OptionWord>& flags) {
  std::string text;
  for (const OptionWord& flag : flags) text += flag.key + "=" + flag.value + " ";
  return text;
}

TEST_F(SiteFiles, FlagsAreOfTheCommandAndDefaultsOfAll) {
  const auto site =
      read("read: {threads: [1, 2], min_time: 1s}\ntrain: {threads: 4}\ndefaults: {results: /r}\n");
  ASSERT_TRUE(site.ok()) << site.error().message();
  EXPECT_EQ(words(site->flags), "threads=1 threads=2 min-time=1s ");
  EXPECT_EQ(words(site->defaults), "results=/r ");
  EXPECT_TRUE(site->tiers.empty());
  EXPECT_TRUE(site->launcher.empty());
}

TEST_F(SiteFiles, TiersAreNamesNextToTheFlagsOfTheCommand) {
  const std::string text =
      "tiers:\n  fast: posix:/dev/shm/p\n  disk: {spec: 'posix:/data/p', fail: 'eio@0.1,read:eio@#2'}\n  "
      "probe: true\n  tier: [/a, /b]\n";
  const auto other = read(text);
  ASSERT_TRUE(other.ok()) << other.error().message();
  ASSERT_EQ(other->tiers.size(), 2U);
  EXPECT_EQ(other->tiers[0].key, "fast");
  EXPECT_EQ(other->tiers[0].value, "posix:/dev/shm/p");
  EXPECT_EQ(other->tiers[1].value, "posix:/data/p,fail=eio@0.1%2Cread:eio@#2");
  EXPECT_EQ(words(other->flags), "");
  EXPECT_EQ(words(read(text, "tiers").value().flags), "probe=true tier=/a tier=/b ");
}

TEST_F(SiteFiles, TheLauncherHasAPlaceholderForTheNumberOfRanks) {
  EXPECT_EQ(read("launcher: mpirun --oversubscribe -n {ranks}\n").value().launcher,
            (std::vector<std::string>{"mpirun", "--oversubscribe", "-n", "{ranks}"}));
  EXPECT_EQ(read("launcher: [srun, '--ntasks={ranks}', 'a b']\n").value().launcher,
            (std::vector<std::string>{"srun", "--ntasks={ranks}", "a b"}));
}

TEST_F(SiteFiles, NothingInAFileIsSkipped) {
  EXPECT_NE(refusal("read: {threads: 1, threads: 2}\n").find("'threads' twice"), std::string::npos);
  EXPECT_NE(refusal("read: {threads: 1}\nread: {threads: 2}\n").find("'read' twice"), std::string::npos);
  EXPECT_NE(refusal("read: {threads: 1}\n---\nread: {threads: 2}\n").find("second document"),
            std::string::npos);
  for (const char* const merged : {"5", "[{threads: 1}, 5]"})
    EXPECT_NE(refusal(std::string("read: {<<: ") + merged + "}\n").find("'<<'"), std::string::npos) << merged;
  EXPECT_EQ(words(read("---\nread: {threads: 1}\n...\n").value().flags), "threads=1 ");
  EXPECT_EQ(words(read("train: &t {threads: 4}\nread: {<<: *t, min_time: 1s}\n").value().flags),
            "min-time=1s threads=4 ");
}

TEST_F(SiteFiles, ErrorsNameTheFile) {
  for (const auto& [text, said] :
       {std::pair("raed: {}\n", "did you mean 'read'?"), std::pair("tires: {}\n", "did you mean 'tiers'?"),
        std::pair("defaults: {thraeds: 1}\n", "did you mean 'threads'?"),
        std::pair("tiers: {fast: here}\n", "needs BACKEND:PATH"),
        std::pair("tiers: {'a b': /x}\n", "not a valid tier name"),
        std::pair("tiers: {fast: {limit: 1MB/s}}\n", "its 'spec'"),
        std::pair("tiers: {fast: {spec: /x, limit: [1]}}\n", "option 'limit'"),
        std::pair("tiers: [/x]\n", "mapping from names"), std::pair("launcher: mpirun -n 4\n", "{ranks}"),
        std::pair("launcher: {a: b}\n", "{ranks}"), std::pair("read: {threads: {a: 1}}\n", "flag 'threads'"),
        std::pair("read: [\n", "penstock.yaml"), std::pair("[a]\n", "sections")}) {
    EXPECT_NE(refusal(text).find(said), std::string::npos) << text << refusal(text);
    EXPECT_NE(refusal(text).find("penstock.yaml"), std::string::npos) << text << refusal(text);
  }
}

}  // namespace
}  // namespace penstock
