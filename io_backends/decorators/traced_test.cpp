#include "io_backends/decorators/traced.hpp"

#include <array>
#include <fstream>
#include <sstream>
#include <thread>

#include "io_backends/decorators/call_trace.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

class Traced : public testing::Test {
 protected:
  static Tier open(const std::string& options) {
    static int count = 0;
    auto tier = open_tier("t=mem:traced" + std::to_string(count++) + options, kNoNamedTiers);
    EXPECT_OK(tier);
    return *std::move(tier);
  }
  static void put(Backend& backend, std::string_view name, size_t bytes) {
    const auto writer = backend.create(name);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(pattern(bytes)));
    ASSERT_OK((*writer)->publish(Durability::visible));
  }
  // Formats the counts: "create 1, write 1 (5 bytes), ..."
  static std::string counts_text(const TimesByCall& times) {
    std::string text;
    for (const auto& [call, of_call] : times) {
      text += (text.empty() ? "" : ", ") + std::string(timed_call_name(call)) + " " +
              std::to_string(of_call.ns.count());
      if (of_call.bytes != 0) text += " (" + std::to_string(of_call.bytes) + " bytes)";
      if (of_call.errors != 0) text += " (" + std::to_string(of_call.errors) + " failed)";
    }
    return text;
  }
};

TEST_F(Traced, OnlyTheOptionsTimesAndTraceMeasureCalls) {
  EXPECT_EQ(timed_calls(*open("").backend), nullptr);
  EXPECT_EQ(timed_calls(*open(",latency=1us").backend), nullptr);
  EXPECT_NE(timed_calls(*open(",times=1").backend), nullptr);
  EXPECT_FALSE(open(",times=1").backend->caps().emulated) << "it does nothing but look at the clock";
  EXPECT_TRUE(open(",latency=1us,times=1").backend->caps().emulated);
}

TEST_F(Traced, CountsEveryCallOnce) {
  const Tier tier = open(",times=1");
  TimedCalls& calls = *timed_calls(*tier.backend);
  put(*tier.backend, "folder/object", 1000);
  EXPECT_EQ(counts_text(calls.take_new_calls()), "create 1, write 1 (1000 bytes), publish 1");
  EXPECT_OK(tier.backend->create("dropped"));
  EXPECT_EQ(counts_text(calls.take_new_calls()), "create 1, discard 1");
  {
    const auto reader = tier.backend->open("folder/object");
    ASSERT_OK(reader);
    std::array<std::byte, 100> out{};
    EXPECT_OK((*reader)->read_at(0, out));
    EXPECT_OK((*reader)->read_at(100, out));
    EXPECT_OK((*reader)->size());
  }
  EXPECT_EQ(counts_text(calls.take_new_calls()), "open 1, read 2 (200 bytes), close 1, stat 1");
  Namespace& names = tier.backend->names();
  EXPECT_OK(names.stat("folder/object"));
  EXPECT_OK(names.list("folder", [](const Entry&) { return true; }));
  EXPECT_OK(names.make_folders("other"));
  EXPECT_OK(names.rename_noreplace("folder/object", "object"));
  EXPECT_OK(names.sync_dir(""));
  EXPECT_OK(names.remove("object"));
  EXPECT_OK(names.lock("lock"));
  EXPECT_EQ(counts_text(calls.take_new_calls()),
            "list 1, stat 1, make_folders 1, rename 1, remove 1, sync_folder 1, lock 1");
}

TEST_F(Traced, TakenCallsAreStillInTheTotals) {
  const Tier tier = open(",times=1");
  TimedCalls& calls = *timed_calls(*tier.backend);
  put(*tier.backend, "a", 10);
  EXPECT_EQ(counts_text(calls.totals()), "create 1, write 1 (10 bytes), publish 1");
  EXPECT_EQ(counts_text(calls.take_new_calls()), "create 1, write 1 (10 bytes), publish 1")
      << "totals() took nothing away";
  EXPECT_EQ(counts_text(calls.take_new_calls()), "");
  put(*tier.backend, "b", 10);
  EXPECT_EQ(counts_text(calls.totals()), "create 2, write 2 (20 bytes), publish 2");
  EXPECT_EQ(counts_text(calls.take_new_calls()), "create 1, write 1 (10 bytes), publish 1");
}

TEST_F(Traced, IncludesFaultsAndThrottling) {
  const Tier tier = open(",latency=5ms,fail=read:eio@#1,times=1");
  put(*tier.backend, "object", 100);
  std::array<std::byte, 100> out{};
  EXPECT_ERRC(Errc::io, tier.backend->read_object("object", 100, out));
  EXPECT_OK(tier.backend->read_object("object", 100, out));
  const TimesByCall times = timed_calls(*tier.backend)->totals();
  const CallTimes& read = times.at(CallKind::read_object);
  EXPECT_EQ(read.ns.count(), 2U);
  EXPECT_EQ(read.errors, 1U);
  EXPECT_EQ(read.bytes, 100U) << "of the one that did not fail";
  EXPECT_GE(read.ns.max(), 5'000'000U);
}

TEST_F(Traced, AnOperationOfAQueueLastsFromSubmitToReap) {
  const Tier tier = open(",latency=5ms,times=1");
  put(*tier.backend, "object", 1000);
  TimedCalls& calls = *timed_calls(*tier.backend);
  const auto reader = tier.backend->open("object");
  ASSERT_OK(reader);
  const auto queue = tier.backend->queue(4);
  ASSERT_OK(queue);
  calls.take_new_calls();
  std::array<std::byte, 1000> out{};
  const std::array<Operation, 3> operations{Operation{ReadAt{reader->get(), 0, std::span(out).first(10)}, 7},
                                            Operation{ReadObject{"object", 1000, out}, 8},
                                            Operation{ReadObject{"absent", 10, out}, 9}};
  EXPECT_EQ((*queue)->submit(operations), 3U);
  std::array<Completion, 3> done;
  EXPECT_EQ((*queue)->reap(done, 3), 3U);
  uint64_t tags = 0;
  for (const Completion& one : done) tags += one.tag;
  EXPECT_EQ(tags, 24U) << "the caller's own";
  const TimesByCall times = calls.take_new_calls();
  EXPECT_EQ(counts_text(times), "read 1 (10 bytes), read_object 2 (1000 bytes) (1 failed)");
  EXPECT_GE(times.at(CallKind::read).ns.min(), 5'000'000U);
}

TEST_F(Traced, ThreadsAreCountedTogether) {
  const Tier tier = open(",times=1");
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        for (int k = 0; k < 50; ++k) put(*tier.backend, std::to_string(i) + "/" + std::to_string(k), 3);
      });
  }
  EXPECT_EQ(counts_text(timed_calls(*tier.backend)->take_new_calls()),
            "create 400, write 400 (1200 bytes), publish 400");
}

TEST_F(Traced, ATraceThatCannotBeWrittenIsAnErrorAtOnce) {
  EXPECT_ERRC(Errc::not_found, open_tier("t=mem:traced,trace=/no/such/folder/trace.json", kNoNamedTiers));
}

TEST(CallTrace, ThreadsBeyondThirtyTwoBitsOfLanesKeepRowsOfTheirOwn) {
  const ScratchFolder scratch;
  const std::string path = (scratch.path() / "trace.json").string();
  CallTrace trace;
  TracedCall call;
  for (const uint32_t thread : {0U, 42'950U}) {
    call.lane = trace_lane(thread, 7);
    trace.add(call, "object");
  }
  auto file = TraceFile::create(path);
  ASSERT_OK(file);
  ASSERT_OK(file->write({&trace}, 0));
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find(R"("tid":7,)"), std::string::npos);
  EXPECT_NE(text.str().find(R"("tid":4295000007,)"), std::string::npos) << text.str();
}

TEST(JsonText, EscapesQuotesControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(json_text("plain/name"), "plain/name");
  EXPECT_EQ(json_text("a\"b\\c\nd\x01"), "a\\\"b\\\\c\\u000ad\\u0001");
  EXPECT_EQ(json_text("\xc3\xa9\xe6\xb0\xb4"), "\xc3\xa9\xe6\xb0\xb4");
  EXPECT_EQ(json_text("\xff\xc3"), "\\ufffd\\ufffd") << "no UTF-8";
}

}  // namespace
}  // namespace penstock
