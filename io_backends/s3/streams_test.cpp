// Tests reads of large objects with several ranged GETs at the same time, by reader and by queue of the back
// end s3.
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "io_backends/s3/s3_fixture.hpp"

namespace penstock::s3 {
namespace {

constexpr size_t kPart = 5 * kMiB;
constexpr std::string_view kSecondRange = "bytes=5242880-";

// Holds requests until it is opened, at most for a minute.
class RequestBlocker {
 public:
  void wait_until_open() {
    for (unsigned ms = 0; !open_ && ms < 60'000; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!open_) expired_ = true;
  }
  void open() { open_ = true; }
  bool expired() const { return expired_; }

 private:
  std::atomic<bool> open_{false}, expired_{false};
};

// The call that reads an object, and whether the caller knows its length.
struct ReadCase {
  enum class Call : uint8_t { queued_object, object, queued_at, at } call;
  bool length_known = true;
};
std::string read_case_name(const testing::TestParamInfo<ReadCase>& info) {
  constexpr const char* kNames[] = {"queued_object", "object", "queued_at", "at"};
  return std::string(kNames[size_t(info.param.call)]) + (info.param.length_known ? "" : "_unknown");
}

class Streams : public S3, public testing::WithParamInterface<ReadCase> {
 protected:
  void SetUp() override {
    S3::SetUp();
    if (backend) remake({{"part", "5MiB"}});
  }

  static bool by_reader() { return GetParam().call >= ReadCase::Call::queued_at; }
  static bool queued() {
    return GetParam().call == ReadCase::Call::queued_object || GetParam().call == ReadCase::Call::queued_at;
  }

  // Opens a reader if the way to read needs one, so that later faults hit only the reads.
  void open(std::string_view name) {
    if (!by_reader()) return;
    auto opened = backend->open(name);
    ASSERT_OK(opened);
    reader = *std::move(opened);
  }

  Result<uint64_t> read(std::string_view name, std::span<std::byte> out, uint64_t length) {
    const uint64_t hint = GetParam().length_known ? length : 0;
    if (!queued() && !by_reader()) return backend->read_object(name, hint, out);
    if (!queued()) {
      PENSTOCK_TRY(reader->read_at(0, out.first(length)));
      return length;
    }
    if (!queue) {
      PENSTOCK_ASSIGN(queue, backend->queue(4));
    }
    Operation operation{ReadObject{name, hint, out}, 77};
    if (by_reader()) operation.what = ReadAt{reader.get(), 0, out.first(length)};
    EXPECT_EQ(queue->submit({&operation, 1}), 1U);
    std::vector<Completion> completions(4);
    EXPECT_EQ(queue->reap(completions, 4), 1U) << "one completion, whatever the streams";
    EXPECT_EQ(completions[0].tag, 77U);
    EXPECT_EQ(queue->in_flight(), 0U);
    return completions[0].bytes;
  }
  // Reads the whole object in the way of this test, and checks it.
  void expect_read(std::string_view name, const Bytes& bytes) {
    Bytes out(bytes.size() + (GetParam().length_known ? 0 : 1000));
    const auto got = read(name, out, bytes.size());
    ASSERT_OK(got);
    EXPECT_EQ(*got, bytes.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), out.begin()));
  }

  std::unique_ptr<Reader> reader;
  std::unique_ptr<Queue> queue;
};

TEST_P(Streams, ReadOneObject) {
  for (const size_t size : {2 * kPart, 3 * kPart + 11, kPart + 1, kPart, size_t{10}, 7 * kPart}) {
    const Bytes bytes = pattern(size);
    store("large", bytes);
    open("large");
    const uint64_t before = backend->moved_bytes().read;
    expect_read("large", bytes);
    EXPECT_EQ(backend->moved_bytes().read - before, size);
  }
}

TEST_P(Streams, AreInFlightTogether) {
  const Bytes bytes = pattern(5 * kPart);
  store("large", bytes);
  open("large");
  std::set<std::string> ranges;
  std::mutex mutex;
  server.set_visitor([&](const std::string&, const std::string& range) {
    const std::lock_guard lock(mutex);
    ranges.insert(range);
  });
  // If the length of the object is unknown, the first range is answered before the others are requested.
  if (GetParam().length_known) server.min_in_progress = 4;
  expect_read("large", bytes);
  EXPECT_EQ(ranges.size(), 5U);
  if (GetParam().length_known) {
    EXPECT_EQ(server.most_in_progress(), 4U);
  }
}

TEST_P(Streams, AStreamThatBreaksIsTriedAgain) {
  const Bytes bytes = pattern(3 * kPart + 5);
  store("large", bytes);
  open("large");
  for (const ServerFault fault : {ServerFault::cut, ServerFault::slow_down, ServerFault::hang_up,
                                  ServerFault::lost_answer, ServerFault::internal_error}) {
    server.inject_faults(fault, 2, "GET", std::string(kSecondRange));
    server.inject_faults(fault, 1, "GET", "bytes=0-");
    expect_read("large", bytes);
  }
}

TEST_P(Streams, AnObjectOfAnotherLength) {
  store("large", pattern(2 * kPart + 100));
  open("large");
  store("other", pattern(3 * kPart));
  Bytes out(3 * kPart);
  if (by_reader()) {
    EXPECT_ERRC(Errc::truncated, read("large", out, 2 * kPart + 101));
  } else if (GetParam().length_known) {
    EXPECT_ERRC(Errc::truncated, read("large", out, 2 * kPart + 101), "10485861");
    EXPECT_ERRC(Errc::truncated, read("large", out, 3 * kPart), "15728640");
    const auto less = read("large", out, kPart + 10);
    ASSERT_OK(less);
    EXPECT_EQ(*less, kPart + 10);
  } else {
    EXPECT_ERRC(Errc::invalid_argument, read("other", std::span(out).first(2 * kPart), 0), "15728640");
    EXPECT_ERRC(Errc::invalid_argument, read("large", std::span(out).first(2 * kPart + 99), 0), "10485860");
  }
}

TEST_P(Streams, AnEmptyAndAMissingObject) {
  ASSERT_OK(put("empty", ""));
  ASSERT_OK(put("folder/object", "x"));
  if (by_reader()) return;
  Bytes out(3 * kPart);
  const auto got = read("empty", out, out.size());
  if (GetParam().length_known) {
    EXPECT_ERRC(Errc::truncated, got);
  } else {
    ASSERT_OK(got);
    EXPECT_EQ(*got, 0U);
  }
  EXPECT_ERRC(Errc::not_found, read("nothing", out, out.size()), "nothing");
  EXPECT_FALSE(read("folder", out, out.size()).ok());
}

// The object is replaced while the server delays the answer to one range. The server first waits up to one
// second for the requests of all three ranges.
TEST_P(Streams, NeverMixTwoObjects) {
  const Bytes bytes = pattern(3 * kPart), other = pattern(3 * kPart, 9);
  std::atomic<unsigned> asked{0};
  for (const std::string_view late : {"bytes=0-", "bytes=5242880-", "bytes=10485760-"}) {
    store("large", bytes);
    open("large");
    asked = 0;
    server.set_visitor([&, late](const std::string&, const std::string& range) {
      ++asked;
      if (!range.starts_with(late)) return;
      for (unsigned ms = 0; asked < 3 && ms < 1'000; ++ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      store("large", other);
    });
    Bytes out(3 * kPart);
    const auto got = read("large", out, out.size());
    server.set_visitor({});
    if (got.ok()) {
      EXPECT_TRUE(out == bytes || out == other) << "of two objects";
    } else {
      EXPECT_ERRC(Errc::io, got, "replaced");
    }
  }
  server.stop();  // ends the server's threads, which count the requests
}

// The object is replaced after its first range is answered and before the second is requested.
TEST_P(Streams, AnObjectReplacedBetweenRanges) {
  remake({{"part", "5MiB"}, {"connections", "1"}});
  store("large", pattern(3 * kPart));
  open("large");
  const Bytes other = pattern(3 * kPart, 9);
  server.set_visitor([&](const std::string&, const std::string& asked) {
    if (asked.starts_with(kSecondRange)) store("large", other);
  });
  Bytes out(3 * kPart);
  EXPECT_ERRC(Errc::io, read("large", out, out.size()), "replaced");
}

// The object is replaced by an empty one after its first range broke and the others arrived.
TEST_P(Streams, AnObjectReplacedBetweenTries) {
  store("large", pattern(3 * kPart));
  open("large");
  std::atomic<unsigned> firsts{0}, others{0};
  server.set_visitor([&](const std::string&, const std::string& asked) {
    if (!asked.starts_with("bytes=0-")) {
      ++others;
    } else if (++firsts == 2) {
      for (unsigned ms = 0; others < 2 && ms < 1'000; ++ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      store("large", {});
    }
  });
  server.inject_faults(ServerFault::cut, 1, "GET", "bytes=0-");
  Bytes out(3 * kPart);
  const auto got = read("large", out, out.size());
  if (by_reader() || !GetParam().length_known) {
    EXPECT_ERRC(Errc::io, got, "replaced");
  } else {
    EXPECT_ERRC(Errc::truncated, got);
  }
  server.stop();
}

// The back end uses one connection. With several, the server could still be answering a failed read when the
// test sets the next fault.
TEST_P(Streams, OtherBytesThanRequestedAreDetected) {
  remake({{"part", "5MiB"}, {"connections", "1"}});
  store("large", pattern(3 * kPart));
  open("large");
  Bytes out(3 * kPart);
  const auto read_with = [&](ServerFault fault, std::string_view range) {
    server.inject_faults(fault, 1, "GET", std::string(range));
    return read("large", out, out.size());
  };
  EXPECT_ERRC(Errc::corrupt, read_with(ServerFault::wrong_range, kSecondRange), "other bytes");
  EXPECT_ERRC(Errc::corrupt, read_with(ServerFault::wrong_range, "bytes=0-"), "other bytes");
  EXPECT_ERRC(Errc::corrupt, read_with(ServerFault::no_content_range, kSecondRange), "other bytes");
  EXPECT_ERRC(Errc::corrupt, read_with(ServerFault::short_range, kSecondRange), "large");
  EXPECT_ERRC(Errc::unsupported, read_with(ServerFault::no_ranges, kSecondRange), "Range");
  EXPECT_OK(read("large", out, out.size()));
}

// One range fails and is not tried again. The bytes of other ranges that arrive after this failure are
// discarded.
TEST_P(Streams, AFailureEndsAllStreams) {
  const Bytes bytes = pattern(4 * kPart);
  store("large", bytes);
  open("large");
  RequestBlocker blocker;
  server.set_visitor([&](const std::string&, const std::string& range) {
    if (!range.starts_with(kSecondRange) && !range.starts_with("bytes=0-")) blocker.wait_until_open();
  });
  server.inject_faults(ServerFault::forbidden, 1, "GET", std::string(kSecondRange));
  Bytes out(4 * kPart);
  EXPECT_ERRC(Errc::permission_denied, read("large", out, out.size()), "large");
  EXPECT_FALSE(blocker.expired()) << "waits for streams whose bytes are not needed";
  const Bytes then = out;
  blocker.open();
  expect_read("large", bytes);
  EXPECT_EQ(out, then);
  server.stop();  // ends the threads that wait at the blocker
}

TEST_P(Streams, AServerThatStaysDown) {
  remake({{"part", "5MiB"}, {"retries", "1"}});
  store("large", pattern(3 * kPart));
  open("large");
  server.crash_every(2, 1);  // crashes at a request with one or two streams in flight
  server.inject_faults(ServerFault::hang_up, TestServer::kAllTries);
  Bytes out(3 * kPart);
  EXPECT_ERRC(Errc::io, read("large", out, out.size()), "2 times");
  server.stop();
  EXPECT_ERRC(Errc::io, read("large", out, out.size()), "127.0.0.1");
}

INSTANTIATE_TEST_SUITE_P(, Streams,
                         testing::Values(ReadCase{ReadCase::Call::queued_object},
                                         ReadCase{ReadCase::Call::queued_object, false},
                                         ReadCase{ReadCase::Call::object},
                                         ReadCase{ReadCase::Call::object, false},
                                         ReadCase{ReadCase::Call::queued_at}, ReadCase{ReadCase::Call::at}),
                         read_case_name);

using S3Queues = S3;

TEST_F(S3Queues, TheDestructorCutsOffStreamsInFlight) {
  remake({{"part", "5MiB"}});
  store("large", pattern(8 * kPart));
  RequestBlocker blocker;
  std::atomic<unsigned> held_requests{0};
  server.set_visitor([&](const std::string&, const std::string& range) {
    if (range.empty()) return;
    ++held_requests;
    blocker.wait_until_open();
  });
  std::vector<Bytes> outs(2, Bytes(8 * kPart));
  auto queue = backend->queue(2);
  ASSERT_OK(queue);
  const std::vector<Operation> operations{{ReadObject{"large", 8 * kPart, outs[0]}, 0},
                                          {ReadObject{"large", 0, outs[1]}, 1}};
  ASSERT_EQ((*queue)->submit(operations), 2U);
  std::vector<Completion> completions(2);
  while (held_requests < 4) EXPECT_EQ((*queue)->reap(completions, 0), 0U);
  queue->reset();
  EXPECT_FALSE(blocker.expired());
  outs = {};
  blocker.open();
  Bytes out(10);
  EXPECT_OK(backend->read_object("large", 10, out));
  server.stop();  // ends the threads that wait at the blocker
}

// Reads eight objects of three parts each, and returns the largest number of simultaneous requests.
unsigned most_in_progress(Backend& backend, TestServer& server) {
  const Bytes bytes = pattern(3 * kPart);
  auto queue = backend.queue(8);
  EXPECT_OK(queue);
  std::vector<Bytes> outs(8, Bytes(bytes.size()));
  std::vector<Operation> operations;
  for (uint64_t i = 0; i < 8; ++i)
    operations.push_back({ReadObject{"large", i % 2 == 0 ? bytes.size() : 0, outs[i]}, i});
  EXPECT_EQ((*queue)->submit(operations), 8U);
  std::vector<Completion> completions(8);
  EXPECT_EQ((*queue)->reap(completions, 8), 8U);
  for (const Completion& completion : completions) EXPECT_OK(completion.bytes);
  for (const Bytes& out : outs) EXPECT_TRUE(out == bytes);
  return server.most_in_progress();
}

TEST_F(S3Queues, HaveAtMostTheirDepthInFlight) {
  remake({{"part", "5MiB"}});
  store("large", pattern(3 * kPart));
  server.min_in_progress = 8;
  EXPECT_EQ(most_in_progress(*backend, server), 8U);
}

TEST_F(S3Queues, UseOnlyOneConnection) {
  remake({{"part", "5MiB"}, {"connections", "1"}});
  store("large", pattern(3 * kPart));
  const unsigned before = server.connections();
  EXPECT_EQ(most_in_progress(*backend, server), 1U);
  EXPECT_LE(server.connections() - before, 1U);
}

TEST_F(S3Queues, OneStreamIsOneRequest) {
  remake({{"part", "5MiB"}, {"streams", "1"}});
  const Bytes bytes = pattern(3 * kPart);
  store("large", bytes);
  const unsigned before = server.requests();
  Bytes out(bytes.size() + 1);
  auto queue = backend->queue(2);
  ASSERT_OK(queue);
  const Operation operation{ReadObject{"large", 0, out}, 0};
  ASSERT_EQ((*queue)->submit({&operation, 1}), 1U);
  Completion completion;
  ASSERT_EQ((*queue)->reap({&completion, 1}, 1), 1U);
  ASSERT_OK(completion.bytes);
  EXPECT_EQ(server.requests() - before, 1U);
}

}  // namespace
}  // namespace penstock::s3
