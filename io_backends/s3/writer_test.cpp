// Tests objects that the back end s3 writes in parts while the caller does something else.
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string_view>
#include <thread>

#include "io_backends/s3/s3_fixture.hpp"

namespace penstock::s3 {
namespace {

constexpr size_t kWriterPart = 5 * kMiB;

// The thread that made the FailingAllocations object; 0 if there is none.
std::atomic<pid_t> unaffected_thread{0};
constexpr const char* kFailingThreadName = "starving";

// While an object of this class exists, operator new fails on threads that the calling thread starts. They
// are recognised by the thread name, which they inherit.
class FailingAllocations {
 public:
  FailingAllocations() {
    ::prctl(PR_GET_NAME, name_);
    ::prctl(PR_SET_NAME, kFailingThreadName);
    unaffected_thread = ::gettid();
  }
  ~FailingAllocations() {
    unaffected_thread = 0;
    ::prctl(PR_SET_NAME, name_);
  }
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  static bool fails_on_this_thread() {
    char name[16] = {};
    return unaffected_thread != 0 && unaffected_thread != ::gettid() && ::prctl(PR_GET_NAME, name) == 0 &&
           std::string_view(name) == kFailingThreadName;
  }

 private:
  char name_[16] = {};
};

class S3Writers : public S3 {
 protected:
  void SetUp() override {
    S3::SetUp();
    if (backend) remake({{"part", "5MiB"}, {"streams", "2"}});
  }
  // Waits until the server has seen `wanted` PUT requests, at most for a minute.
  bool wait_for_puts(unsigned wanted) {
    for (unsigned ms = 0; puts < wanted && ms < 60'000; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return puts >= wanted;
  }
  void count_puts() {
    server.set_visitor([this](const std::string& method, const std::string&) { puts += method == "PUT"; });
  }

  std::atomic<unsigned> puts{0}, held_puts{0}, most_held_puts{0};
};

TEST_F(S3Writers, SendPartsWhileTheirCallerComputes) {
  count_puts();
  const auto writer = backend->create("large");
  ASSERT_OK(writer);
  const Bytes bytes = pattern(2 * kWriterPart + 1);
  ASSERT_OK((*writer)->append(bytes));
  EXPECT_TRUE(wait_for_puts(2)) << "nothing is sent unless the writer is called";
  ASSERT_OK((*writer)->publish(Durability::visible));
  EXPECT_EQ(puts, 3U);
  EXPECT_TRUE(*get("large") == bytes);
}

TEST_F(S3Writers, HaveAtMostStreamsPartsInFlight) {
  server.set_visitor([this](const std::string& method, const std::string&) {
    if (method != "PUT") return;
    ++puts;
    const unsigned now = ++held_puts;
    for (unsigned most = most_held_puts; now > most && !most_held_puts.compare_exchange_weak(most, now);) {
    }
    wait_for_puts(2);
    // time in which a third PUT could come, which would be wrong
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    --held_puts;
  });
  const Bytes bytes = pattern(4 * kWriterPart);
  ASSERT_OK(put("large", bytes));
  EXPECT_EQ(most_held_puts, 2U);
  EXPECT_TRUE(*get("large") == bytes);
}

// The limit of connections also holds during publish(). The server delays the HEAD that checks the name, so
// that a part that is sent at the same time would exceed the limit.
TEST_F(S3Writers, RespectTheLimitOfConnections) {
  server.set_visitor([this](const std::string& method, const std::string&) {
    puts += method == "PUT";
    for (unsigned ms = 0; method == "HEAD" && puts < 3 && ms < 1'000; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const Bytes bytes = pattern(2 * kWriterPart + 1);
  for (const IfExists if_exists : {IfExists::replace, IfExists::fail}) {
    remake({{"part", "5MiB"}, {"connections", "1"}});
    puts = 0;
    const std::string name = if_exists == IfExists::fail ? "folder/new" : "folder/large";
    ASSERT_OK(put(name, bytes, if_exists));
    EXPECT_EQ(puts, 3U);
    EXPECT_TRUE(*get(name) == bytes);
  }
  EXPECT_EQ(server.most_in_progress(), 1U);
}

TEST_F(S3Writers, TheNextCallReturnsTheErrorOfAPart) {
  server.inject_faults(ServerFault::forbidden, 1, "PUT", "partNumber=2");
  count_puts();
  const auto writer = backend->create("large");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(pattern(2 * kWriterPart + 1)));
  ASSERT_TRUE(wait_for_puts(2));
  Result<void> appended = success();
  for (unsigned ms = 0; appended.ok() && ms < 60'000; ++ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    appended = (*writer)->append(bytes_of("x"));
  }
  EXPECT_ERRC(Errc::permission_denied, appended, "part 2 of 'large'");
  EXPECT_EQ(server.open_uploads(), 0U);
  EXPECT_ERRC(Errc::invalid_argument, (*writer)->append(bytes_of("x")));
  EXPECT_ERRC(Errc::invalid_argument, (*writer)->publish(Durability::visible));
  EXPECT_ERRC(Errc::not_found, backend->names().stat("large"));
}

TEST_F(S3Writers, PublishReturnsTheErrorOfAPart) {
  struct Case {
    ServerFault fault;
    unsigned times;
    Errc errc;
  };
  for (const Case& one : {Case{ServerFault::forbidden, 1, Errc::permission_denied},
                          Case{ServerFault::internal_error, 2, Errc::io},
                          Case{ServerFault::hang_up, TestServer::kAllTries, Errc::io}}) {
    remake({{"part", "5MiB"}, {"retries", "1"}});
    const auto writer = backend->create("large");
    ASSERT_OK(writer);
    server.inject_faults(one.fault, one.times, "PUT", "partNumber=3");
    ASSERT_OK((*writer)->append(pattern(2 * kWriterPart + 1)));
    EXPECT_ERRC(one.errc, (*writer)->publish(Durability::visible), "part 3 of 'large'");
    server.clear_faults();
    EXPECT_EQ(server.open_uploads(), 0U);
    EXPECT_ERRC(Errc::not_found, backend->names().stat("large"));
  }
}

// Answers with status 200 that prove nothing. The store is asked again, and the upload must not count as done
// if the object does not exist.
constexpr ServerFault kMisleading[] = {ServerFault::page, ServerFault::blanks, ServerFault::cut_result,
                                       ServerFault::other_result, ServerFault::late_error};

TEST_F(S3Writers, AnUploadWithoutAResultIsNotDone) {
  const Bytes bytes = pattern(kWriterPart + 1);
  for (const ServerFault fault : kMisleading) {
    remake({{"part", "5MiB"}, {"retries", "1"}});
    server.inject_faults(fault, TestServer::kAllTries, "POST", "uploadId=");
    EXPECT_ERRC(Errc::io, put("large", bytes), "'large'") << int(fault);
    server.clear_faults();
    EXPECT_EQ(server.open_uploads(), 0U);
    EXPECT_ERRC(Errc::not_found, backend->names().stat("large"));
  }
}

TEST_F(S3Writers, AnUploadIsCompletedAgainUntilItHasAResult) {
  const Bytes bytes = pattern(kWriterPart + 1);
  for (const ServerFault fault : kMisleading)
    for (const char* const request : {"uploadId=", "uploads"}) {
      server.inject_faults(fault, 2, "POST", request);
      ASSERT_OK(put("large", bytes)) << int(fault);
      const auto there = get("large");
      ASSERT_OK(there);
      EXPECT_EQ(*there, bytes);
      EXPECT_EQ(server.open_uploads(), 0U);
      ASSERT_OK(backend->names().remove("large"));
    }
}

TEST_F(S3Writers, APartWithoutAResultIsNotDone) {
  remake({{"part", "5MiB"}, {"retries", "1"}});
  server.inject_faults(ServerFault::page, TestServer::kAllTries, "PUT", "partNumber=1");
  EXPECT_ERRC(Errc::io, put("large", pattern(kWriterPart + 1)), "part 1 of 'large'");
  server.clear_faults();
  EXPECT_EQ(server.open_uploads(), 0U);
  EXPECT_ERRC(Errc::not_found, backend->names().stat("large"));
}

TEST_F(S3Writers, AnObjectWithoutAVersionIsNotDone) {
  remake({{"retries", "1"}});
  server.inject_faults(ServerFault::page, TestServer::kAllTries, "PUT", "small");
  EXPECT_ERRC(Errc::io, put("small", "bytes"), "'small'");
  server.clear_faults();
  EXPECT_ERRC(Errc::not_found, backend->names().stat("small"));
}

TEST_F(S3Writers, AnExistingObjectProvesSuccess) {
  remake({{"part", "5MiB"}, {"retries", "1"}});
  const Bytes large = pattern(kWriterPart + 1), small = pattern(5);
  server.inject_faults(ServerFault::page_after, TestServer::kAllTries, "POST", "uploadId=");
  server.inject_faults(ServerFault::page_after, TestServer::kAllTries, "PUT", "small");
  ASSERT_OK(put("large", large));
  ASSERT_OK(put("small", small));
  server.clear_faults();
  const auto one = get("large"), other = get("small");
  ASSERT_OK(one);
  ASSERT_OK(other);
  EXPECT_EQ(*one, large);
  EXPECT_EQ(*other, small);
}

TEST_F(S3Writers, ARenameWithoutAResultKeepsTheObject) {
  remake({{"retries", "1"}});
  ASSERT_OK(put("from", "bytes"));
  for (const ServerFault fault : kMisleading) {
    server.inject_faults(fault, TestServer::kAllTries, "PUT", "to");
    EXPECT_ERRC(Errc::io, backend->names().rename_noreplace("from", "to"));
    server.clear_faults();
    EXPECT_OK(backend->names().stat("from"));
  }
  server.inject_faults(ServerFault::late_error, 1, "PUT", "to");
  EXPECT_OK(backend->names().rename_noreplace("from", "to"));
}

TEST_F(S3Writers, AListingWithoutAResultIsAskedForAgain) {
  ASSERT_OK(put("folder/a", "bytes"));
  for (const ServerFault fault : kMisleading) {
    if (fault == ServerFault::other_result) continue;  // here the result of a listing is a valid answer
    server.inject_faults(fault, 1, "GET", "list-type=2");
    const auto entry = backend->names().stat("folder");
    ASSERT_OK(entry) << int(fault);
    EXPECT_TRUE(entry->folder);
  }
}

TEST_F(S3Writers, PartsThatFailAreSentAgain) {
  const Bytes bytes = pattern(2 * kWriterPart + 3);
  for (const ServerFault fault : {ServerFault::slow_down, ServerFault::hang_up, ServerFault::lost_answer,
                                  ServerFault::internal_error, ServerFault::cut}) {
    server.inject_faults(fault, 2, "PUT", "partNumber=2");
    ASSERT_OK(put("large", bytes));
    EXPECT_TRUE(*get("large") == bytes);
  }
}

// The server delays the answers to the parts until the writer is destroyed. It then waits up to 200 ms more.
// An abort that did not wait for the parts would arrive in that time.
TEST_F(S3Writers, DroppedWithPartsInFlightLeaveNothing) {
  std::atomic<bool> writer_ends{false};
  server.set_visitor([&](const std::string& method, const std::string&) {
    if (method != "PUT") return;
    ++puts;
    for (unsigned ms = 0; !writer_ends && ms < 60'000; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (unsigned ms = 0; server.open_uploads() > 0 && ms < 200; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  {
    const auto writer = backend->create("large");
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(pattern(3 * kWriterPart)));
    ASSERT_TRUE(wait_for_puts(2));
    EXPECT_EQ(server.open_uploads(), 1U);
    writer_ends = true;
  }
  EXPECT_EQ(server.open_uploads(), 0U);
  EXPECT_ERRC(Errc::not_found, backend->names().stat("large"));
  server.stop();
  EXPECT_EQ(server.late_parts(), 0U) << "they may stay at the server for good";
}

// Parts that wait before one of their thousand retries must not delay the destruction of their writer.
TEST_F(S3Writers, DroppedWithPartsThatWaitForARetryLeaveNothing) {
  remake({{"part", "5MiB"}, {"retries", "1000"}});
  count_puts();
  server.inject_faults(ServerFault::slow_down, TestServer::kAllTries, "PUT", "partNumber");
  {
    const auto writer = backend->create("large");
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(pattern(2 * kWriterPart + 1)));
    ASSERT_TRUE(wait_for_puts(2));
  }
  EXPECT_EQ(server.open_uploads(), 0U);
}

TEST_F(S3Writers, FailIfTheirThreadHasNoMemory) {
  const auto writer = backend->create("large");
  ASSERT_OK(writer);
  const FailingAllocations no_memory;
  ASSERT_OK((*writer)->append(pattern(kWriterPart + 1)));
  EXPECT_ERRC(Errc::exhausted, (*writer)->publish(Durability::visible), "memory");
  EXPECT_EQ(server.open_uploads(), 0U);
}

}  // namespace
}  // namespace penstock::s3

// NOLINTBEGIN(cppcoreguidelines-*,cert-*,misc-*)
// Over-aligned types use the library's own operator.
void* operator new(size_t bytes) {
  void* memory = penstock::s3::FailingAllocations::fails_on_this_thread()
                     ? nullptr
                     : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t /*bytes*/) noexcept {
  std::free(memory);
}
// NOLINTEND(cppcoreguidelines-*,cert-*,misc-*)
