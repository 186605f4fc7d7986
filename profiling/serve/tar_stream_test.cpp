#include "profiling/serve/tar_stream.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

namespace penstock {
namespace {

namespace fs = std::filesystem;

class TarStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-tar-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  static std::string all_of(TarStream& stream, size_t at_a_time) {
    std::string all;
    std::string buffer(at_a_time, '?');
    for (;;) {
      const Result<size_t> got = stream.read(buffer);
      EXPECT_TRUE(got.ok());
      if (!got.ok() || *got == 0) return all;
      all += buffer.substr(0, *got);
    }
  }

  // Returns the name and the content of each member of an archive. Only the archive's headers are used to
  // find them.
  static std::map<std::string, std::string> members_of(const std::string& archive) {
    std::map<std::string, std::string> members;
    size_t at = 0;
    while (at + 512 <= archive.size() && archive[at] != '\0') {
      const std::string name = archive.substr(at, 100).c_str();
      const std::string prefix = archive.substr(at + 345, 155).c_str();
      const size_t size = std::stoull(archive.substr(at + 124, 11), nullptr, 8);
      EXPECT_EQ(archive.substr(at + 257, 8), std::string("ustar\00000", 8));
      EXPECT_EQ(archive[at + 156], '0');
      members[prefix.empty() ? name : prefix + "/" + name] = archive.substr(at + 512, size);
      at += 512 + (size + 511) / 512 * 512;
    }
    EXPECT_EQ(archive.size() - at, 1024U);
    EXPECT_EQ(archive.find_first_not_of('\0', at), std::string::npos);
    return members;
  }

  fs::path folder_;
};

TEST_F(TarStreamTest, ContainsOnlyTheFilesOfASession) {
  const std::string odd(1000, 'o');
  write("1-1.session", "");
  write("2-2.session", std::string(512, 'a'));
  write("3-3.session", odd);
  write("session.json", "{}\n");
  write("secret.txt", "not of it");
  fs::create_symlink("/etc/passwd", folder_ / "4-4.session");
  fs::create_directory(folder_ / "5-5.session");
  for (const size_t step : {size_t{1} << 20U, size_t{512}, size_t{7}, size_t{1}}) {
    const auto stream = TarStream::of_session(folder_, "s");
    ASSERT_TRUE(stream.ok());
    const std::string archive = all_of(**stream, step);
    EXPECT_EQ(archive.size(), (*stream)->bytes());
    const std::map<std::string, std::string> expected{{"s/1-1.session", ""},
                                                      {"s/2-2.session", std::string(512, 'a')},
                                                      {"s/3-3.session", odd},
                                                      {"s/session.json", "{}\n"}};
    EXPECT_EQ(members_of(archive), expected);
  }
}

TEST_F(TarStreamTest, AGrownFileIsTruncatedAndAShrunkFileIsPadded) {
  write("1-1.session", std::string(700, 'a'));
  write("2-2.session", std::string(700, 'b'));
  write("session.json", "{\"a\": 1}");
  const auto stream = TarStream::of_session(folder_, "s");
  ASSERT_TRUE(stream.ok());
  std::ofstream(folder_ / "1-1.session", std::ios::app) << std::string(5000, 'c');
  fs::resize_file(folder_ / "2-2.session", 100);
  write("session.json", "{\"a\": 12345}");
  const std::string archive = all_of(**stream, 300);
  EXPECT_EQ(archive.size(), (*stream)->bytes());
  const std::map<std::string, std::string> expected{
      {"s/1-1.session", std::string(700, 'a')},
      {"s/2-2.session", std::string(100, 'b') + std::string(600, '\0')},
      {"s/session.json", "{\"a\": 1}"}};
  EXPECT_EQ(members_of(archive), expected);
}

TEST_F(TarStreamTest, AReplacedFileIsAnError) {
  write("1-1.session", "a");
  const auto stream = TarStream::of_session(folder_, "s");
  ASSERT_TRUE(stream.ok());
  write("other", "bbbb");
  fs::rename(folder_ / "other", folder_ / "1-1.session");
  std::string buffer(4096, '?');
  EXPECT_FALSE((*stream)->read(buffer).ok());
}

TEST_F(TarStreamTest, AFolderWithoutASessionIsNotFound) {
  write("secret.txt", "x");
  EXPECT_EQ(TarStream::of_session(folder_, "s").error().code, Errc::not_found);
  EXPECT_EQ(TarStream::of_session(folder_ / "none", "s").error().code, Errc::not_found);
}

}  // namespace
}  // namespace penstock
