#include "miniapps/ack_log.hpp"

#include <fstream>
#include <sstream>

#include "io_backends/base/testing.hpp"

namespace penstock {
namespace {

std::string text_at(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(AckLog, GoesOnBehindWhatIsThere) {
  const ScratchFolder folder;
  const std::string path = (folder.path() / "acks").string();
  {
    AckLog log = AckLog::open(path).value();
    ASSERT_OK(log.write({.step = 20}, Reached::fast));
    EXPECT_EQ(text_at(path), "20 fast\n") << "at once";
    ASSERT_OK(log.write({.step = 20, .generation = 1}, Reached::durable));
  }
  AckLog log = AckLog::open(path).value();
  ASSERT_OK(log.write({.step = 40}, Reached::durable));
  EXPECT_EQ(text_at(path), "20 fast\n20 durable\n40 durable\n");
}

TEST(AckLog, NamesAFileThatCannotBeWritten) {
  EXPECT_ERRC(Errc::not_found, AckLog::open("/proc/nothing/acks"), "/proc/nothing/acks");
}

}  // namespace
}  // namespace penstock
