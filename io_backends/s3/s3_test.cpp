// Tests the back end s3 with a test server that fails on purpose.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/s3/s3_fixture.hpp"

namespace penstock::s3 {
namespace {

// Checks that every operation fails with this error.
void expect_all_refused(Backend& backend, Errc errc, std::string_view words) {
  Bytes out(10);
  const auto all = [](const Entry& /*entry*/) { return true; };
  EXPECT_TRUE(fails_with(errc, backend.open("object"), words));
  EXPECT_TRUE(fails_with(errc, backend.read_object("object", 0, out), words));
  EXPECT_TRUE(fails_with(errc, backend.read_object("object", 5, out), words));
  EXPECT_TRUE(fails_with(errc, backend.names().stat("object"), words));
  EXPECT_TRUE(fails_with(errc, backend.names().list("", all), words));
  EXPECT_TRUE(fails_with(errc, backend.names().remove("object"), words));
  EXPECT_TRUE(fails_with(errc, backend.names().lock("lock"), words));
  const auto writer = backend.create("object");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(bytes_of("x")));
  EXPECT_TRUE(fails_with(errc, (*writer)->publish(Durability::visible), words));
}

TEST_F(S3, AWrongSecretIsRefusedWithAMessage) {
  ASSERT_OK(put("object", "water"));
  ::setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret", 1);
  remake();
  expect_all_refused(*backend, Errc::permission_denied, "SignatureDoesNotMatch");
  const auto opened = backend->open("object");
  EXPECT_ERRC(Errc::permission_denied, opened, "secret key");
  EXPECT_EQ(opened.error().message().find("not-the-secret"), std::string::npos);
  EXPECT_EQ(opened.error().message().find(TestServer::kKeyId), std::string::npos);
}

TEST_F(S3, AnUnknownKeyAndNoneAtAllAreRefusedWithAMessage) {
  ASSERT_OK(put("object", "water"));
  ::setenv("AWS_ACCESS_KEY_ID", "SOMEBODY", 1);
  remake();
  expect_all_refused(*backend, Errc::permission_denied, "InvalidAccessKeyId");
  ::unsetenv("AWS_ACCESS_KEY_ID");
  ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
  remake();
  expect_all_refused(*backend, Errc::permission_denied, "AWS_ACCESS_KEY_ID");
}

TEST_F(S3, AMissingBucketIsNamed) {
  auto made = make(server.url() + "-missing/prefix");
  ASSERT_OK(made);
  Bytes out(10);
  EXPECT_ERRC(Errc::not_found, (*made)->open("object"), "bucket-missing");
  EXPECT_ERRC(Errc::not_found, (*made)->read_object("object", 0, out), "bucket-missing");
  EXPECT_ERRC(Errc::not_found, (*made)->names().list("", [](const Entry&) { return true; }),
              "bucket-missing");
}

TEST_F(S3, NamesOfAnyBytes) {
  for (const std::string_view name :
       {"a b", "a,b=c", "line\nbreak", "100%", "a+b", "%2F", "\xc3\xa9\xe6\xb0\xb4", "q?x=1&y=2", "#",
        "<&>\"'", "tab\there", "~!@$^*()[]{}|\\;:'`"}) {
    const std::string full = "names/" + std::string(name);
    ASSERT_OK(put(full, name));
    const auto back = get(full);
    ASSERT_OK(back);
    EXPECT_EQ(text_of(*back), name);
    std::vector<std::string> listed;
    ASSERT_OK(backend->names().list("names", [&](const Entry& entry) {
      listed.push_back(entry.name);
      return true;
    }));
    EXPECT_EQ(listed, std::vector<std::string>{full});
    EXPECT_OK(backend->names().rename_noreplace(full, full + " moved"));
    EXPECT_OK(backend->names().remove(full + " moved"));
  }
}

TEST_F(S3, ListsPageAfterPage) {
  server.page_keys = 3;
  std::map<std::string, bool> wanted;
  for (unsigned i = 0; i < 10; ++i) {
    const std::string name = "folder/" + std::to_string(i);
    ASSERT_OK(put(name, "x"));
    ASSERT_OK(put(name + "f/below", "x"));
    wanted[name] = false;
    wanted[name + "f"] = true;
  }
  std::map<std::string, bool> listed;
  ASSERT_OK(backend->names().list("folder", [&](const Entry& entry) {
    EXPECT_TRUE(listed.emplace(entry.name, entry.folder).second) << "listed twice";
    return true;
  }));
  EXPECT_EQ(listed, wanted);
}

TEST_F(S3, FailuresOfServerAndNetworkAreTriedAgain) {
  const Bytes bytes = pattern(300'000);
  Bytes out(bytes.size());
  for (const ServerFault fault : {ServerFault::internal_error, ServerFault::slow_down, ServerFault::cut,
                                  ServerFault::hang_up, ServerFault::lost_answer}) {
    server.inject_faults(fault, 2, "PUT");
    ASSERT_OK(put("object", bytes));
    server.inject_faults(fault, 2, "GET");
    ASSERT_OK(backend->read_object("object", bytes.size(), out));
    EXPECT_EQ(out, bytes);
    std::fill(out.begin(), out.end(), std::byte{0});
    server.inject_faults(fault, 2, "HEAD");
    EXPECT_OK(backend->names().stat("object"));
    server.inject_faults(fault, 1, "GET", "list-type");
    EXPECT_OK(backend->names().list("", [](const Entry&) { return true; }));
  }
}

TEST_F(S3, TheErrorHasTheNumberOfTries) {
  ASSERT_OK(put("object", pattern(1'000)));
  remake({{"retries", "1"}});
  Bytes out(1'000);
  const auto read = [&] { return backend->read_object("object", 1'000, out); };
  server.inject_faults(ServerFault::internal_error, 2, "GET");
  EXPECT_ERRC(Errc::io, read(), "500");
  server.inject_faults(ServerFault::cut, 2, "GET");
  EXPECT_ERRC(Errc::io, read(), "2 times");
  EXPECT_OK(read());
  server.stop();
  EXPECT_ERRC(Errc::io, read(), "127.0.0.1");
}

// The host name is too long for a DNS label, so no resolver is asked.
TEST_F(S3, AHostWithoutAnAddressIsTriedAgain) {
  ::setenv("no_proxy", "*", 1);
  auto made = make("http://" + std::string(70, 'x') + "/bucket", {{"retries", "2"}});
  ASSERT_OK(made);
  EXPECT_ERRC(Errc::io, (*made)->open("object"), "tried 3 times");
  EXPECT_ERRC(Errc::io, (*made)->names().stat(""), "the bucket 'bucket' at http://xxx");
}

TEST_F(S3, AHandshakeThatFailsIsTriedAgain) {
  if (!std::filesystem::exists("/etc/ssl/certs"))
    GTEST_SKIP() << "no certificates here to check a server's against";
  auto made = make("https" + server.url().substr(4), {{"retries", "2"}});
  ASSERT_OK(made);
  const unsigned before = server.connections();
  EXPECT_ERRC(Errc::io, (*made)->open("object"), "tried 3 times");
  EXPECT_EQ(server.connections(), before + 3);
}

TEST_F(S3, ASilentServerTimesOut) {
  ASSERT_OK(put("object", "x"));
  remake({{"retries", "0"}, {"timeout", "1s"}});
  Bytes out(1);
  server.inject_faults(ServerFault::silence, 1, "GET");
  EXPECT_ERRC(Errc::timed_out, backend->read_object("object", 1, out));
  EXPECT_OK(backend->read_object("object", 1, out));
}

// Simulates a signal, and removes it at the end of the scope.
struct SimulatedSignal {
  SimulatedSignal() { simulate_interrupt(SIGINT); }
  ~SimulatedSignal() { simulate_interrupt(0); }
};

TEST_F(S3, ASignalEndsARequestToASilentServer) {
  using Clock = std::chrono::steady_clock;
  const Bytes bytes = pattern(1'000);
  ASSERT_OK(put("object", bytes));
  Bytes out(1'000);
  auto queue = backend->queue(2);
  ASSERT_OK(queue);
  const auto queued = [&]() -> Result<uint64_t> {
    const std::vector<Operation> operations{{ReadObject{"object", 1'000, out}, 1}};
    EXPECT_EQ((*queue)->submit(operations), 1U);
    Completion completion;
    EXPECT_EQ((*queue)->reap({&completion, 1}, 1), 1U);
    return std::move(completion.bytes);
  };
  const auto interrupted_soon = [&](const auto& work) {
    server.inject_faults(ServerFault::silence, 1);
    std::jthread user([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      simulate_interrupt(SIGINT);
    });
    const auto began = Clock::now();
    EXPECT_ERRC(Errc::interrupted, work());
    EXPECT_LT(Clock::now() - began, std::chrono::milliseconds(3500)) << "the server is silent for four";
    user.join();
    simulate_interrupt(0);
  };
  interrupted_soon([&] { return backend->read_object("object", 1'000, out); });
  interrupted_soon(queued);
  interrupted_soon([&] { return backend->names().stat("object"); });
  interrupted_soon([&] { return backend->names().list("", [](const Entry&) { return true; }); });
  EXPECT_OK(backend->read_object("object", 1'000, out));
  EXPECT_EQ(out, bytes);
}

TEST_F(S3, CleaningUpContinuesAfterASignal) {
  ASSERT_OK(put("object", "water"));
  auto lock = backend->names().lock("lock");
  ASSERT_OK(lock);
  const auto fresh = make(server.url() + "/some prefix", {{"checks", "0"}});
  ASSERT_OK(fresh);
  const auto writer = (*fresh)->create("small");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(bytes_of("x")));
  const SimulatedSignal asked;
  server.inject_faults(ServerFault::lost_answer, 1,
                       "PUT");  // the connection is new, so libcurl itself does not repeat the request
  EXPECT_OK((*writer)->publish(Durability::visible)) << "the object tells whose it is";
  EXPECT_OK(get("small"));
  EXPECT_OK(backend->names().remove("object"));
  lock->reset();
  EXPECT_ERRC(Errc::not_found, backend->names().stat("lock"));
  server.inject_faults(ServerFault::silence, 1, "HEAD");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_ERRC(Errc::interrupted, backend->names().stat("small"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(3'500));
}

TEST_F(S3, AThreadThatIgnoresTheSignalTriesAgain) {
  ASSERT_OK(put("object", "x"));
  const SimulatedSignal asked;
  Bytes out(1);
  server.inject_faults(ServerFault::internal_error, 1, "GET");
  EXPECT_ERRC(Errc::io, backend->read_object("object", 1, out), "500");
  const std::atomic<bool> over{false};
  const IgnoreInterrupt to_the_end(over);
  server.inject_faults(ServerFault::internal_error, 2, "GET");
  EXPECT_OK(backend->read_object("object", 1, out));
}

// The server is killed three times. Each time costs a request at most two of its seven tries.
TEST_F(S3, AServerThatIsKilledAndRestarted) {
  const Bytes bytes = pattern(24 * kMiB);
  ASSERT_OK(put("large", bytes));
  const auto reader = backend->open("large");
  ASSERT_OK(reader);
  server.crash_every(3, 3);
  for (unsigned round = 0; round < 4; ++round) {
    Bytes out(bytes.size());
    ASSERT_OK((*reader)->read_at(0, out));
    ASSERT_EQ(out, bytes);
  }
  EXPECT_EQ(server.crashes_left(), 0U);
}

// No server listens on the port for a while. The thread that drives the queue also starts the server again.
TEST_F(S3, AServerThatIsDownForAWhile) {
  const Bytes bytes = pattern(100'000, 3);
  ASSERT_OK(put("small", bytes));
  auto queue = backend->queue(8);
  ASSERT_OK(queue);
  for (unsigned round = 0; round < 2; ++round) {
    std::vector<Bytes> outs(8, Bytes(bytes.size()));
    std::vector<Operation> operations;
    for (uint64_t i = 0; i < 8; ++i) operations.push_back({ReadObject{"small", bytes.size(), outs[i]}, i});
    server.stop();
    ASSERT_EQ((*queue)->submit(operations), 8U);
    std::vector<Completion> completions(8);
    for (unsigned look = 0; look < 3; ++look) {
      EXPECT_EQ((*queue)->reap(completions, 0), 0U);
      std::this_thread::sleep_for(std::chrono::milliseconds(110));
    }
    server.start();
    ASSERT_EQ((*queue)->reap(completions, 8), 8U);
    for (const Completion& completion : completions) EXPECT_OK(completion.bytes);
    for (const Bytes& out : outs) EXPECT_EQ(out, bytes);
  }
}

TEST_F(S3, LargeObjectsAreWrittenInParts) {
  remake({{"part", "5MiB"}});
  const Bytes bytes = pattern(17 * kMiB + 11);
  server.inject_faults(ServerFault::internal_error, 1, "PUT", "partNumber=2");
  server.inject_faults(ServerFault::cut, 1, "GET");
  {
    const auto writer = backend->create("large");
    ASSERT_OK(writer);
    for (size_t at = 0; at < bytes.size(); at += 3 * kMiB)
      ASSERT_OK((*writer)->append(std::span(bytes).subspan(at, std::min(3 * kMiB, bytes.size() - at))));
    EXPECT_EQ(server.open_uploads(), 1U);
    EXPECT_ERRC(Errc::not_found, backend->names().stat("large"));
    ASSERT_OK((*writer)->publish(Durability::file_and_name));
  }
  EXPECT_EQ(server.open_uploads(), 0U);
  const auto back = get("large");
  ASSERT_OK(back);
  EXPECT_TRUE(*back == bytes);
  Bytes whole(18 * kMiB);
  const auto got = backend->read_object("large", 0, whole);
  ASSERT_OK(got);
  EXPECT_EQ(*got, bytes.size());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), whole.begin()));
  EXPECT_EQ(backend->moved_bytes().written, bytes.size());
}

TEST_F(S3, ADroppedWriterAbortsItsUpload) {
  remake({{"part", "5MiB"}});
  {
    const auto writer = backend->create("large");
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(pattern(12 * kMiB)));
    EXPECT_EQ(server.open_uploads(), 1U);
  }
  EXPECT_EQ(server.open_uploads(), 0U);
  const auto writer = backend->create("large");
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(pattern(12 * kMiB)));
  ASSERT_OK(put("large", "quicker"));
  EXPECT_ERRC(Errc::already_exists, (*writer)->publish(Durability::visible, IfExists::fail));
  EXPECT_EQ(server.open_uploads(), 0U);
  EXPECT_EQ(text_of(*get("large")), "quicker");
}

TEST_F(S3, PublishingSucceedsIfOnlyTheAnswerWasLost) {
  server.inject_faults(ServerFault::lost_answer, 1, "PUT");
  EXPECT_OK(put("small", bytes_of("x"), IfExists::fail));
  EXPECT_ERRC(Errc::already_exists, put("small", bytes_of("y"), IfExists::fail));
  remake({{"part", "5MiB"}});
  server.inject_faults(ServerFault::lost_answer, 1, "POST", "uploadId");
  const Bytes bytes = pattern(6 * kMiB);
  EXPECT_OK(put("large", bytes, IfExists::fail));
  EXPECT_TRUE(*get("large") == bytes);
}

TEST_F(S3, AServerWithoutConditionsIsAskedFirst) {
  server.knows_conditions = false;
  ASSERT_OK(put("object", bytes_of("first"), IfExists::fail));
  EXPECT_ERRC(Errc::already_exists, put("object", bytes_of("second"), IfExists::fail));
  EXPECT_EQ(text_of(*get("object")), "first");
  const auto held = backend->names().lock("lock");
  ASSERT_OK(held);
  EXPECT_ERRC(Errc::busy, backend->names().lock("lock"));
}

TEST_F(S3, AReaderNeverMixesTwoObjects) {
  ASSERT_OK(put("object", pattern(1'000)));
  const auto reader = backend->open("object");
  ASSERT_OK(reader);
  ASSERT_OK(put("object", pattern(1'000, 9)));
  Bytes out(10);
  EXPECT_ERRC(Errc::io, (*reader)->read_at(0, out), "replaced");
}

// Returns the id of a process that has ended.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return child;
}

std::string lock_text_of(pid_t process) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return "abc " + std::to_string(process) + " " + host + "\n";
}

TEST_F(S3, TheLockOfADeadProcessIsTakenOver) {
  const pid_t child = dead_process();
  ASSERT_OK(put("lock", lock_text_of(child)));
  const auto taken = backend->names().lock("lock");
  ASSERT_OK(taken);
  EXPECT_ERRC(Errc::busy, backend->names().lock("lock"), std::to_string(::getpid()));
  ASSERT_OK(put("other", "abc " + std::to_string(child) + " some.other.host\n"));
  EXPECT_ERRC(Errc::busy, backend->names().lock("other"), "some.other.host");
}

// Both processes read the old holder before either of them changes the lock. If the server supports
// conditional requests, the second process changes the lock after the first one has it. Otherwise the second
// process changes it 50 ms after the first one.
TEST_F(S3, OnlyOneOfTwoProcessesTakesOverALock) {
  for (const bool conditions : {true, false}) {
    server.knows_conditions = conditions;
    ASSERT_OK(put("lock", lock_text_of(dead_process())));
    std::mutex mutex;
    std::condition_variable changed;
    unsigned changes = 0, done = 0;
    server.set_visitor([&](const std::string& method, const std::string&) {
      if (method != "PUT" && method != "DELETE") return;
      std::unique_lock lock(mutex);
      const auto wait_until = [&](const auto& reached) {
        EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), reached));
      };
      const bool second = ++changes == 2;
      changed.notify_all();
      wait_until([&] { return changes >= 2; });
      if (second && conditions) wait_until([&] { return done > 0; });
      lock.unlock();
      if (second && !conditions) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    std::vector<std::unique_ptr<Backend>> backends;
    std::vector<std::unique_ptr<Lock>> held;
    for (unsigned i = 0; i < 2; ++i) backends.push_back(make(server.url() + "/some prefix").value());
    {
      std::vector<std::jthread> processes;
      for (const auto& one : backends)
        processes.emplace_back([&] {
          auto taken = one->names().lock("lock");
          const std::lock_guard lock(mutex);
          ++done;
          changed.notify_all();
          if (taken.ok())
            held.push_back(*std::move(taken));
          else
            EXPECT_ERRC(Errc::busy, taken, "lock");
        });
    }
    EXPECT_EQ(held.size(), 1U) << conditions;
    server.set_visitor({});
    EXPECT_ERRC(Errc::busy, backend->names().lock("lock"));
    held.clear();
    EXPECT_OK(backend->names().lock("lock"));
  }
}

TEST_F(S3, ALockRemovesOnlyItsOwnObject) {
  auto held = backend->names().lock("lock");
  ASSERT_OK(held);
  ASSERT_OK(backend->names().remove("lock"));
  const auto next = backend->names().lock("lock");
  ASSERT_OK(next);
  held->reset();
  EXPECT_OK(backend->names().stat("lock"));
}

TEST_F(S3, OneThreadKeepsManyReadsInFlight) {
  constexpr size_t kDepth = 16;
  const Bytes bytes = pattern(10'000);
  ASSERT_OK(put("object", bytes));
  auto queue = backend->queue(kDepth);
  ASSERT_OK(queue);
  std::vector<Bytes> outs(kDepth, Bytes(bytes.size()));
  std::vector<Operation> operations;
  for (uint64_t i = 0; i < kDepth; ++i)
    operations.push_back({ReadObject{"object", bytes.size(), outs[i]}, i});
  server.min_in_progress = kDepth;
  ASSERT_EQ((*queue)->submit(operations), kDepth);
  std::vector<Completion> completions(kDepth);
  ASSERT_EQ((*queue)->reap(completions, kDepth), kDepth);
  for (const Completion& completion : completions) EXPECT_OK(completion.bytes);
  for (const Bytes& out : outs) EXPECT_EQ(out, bytes);
  EXPECT_EQ(server.most_in_progress(), kDepth);
}

TEST_F(S3, ConnectionsAreUsedAgain) {
  ASSERT_OK(put("object", pattern(1'000)));
  const unsigned before = server.connections();
  Bytes out(1'000);
  for (unsigned i = 0; i < 50; ++i) ASSERT_OK(backend->read_object("object", 1'000, out));
  EXPECT_EQ(server.connections(), before);
}

}  // namespace
}  // namespace penstock::s3
