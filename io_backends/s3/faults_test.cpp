// Tests that a fault gives the same kind of error on back ends without files as on those with files.
// file_faults_test.cpp has the table for back ends with files.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/read_ways_testing.hpp"
#include "io_backends/s3/test_server.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock::s3 {
using Bytes = std::vector<std::byte>;

namespace {

constexpr size_t kBytes = 10'003;

class SameFaults : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto known = backend_registry().find(name()); !known.ok()) GTEST_SKIP() << known.error().what;
    server.set_environment();
    auto made = make();
    ASSERT_OK(made);
    subject = *std::move(made);
    ASSERT_OK(subject->put("object", bytes));
    ASSERT_OK(subject->put("folder/object", bytes));
  }

  std::string name() const { return GetParam(); }
  std::filesystem::path root() const { return scratch.path() / "root"; }
  // Makes another back end with the same objects. It has no connections and no open files yet.
  Result<Subject> make() const {
    if (name() == "s3") return Subject::make("t=s3:" + server.url() + "/prefix");
    return Subject::make("t=" + name() + ":" + root().string());
  }

  // Runs `body` on a back end that may not read. Returns false without a run for a store in memory, which has
  // no permissions.
  template <class Body>
  bool without_rights(const Body& body) {
    if (name() == "s3") {
      server.inject_faults(ServerFault::forbidden, TestServer::kAllTries);
      body(*subject);
      server.clear_faults();
      return true;
    }
    namespace fs = std::filesystem;
    fs::permissions(root() / "object", fs::perms::none);
    fs::permissions(root(), fs::perms::owner_read | fs::perms::others_read | fs::perms::others_exec);
    const bool right = as_plain_user([&] {
      const auto mine = make();
      ASSERT_OK(mine);
      body(*mine);
    });
    fs::permissions(root(), fs::perms(0755));
    return right;
  }

  const Bytes bytes = pattern(kBytes);
  ScratchFolder scratch;
  TestServer server;
  std::optional<Subject> subject;
};

INSTANTIATE_TEST_SUITE_P(, SameFaults, testing::Values("posix", "mem", "s3"),
                         [](const auto& row) { return std::string(row.param); });

TEST_P(SameFaults, FoldersAndMissingObjects) {
  Bytes out(10);
  for (const Way way : kWays) {
    EXPECT_ERRC(Errc::not_found, subject->read(way, "absent", out)) << way_name(way);
    EXPECT_ERRC(Errc::not_found, subject->read(way, "object/below", out)) << way_name(way);
    EXPECT_ERRC(Errc::invalid_argument, subject->read(way, "folder", out)) << way_name(way);
    EXPECT_ERRC(Errc::invalid_argument, subject->read(way, "../object", out)) << way_name(way);
  }
  EXPECT_ERRC(Errc::not_found, subject->put("object/below", bytes));
  EXPECT_ERRC(Errc::invalid_argument, subject->put("folder", bytes));
}

TEST_P(SameFaults, AShorterObject) {
  const auto reader = subject->backend->open("object");
  ASSERT_OK(reader);
  ASSERT_OK(subject->put("object", pattern(100, 2)));
  Bytes out(kBytes);
  EXPECT_ERRC(Errc::truncated, subject->read(Way::object, "object", out));
  EXPECT_ERRC(Errc::truncated, subject->read(Way::queued_object, "object", out));
  for (const Way way : {Way::reader, Way::queued_reader}) {
    EXPECT_ERRC(Errc::truncated, subject->read(way, "object", out)) << way_name(way);
    EXPECT_ERRC(Errc::truncated, subject->read(way, **reader, 1, out)) << way_name(way);
    // A reader of the replaced object reads the old bytes, or fails.
    const auto former = subject->read(way, **reader, 0, out);
    if (name() == "s3")
      EXPECT_TRUE(fails_with(Errc::io, former, "replaced")) << way_name(way);
    else
      EXPECT_TRUE(former.ok() && out == bytes) << way_name(way);
  }
}

TEST_P(SameFaults, ARemovedObject) {
  const auto reader = subject->backend->open("object");
  ASSERT_OK(reader);
  ASSERT_OK(subject->backend->names().remove("object"));
  Bytes out(kBytes);
  for (const Way way : kWays) {
    EXPECT_ERRC(Errc::not_found, subject->read(way, "object", out)) << way_name(way);
    if (!opens(way)) continue;
    const auto former = subject->read(way, **reader, 0, out);
    if (name() == "s3")
      EXPECT_ERRC(Errc::not_found, former) << way_name(way);
    else
      EXPECT_TRUE(former.ok() && out == bytes) << way_name(way);
  }
}

TEST_P(SameFaults, MissingPermission) {
  if (name() == "mem") GTEST_SKIP() << "who may use this process may use its memory";
  EXPECT_TRUE(without_rights([&](const Subject& mine) {
    Bytes out(10);
    for (const Way way : kWays)
      EXPECT_ERRC(Errc::permission_denied, mine.read(way, "object", out)) << way_name(way);
    EXPECT_ERRC(Errc::permission_denied, mine.put("other", bytes));
  }));
}

TEST_P(SameFaults, DescriptorsThatRunOut) {
#ifdef PENSTOCK_ADDRESS_SANITIZER
  GTEST_SKIP() << "the undefined-behaviour sanitizer opens pipes of its own";
#endif
  EXPECT_TRUE(in_child_process([&] {
    const auto mine = name() == "mem" ? Result<Subject>(*std::move(subject)) : make();
    ASSERT_OK(mine);
    ASSERT_TRUE(leave_descriptors(0));
    Bytes out(kBytes);
    const auto began = std::chrono::steady_clock::now();
    for (const Way way : kWays) {
      const auto read = mine->read(way, "object", out);
      if (name() == "mem")
        EXPECT_OK(read) << way_name(way);
      else
        EXPECT_ERRC(Errc::exhausted, read) << way_name(way);
    }
    const auto written = mine->put("other", bytes);
    if (name() == "mem")
      EXPECT_OK(written);
    else
      EXPECT_ERRC(Errc::exhausted, written);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10)) << "no use in trying again";
  }));
}

// The name resolver needs descriptors too. Without them it only reports that the host is unknown.
TEST(S3Faults, DescriptorsThatTheResolverLacks) {
  if (const auto known = backend_registry().find("s3"); !known.ok()) GTEST_SKIP() << known.error().what;
#ifdef PENSTOCK_ADDRESS_SANITIZER
  GTEST_SKIP() << "the undefined-behaviour sanitizer opens pipes of its own";
#endif
  EXPECT_TRUE(in_child_process([] {
    ::setenv("no_proxy", "*", 1);
    const auto mine = Subject::make("t=s3:http://store.invalid/bucket");
    ASSERT_OK(mine);
    ASSERT_TRUE(leave_descriptors(0));
    Bytes out(10);
    EXPECT_ERRC(Errc::exhausted, mine->read(Way::object, "object", out));
  }));
}

}  // namespace
}  // namespace penstock::s3
