#include "miniapps/checkpoint/ack_log.hpp"

#include <fstream>
#include <sstream>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

std::string text_at(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(AckLog, AppendsToAnExistingLog) {
  const ScratchFolder folder;
  const std::string path = (folder.path() / "acks").string();
  {
    const auto log = log_acknowledgements(path).value();
    ASSERT_OK(log({.step = 20}, Reached::fast));
    EXPECT_EQ(text_at(path), "20 fast\n") << "at once";
    ASSERT_OK(log({.step = 20, .generation = 1}, Reached::durable));
  }
  const auto log = log_acknowledgements(path).value();
  ASSERT_OK(log({.step = 40}, Reached::durable));
  EXPECT_EQ(text_at(path), "20 fast\n20 durable\n40 durable\n");
}

TEST(AckLog, RemovesATornLastLine) {
  const ScratchFolder folder;
  const std::string path = (folder.path() / "acks").string();
  for (const char* torn : {"4", "40", "40 ", "40 fa", "40 fast", "40 durabl", "40 durable"}) {
    std::ofstream(path) << "20 fast\n" << torn;
    ASSERT_OK(log_acknowledgements(path).value()({.step = 60}, Reached::fast));
    EXPECT_EQ(text_at(path), "20 fast\n60 fast\n") << torn;
    std::ofstream(path) << torn;
    ASSERT_OK(log_acknowledgements(path).value()({.step = 60}, Reached::fast));
    EXPECT_EQ(text_at(path), "60 fast\n") << torn;
  }
}

TEST(AckLog, RefusesAFileThatIsNoLogAndKeepsIt) {
  const ScratchFolder folder;
  const std::string path = (folder.path() / "acks").string();
  for (const std::string& other :
       {std::string("my notes"), std::string("1 fast\n2 slow"), std::string(100, '1')}) {
    std::ofstream(path) << other;
    EXPECT_ERRC(Errc::invalid_argument, log_acknowledgements(path), "another --ack-log");
    EXPECT_EQ(text_at(path), other);
  }
}

TEST(AckLog, NamesAFileThatCannotBeWritten) {
  EXPECT_ERRC(Errc::not_found, log_acknowledgements("/proc/nothing/acks"), "/proc/nothing/acks");
}

}  // namespace
}  // namespace penstock
