// No test depends on the speed of the machine. A wait must have at least the right length, and the token
// bucket gets artificial times.
#include "io_backends/decorators/throttled.hpp"

#include <thread>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(TokenBucket, PassesAtItsRateAfterTheBurst) {
  TokenBucket bucket(1'000'000);  // 1 us a byte
  const Clock::time_point start(1h);
  EXPECT_EQ(bucket.pass(10'000, start), start) << "10 ms were saved up";
  EXPECT_EQ(bucket.pass(1'000, start), start + 1ms);
  EXPECT_EQ(bucket.pass(1'000, start), start + 2ms);
  EXPECT_EQ(bucket.pass(1'000, start + 1ms), start + 3ms) << "behind what set out before";
  EXPECT_EQ(bucket.pass(50'000, start + 1h), start + 1h + 40ms) << "no more than 10 ms are saved up";
}

TEST(TokenBucket, NeverPassesMoreThanItsRateOverTime) {
  TokenBucket bucket(150'000'000);
  const Clock::time_point start(1h);
  Clock::time_point now = start;
  uint64_t bytes = 0;
  for (int i = 0; i < 10'000; ++i) {
    now = bucket.pass(112'000, now);
    bytes += 112'000;
  }
  const double seconds = std::chrono::duration<double>(now - start).count();
  EXPECT_NEAR(double(bytes) / 150e6, seconds, 0.011);
}

// A single caller waits for the latency and then for its bytes, as on a disk that moves no bytes during a
// seek, whatever it read before.
TEST(TokenBucket, OneCallerHasLatencyAndBytesOneAfterTheOther) {
  TokenBucket bucket(1'000'000, 4ms);  // 1 us a byte
  const Clock::time_point start(1h);
  Clock::time_point now = start;
  for (const uint64_t bytes : {100U, 20'000U, 1U, 9'000U}) {
    const auto due = bucket.pass(bytes, now);
    EXPECT_EQ(due, now + 4ms + std::chrono::microseconds(bytes));
    now = due;
  }
  EXPECT_EQ(bucket.pass(0, now), now + 4ms) << "a call without bytes";
  EXPECT_EQ(bucket.pass(3'000, now + 20ms), now + 27ms) << "nothing is saved up by what the caller does";
}

TEST(TokenBucket, ALateWakeUpLetsLaterRequestsStartEarlier) {
  TokenBucket bucket(1'000'000, 4ms);
  const Clock::time_point start(1h);
  EXPECT_EQ(bucket.pass(3'000, start), start + 7ms);
  bucket.add_lateness(start + 7ms, start + 8ms);
  EXPECT_EQ(bucket.pass(3'000, start + 8ms), start + 14ms);
  EXPECT_EQ(bucket.pass(3'000, start + 15ms), start + 22ms) << "once";
  bucket.add_lateness(start + 22ms, start + 29ms);
  EXPECT_EQ(bucket.pass(3'000, start + 29ms), start + 33ms) << "never before the latency";
  bucket.add_lateness(start, start + 1h);
  EXPECT_EQ(bucket.pass(30'000, start + 2h), start + 2h + 24ms) << "of at most 10 ms";
}

TEST(TokenBucket, ManyWaitForTheirLatenciesTogether) {
  TokenBucket bucket(1'000'000, 4ms);
  const Clock::time_point start(1h);
  bucket.pass(30'000, start);
  const Clock::time_point busy_until = start + 34ms;
  for (int i = 1; i <= 8; ++i)
    EXPECT_EQ(bucket.pass(1'000, start + 30ms), busy_until + i * 1ms)
        << "the pipe is busy: no latency is seen";
}

TEST(TokenBucket, LatenciesWithoutARateOverlap) {
  TokenBucket bucket(0, 4ms);
  const Clock::time_point start(1h);
  EXPECT_EQ(bucket.pass(UINT64_MAX, start), start + 4ms);
  EXPECT_EQ(bucket.pass(1, start), start + 4ms);
}

TEST(TokenBucket, NoRateIsNoLimitAndHugeIsNoOverflow) {
  TokenBucket free(0);
  const Clock::time_point start(1h);
  EXPECT_EQ(free.pass(UINT64_MAX, start), start);
  TokenBucket slow(1);
  EXPECT_GT(slow.pass(UINT64_MAX, start), start + 24h * 365);
  EXPECT_GT(slow.pass(UINT64_MAX, start), start + 24h * 365);
}

class Throttled : public testing::Test {
 protected:
  static Tier open(const std::string& options) {
    static int count = 0;
    auto tier = open_tier("t=mem:throttled" + std::to_string(count++) + options, kNoNamedTiers);
    EXPECT_OK(tier);
    return *std::move(tier);
  }
  static void put(Backend& backend, std::string_view name, size_t bytes) {
    auto writer = backend.create(name);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(pattern(bytes)));
    ASSERT_OK((*writer)->publish(Durability::visible));
  }
  template <class Work>
  static Clock::duration time_of(Work work) {
    const auto begin = Clock::now();
    work();
    return Clock::now() - begin;
  }
};

TEST_F(Throttled, OptionsBecomeLimits) {
  const auto parse = [](std::initializer_list<OptionWord> words) {
    const std::vector<OptionWord> list(words);
    const auto options = Options::parse(tier_options(), list, "tier option");
    EXPECT_OK(options);
    return Throttling::from_options(*options);
  };
  EXPECT_FALSE(parse({}).has_limits());
  const auto both = parse({{"limit", "150MB/s"}});
  EXPECT_EQ(both.read_bytes_per_s, 150'000'000U);
  EXPECT_EQ(both.write_bytes_per_s, 150'000'000U);
  const auto one = parse({{"limit", "1GB/s"}, {"read_limit", "2MB/s"}, {"latency", "5ms"}});
  EXPECT_EQ(one.read_bytes_per_s, 2'000'000U);
  EXPECT_EQ(one.write_bytes_per_s, 1'000'000'000U);
  EXPECT_EQ(one.latency, 5ms);
}

TEST_F(Throttled, ReadsAndWritesWaitForTheirBytes) {
  const Tier tier = open(",read_limit=10MB/s,write_limit=20MB/s");
  // 1 MB takes 50 ms at this rate, but the pipe has saved up 10 ms.
  EXPECT_GE(time_of([&] { put(*tier.backend, "object", 1'000'000); }), 40ms);
  std::vector<std::byte> out(1'000'000);
  EXPECT_GE(time_of([&] { EXPECT_OK(tier.backend->read_object("object", 0, out)); }), 90ms);
  EXPECT_GE(time_of([&] { EXPECT_OK(tier.backend->read_object("object", out.size(), out)); }), 90ms);
  const auto reader = tier.backend->open("object");
  ASSERT_OK(reader);
  EXPECT_GE(time_of([&] { EXPECT_OK((*reader)->read_at(0, out)); }), 90ms);
  EXPECT_EQ(out, pattern(1'000'000));
}

TEST_F(Throttled, EveryOperationHasItsLatency) {
  const Tier tier = open(",latency=3ms");
  Backend& backend = *tier.backend;
  put(backend, "object", 100);
  std::vector<std::byte> out(100);
  EXPECT_GE(time_of([&] { EXPECT_OK(backend.open("object")); }), 3ms);
  EXPECT_GE(time_of([&] { EXPECT_OK(backend.create("other")); }), 3ms);
  EXPECT_GE(time_of([&] { EXPECT_OK(backend.read_object("object", 100, out)); }), 3ms);
  EXPECT_GE(time_of([&] { EXPECT_OK(backend.names().stat("object")); }), 3ms);
  EXPECT_GE(time_of([&] { EXPECT_OK(backend.names().list("", [](const Entry&) { return true; })); }), 3ms);
  EXPECT_GE(time_of([&] { EXPECT_OK(backend.names().remove("object")); }), 3ms);
}

// Each operation has its own due time. After 20 ms a poll, which never waits, finds all of them.
TEST_F(Throttled, DepthHidesLatency) {
  const Tier tier = open(",latency=20ms");
  constexpr size_t kDepth = 32;
  put(*tier.backend, "object", 100);
  const auto queue = tier.backend->queue(kDepth);
  ASSERT_OK(queue);
  std::vector<std::vector<std::byte>> outs(kDepth, std::vector<std::byte>(100));
  std::vector<Operation> operations;
  for (size_t i = 0; i < kDepth; ++i) operations.push_back({ReadObject{"object", 100, outs[i]}, i});
  std::vector<Completion> completions(kDepth);
  const auto begin = Clock::now();
  ASSERT_EQ((*queue)->submit(operations), kDepth);
  EXPECT_EQ((*queue)->in_flight(), kDepth);
  const size_t early = (*queue)->reap(completions, 0);
  EXPECT_TRUE(early == 0 || Clock::now() - begin >= 20ms) << "nothing is due yet";
  std::this_thread::sleep_until(begin + 21ms);
  EXPECT_EQ(early + (*queue)->reap(completions, 0), kDepth);
}

TEST_F(Throttled, AQueueKeepsTheLimitWhateverItsDepth) {
  const Tier tier = open(",read_limit=10MB/s");
  constexpr size_t kDepth = 8;
  put(*tier.backend, "object", 100'000);
  for (const uint64_t hint : {100'000U, 0U}) {
    const auto queue = tier.backend->queue(kDepth);
    ASSERT_OK(queue);
    std::vector<std::vector<std::byte>> outs(kDepth, std::vector<std::byte>(100'000));
    std::vector<Operation> operations;
    for (size_t i = 0; i < kDepth; ++i) operations.push_back({ReadObject{"object", hint, outs[i]}, i});
    std::vector<Completion> completions(kDepth);
    EXPECT_GE(time_of([&] {
                ASSERT_EQ((*queue)->submit(operations), kDepth);
                for (size_t done = 0; done < kDepth;) done += (*queue)->reap(completions, kDepth);
              }),
              70ms);
  }
}

TEST_F(Throttled, AnInterruptEndsTheWait) {
  const Tier tier = open(",read_limit=10B/s");
  put(*tier.backend, "object", 100'000);
  std::vector<std::byte> out(100'000);
  simulate_interrupt(2);
  EXPECT_ERRC(Errc::interrupted, tier.backend->read_object("object", 100'000, out));
  const auto queue = tier.backend->queue(2);
  ASSERT_OK(queue);
  const Operation operation{ReadObject{"object", 100'000, out}, 7};
  ASSERT_EQ((*queue)->submit({&operation, 1}), 1U);
  Completion completion;
  EXPECT_EQ((*queue)->reap({&completion, 1}, 1), 1U) << "does not wait for hours";
  EXPECT_EQ(completion.tag, 7U);
  simulate_interrupt(0);
}

TEST_F(Throttled, AnInterruptedCallChangesNothing) {
  const Tier tier = open(",latency=1ms");
  Backend& backend = *tier.backend;
  put(backend, "object", 10);
  auto writer = backend.create("other");
  ASSERT_OK(writer);
  simulate_interrupt(2);
  EXPECT_ERRC(Errc::interrupted, (*writer)->publish(Durability::visible));
  EXPECT_ERRC(Errc::interrupted, backend.names().remove("object"));
  EXPECT_ERRC(Errc::interrupted, backend.names().rename_noreplace("object", "moved"));
  simulate_interrupt(0);
  EXPECT_ERRC(Errc::not_found, backend.names().stat("other"));
  EXPECT_OK(backend.names().stat("object"));
}

TEST_F(Throttled, FailuresPassThrough) {
  const Tier tier = open(",latency=1ms,limit=1MB/s");
  std::vector<std::byte> out(10);
  EXPECT_ERRC(Errc::not_found, tier.backend->read_object("nothing", 10, out));
  EXPECT_ERRC(Errc::not_found, tier.backend->open("nothing"));
  EXPECT_TRUE(tier.backend->caps().emulated);
  EXPECT_TRUE(tier.backend->caps().zero_copy) << "the rest of the caps stays";
}

}  // namespace
}  // namespace penstock
