// Tests the parts of the library that can be tested without loading it into another process.
// ci/e2e/test_profile_*.py test the whole library. One test starts a second thread, which shares only the
// table of descriptors and an atomic flag.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/counting/descriptors.hpp"
#include "profiling/interpose/counting/handles.hpp"
#include "profiling/interpose/counting/interpose_testing.hpp"
#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/counting/thread_log.hpp"
#include "profiling/interpose/writer/session.hpp"
#include "profiling/interpose/writer/session_file.hpp"

namespace penstock::interpose {
namespace {

size_t expected_bucket(uint64_t bytes) {
  size_t bucket = 0;
  for (const uint64_t limit :
       {100ULL, 1024ULL, 10240ULL, 102400ULL, 1ULL << 20, 4ULL << 20, 10ULL << 20, 100ULL << 20, 1ULL << 30})
    bucket += bytes > limit ? 1 : 0;
  return bucket;
}

TEST(SizeBucket, MatchesTheLimits) {
  for (uint64_t bytes = 0; bytes < 200'000; ++bytes)
    ASSERT_EQ(size_bucket(bytes), expected_bucket(bytes)) << bytes;
  for (unsigned bit = 17; bit < 64; ++bit)
    for (const uint64_t near : {(uint64_t{1} << bit) - 1, uint64_t{1} << bit, (uint64_t{1} << bit) + 1})
      EXPECT_EQ(size_bucket(near), expected_bucket(near)) << near;
  for (const uint64_t limit : {10ULL << 20, 100ULL << 20})
    for (const uint64_t near : {limit - 1, limit, limit + 1})
      EXPECT_EQ(size_bucket(near), expected_bucket(near)) << near;
  EXPECT_EQ(size_bucket(std::numeric_limits<uint64_t>::max()), 9U);
}

// Counters in whole or in brief form, with access to fields that both forms have.
struct CountersOfForm {
  explicit CountersOfForm(penstock_form form) { c.form = uint8_t(form); }
  template <typename Work>
  uint64_t visit(Work work) {
    return visit_counters(c, [&work](auto& fields) { return uint64_t{work(fields)}; });
  }
  uint64_t sequential() {
    return visit([](auto& fields) { return fields.sequential_reads; });
  }
  uint64_t consecutive() {
    return visit([](auto& fields) { return fields.consecutive_reads; });
  }
  uint64_t size() {
    return visit([](auto& fields) { return fields.size; });
  }
  penstock_counters c{};
};

TEST(ReadRules, AreThoseOfDarshan) {
  for (const penstock_form form : {PENSTOCK_WHOLE, PENSTOCK_BRIEF}) {
    CountersOfForm form_counters(form);
    penstock_counters& c = form_counters.c;
    add_read(c, 0, 100, 10, 20);  // not sequential and not consecutive, because last_read is 0 at first
    EXPECT_EQ(form_counters.sequential(), 0U);
    EXPECT_EQ(form_counters.consecutive(), 0U);
    add_read(c, 100, 0, 20, 25);  // at the end of the first read
    EXPECT_EQ(form_counters.sequential(), 1U);
    EXPECT_EQ(form_counters.consecutive(), 1U);
    add_read(c, 500, 10, 30, 31);  // after a gap
    EXPECT_EQ(form_counters.sequential(), 2U);
    EXPECT_EQ(form_counters.consecutive(), 1U);
    add_read(c, 40, 10, 40, 41);  // at a lower offset
    EXPECT_EQ(form_counters.sequential(), 2U);
    EXPECT_EQ(c.bytes_read, 120U);
    EXPECT_EQ(form_counters.size(), 510U);
    EXPECT_EQ(c.read_ticks, 10U + 5 + 1 + 1);
    EXPECT_EQ(form_counters.visit([](auto& fields) { return fields.reads; }), 4U);
    EXPECT_EQ(form_counters.visit([](auto& fields) { return fields.first_read_ticks; }), 10U);
    EXPECT_EQ(form_counters.visit([](auto& fields) { return fields.last_read_ticks; }), 41U);
  }
}

TEST(ReadRules, TheHighestPositionStays) {
  for (const uint64_t far : {uint64_t{1} << 20U, uint64_t{5} << 32U}) {
    CountersOfForm whole(PENSTOCK_WHOLE);
    CountersOfForm brief(PENSTOCK_BRIEF);
    for (penstock_counters* c : {&whole.c, &brief.c}) {
      add_read(*c, int64_t(far), 100, 1, 2);
      add_read(*c, int64_t(far) * 2, 0, 2, 3);  // moves nothing
      add_read(*c, 0, 100, 3, 4);
      add_read(*c, 50, 100, 4, 5);
    }
    EXPECT_EQ(whole.c.highest_read, far + 99);
    EXPECT_EQ(uint64_t{as_brief(brief.c).highest_read_upper} << 32U | as_brief(brief.c).highest_read_lower,
              far + 99);
    add_write(whole.c, int64_t(far), 10, 5, 6);
    add_write(whole.c, 0, 10, 6, 7);
    EXPECT_EQ(whole.c.highest_written, far + 9);
    EXPECT_EQ(whole.c.last_written, 9U);
  }
}

TEST(ReadRules, CountSwitchesBetweenReadsAndWrites) {
  penstock_counters c{};
  c.form = PENSTOCK_WHOLE;
  add_read(c, 40, 10, 40, 41);
  add_write(c, 50, 10, 50, 60);
  add_read(c, 60, 10, 70, 71);
  EXPECT_EQ(c.read_write_switches, 2U);
  EXPECT_EQ(c.bytes_read, 20U);
  EXPECT_EQ(c.bytes_written, 10U);
}

TEST(ReadRules, CallsOfZeroBytesDoNotChangeTheSize) {
  penstock_counters c{};
  c.form = PENSTOCK_WHOLE;
  add_read(c, 0, 100, 10, 20);
  add_read(c, 1'000'000'000'000, 0, 20, 30);
  add_write(c, 1'000'000'000'000, 0, 30, 40);
  EXPECT_EQ(c.size, 100U);
  add_read(c, 200, 50, 40, 50);  // a short read
  EXPECT_EQ(c.size, 250U);
}

TEST(Descriptors, ShareTheDescriptionAfterDup) {
  Description* description = make_description();
  ASSERT_NE(description, nullptr);
  describe(900, description);
  describe_duplicate(900, 901);
  EXPECT_EQ(description_of(901), description);
  forget(900);
  EXPECT_EQ(description_of(900), nullptr);
  EXPECT_EQ(description_of(901), description);
  const uint64_t serial = description->serial.load();
  forget_range(901, 5000);
  EXPECT_EQ(description_of(901), nullptr);
  EXPECT_NE(description->serial.load(), serial);  // shows threads that their cached counters are invalid
  EXPECT_EQ(description_of(-1), nullptr);
  EXPECT_EQ(description_of(std::numeric_limits<int>::max()), nullptr);
}

// When a handle is closed, its entry is removed before the close: afterwards another thread may get the same
// number.
TEST(Handles, ForgettingAHandleReturnsItsFileAndItsNumberMayBeUsedAgain) {
  constexpr unsigned kKind = 7;
  remember_handle(kKind, 41, {.file = 5, .name = 64});
  EXPECT_EQ(find_handle(kKind, 41).file, 5U);
  EXPECT_EQ(find_handle(kKind + 1, 41).file, 0U);
  const HandleFile closed = forget_handle(kKind, 41);
  remember_handle(kKind, 41, {.file = 6, .name = 128});
  EXPECT_EQ(closed.file, 5U);
  EXPECT_EQ(closed.name, 64U);
  EXPECT_EQ(find_handle(kKind, 41).file, 6U);
  EXPECT_EQ(forget_handle(kKind, 41).file, 6U);
  EXPECT_EQ(forget_handle(kKind, 41).file, 0U);
}

// While another thread opens and closes kFrom, its duplicate kTo must keep the description that it got, or
// have none.
TEST(Descriptors, ADuplicateOfADescriptorClosedMeanwhileNeverGetsAnotherFile) {
  constexpr int kFrom = 920;
  constexpr int kTo = 921;
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done.load()) {
      describe(kFrom, make_description());
      forget(kFrom);
    }
  });
  int changed = 0;
  for (int i = 0; i < 20'000; ++i) {
    describe_duplicate(kFrom, kTo);
    if (const Description* description = description_of(kTo)) {
      const uint64_t serial = description->serial.load();
      std::this_thread::yield();
      changed += serial == 0 || description->serial.load() != serial ? 1 : 0;
    }
    forget(kTo);
  }
  done.store(true);
  other.join();
  EXPECT_EQ(changed, 0);
}

TEST(Descriptors, ASpareDescriptionIsReusedWithANewSerial) {
  SpareDescription spare;
  Description* first = spare.make();
  ASSERT_NE(first, nullptr);
  const uint64_t serial = first->serial.load();
  first->file = 7;
  describe(910, first);
  describe_duplicate(910, 911);
  spare.forget(910);
  EXPECT_EQ(description_of(911), first);
  EXPECT_EQ(first->serial.load(), serial);
  Description* second = spare.make();
  EXPECT_NE(second, first);  // descriptor 911 still uses `first`
  describe(910, second);
  spare.forget(911);
  EXPECT_EQ(first->serial.load(), 0U);
  EXPECT_EQ(spare.make(), first);
  EXPECT_NE(first->serial.load(), serial);
  EXPECT_NE(first->serial.load(), second->serial.load());
  EXPECT_EQ(first->file, 0U);
  drop_reference(first);
  spare.forget(910);
  spare.forget(910);  // it is already forgotten
}

// From here on, the tests use a session in a folder of its own (interpose_testing.hpp).
TEST_F(InSession, CountsEachOfManyFiles) {
  ThreadLog* log = thread_log();
  ASSERT_NE(log, nullptr);
  constexpr uint64_t kFiles = 100'000;
  for (uint64_t i = 0; i < kFiles; ++i) {
    const std::string path = "/data/" + std::to_string(i);
    count_path(*log, AT_FDCWD, path.c_str(), {.call = PENSTOCK_CALL_STAT, .begin = 1, .end = 3},
               PENSTOCK_REGULAR, 77);
  }
  EXPECT_EQ(session.header->dropped_records, 0U);
  for (uint64_t i = 0; i < kFiles; i += 997) {
    AbsoluteName name;
    ASSERT_TRUE(absolute_name(AT_FDCWD, ("/data/" + std::to_string(i)).c_str(), name));
    const penstock_counters* c = log->files.find(name.file, PENSTOCK_POSIX);
    ASSERT_NE(c, nullptr) << i;
    EXPECT_EQ(as_brief(*c).stats, 1U);
    EXPECT_EQ(as_brief(*c).size, 77U);
    const auto* stored = at_offset<penstock_name>(c->name);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(stored + 1), stored->length),
              "/data/" + std::to_string(i));
  }
  EXPECT_EQ(log->files.find(12345, PENSTOCK_POSIX), nullptr);
}

TEST_F(InSession, FullCountersAreContinuedInNewCounters) {
  ThreadLog* log = thread_log();
  ASSERT_NE(log, nullptr);
  const char text[] = "/full";
  const FileRecord file{.file = 4711, .text = text, .length = sizeof(text) - 1};
  const auto current_counters_of_file = [&] {
    return counters_of(*log, file, PENSTOCK_POSIX, PENSTOCK_CALL_READ, 1);
  };
  penstock_counters* brief = current_counters_of_file();
  ASSERT_NE(brief, nullptr);
  ASSERT_EQ(brief->form, PENSTOCK_BRIEF);
  for (unsigned i = 0; i < kMostBriefCalls; ++i) {
    EXPECT_EQ(current_counters_of_file(), brief);
    add_read(*brief, i * int64_t{100}, 100, 1, 2);
  }
  penstock_counters* whole = current_counters_of_file();
  ASSERT_NE(whole, brief);
  EXPECT_EQ(whole->form,
            PENSTOCK_WHOLE_CONTINUATION);  // `brief` has reads, so these are not the thread's first reads of
                                           // the file
  EXPECT_EQ(whole->name, brief->name);
  EXPECT_EQ(as_brief(*brief).reads, kMostBriefCalls);
  EXPECT_EQ(as_brief(*brief).read_sizes[0], kMostBriefCalls);
  EXPECT_EQ(brief->bytes_read, 100U * kMostBriefCalls);
  add_read(*whole, int64_t{kMostBriefCalls} * 100, 100, 3,
           4);  // begins where the last read in `brief` ended
  EXPECT_EQ(whole->consecutive_reads, 1U);
  whole->reads = kMostOperations;
  penstock_counters* second_continuation = current_counters_of_file();
  ASSERT_NE(second_continuation, whole);
  EXPECT_EQ(second_continuation->name, whole->name);
  EXPECT_EQ(log->files.find(4711, PENSTOCK_POSIX), second_continuation);
  EXPECT_NE(counters_of(*log, file, PENSTOCK_STDIO, PENSTOCK_CALL_READ, 1), second_continuation);
}

TEST_F(InSession, BriefCountersAcceptOnlyCallsThatTheyCanCount) {
  ThreadLog* log = thread_log();
  ASSERT_NE(log, nullptr);
  uint64_t file = 5000;
  for (const penstock_call call : {PENSTOCK_CALL_WRITE, PENSTOCK_CALL_SYNC, PENSTOCK_CALL_MAP}) {
    const FileRecord record{.file = ++file, .name = 64};
    penstock_counters* brief = counters_of(*log, record, PENSTOCK_POSIX, PENSTOCK_CALL_STAT, 1);
    ASSERT_NE(brief, nullptr);
    ASSERT_EQ(brief->form, PENSTOCK_BRIEF);
    EXPECT_FALSE(can_count(*brief, call));
    penstock_counters* whole = counters_of(*log, record, PENSTOCK_POSIX, call, 2);
    ASSERT_NE(whole, brief);
    EXPECT_EQ(whole->form, PENSTOCK_WHOLE);  // not a continuation: `brief` has no reads
    EXPECT_EQ(brief->form, PENSTOCK_CONTINUED);
  }
  for (const penstock_call call : {PENSTOCK_CALL_OPEN, PENSTOCK_CALL_CLOSE, PENSTOCK_CALL_READ,
                                   PENSTOCK_CALL_STAT, PENSTOCK_CALL_SEEK, PENSTOCK_CALL_OTHER}) {
    const FileRecord record{.file = ++file, .name = 64};
    penstock_counters* brief = counters_of(*log, record, PENSTOCK_POSIX, call, 1);
    ASSERT_NE(brief, nullptr);
    ASSERT_EQ(brief->form, PENSTOCK_BRIEF);
    for (unsigned i = 0; i < kMostBriefCalls; ++i) {
      EXPECT_TRUE(can_count(*brief, call));
      add_operation(*brief, {.call = call, .offset = 0, .begin = 1, .end = 2});
    }
    EXPECT_FALSE(can_count(*brief, call));
    EXPECT_EQ(call_count(as_brief(*brief), call), kMostBriefCalls);
    EXPECT_NE(counters_of(*log, record, PENSTOCK_POSIX, call, 3), brief);
  }
}

TEST_F(InSession, AFileHasBriefCountersUntilItIsWritten) {
  ThreadLog* log = thread_log();
  ASSERT_NE(log, nullptr);
  const char text[] = "/read, then written";
  const FileRecord file{.file = 815, .text = text, .length = sizeof(text) - 1};
  penstock_counters* part = counters_of(*log, file, PENSTOCK_POSIX, PENSTOCK_CALL_OPEN, 1);
  penstock_counters* next_file_counters =
      counters_of(*log, {.file = 816, .name = 64}, PENSTOCK_POSIX, PENSTOCK_CALL_READ, 1);
  ASSERT_NE(part, nullptr);
  ASSERT_NE(next_file_counters, nullptr);
  EXPECT_EQ(reinterpret_cast<char*>(next_file_counters) - reinterpret_cast<char*>(part),
            sizeof(penstock_brief));
  EXPECT_EQ(part->form, PENSTOCK_BRIEF);
  add_read(*part, 0, 100, 1, 2);
  EXPECT_TRUE(can_count(*part, PENSTOCK_CALL_READ));
  EXPECT_FALSE(can_count(*part, PENSTOCK_CALL_WRITE));

  penstock_counters* whole = counters_of(*log, file, PENSTOCK_POSIX, PENSTOCK_CALL_WRITE, 3);
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(whole->form, PENSTOCK_WHOLE_CONTINUATION);
  EXPECT_EQ(whole->name, part->name);
  EXPECT_EQ(part->form, PENSTOCK_CONTINUED);  // so cached counters are looked up again
  EXPECT_FALSE(can_count(*part, PENSTOCK_CALL_READ));
  EXPECT_EQ(counters_of(*log, file, PENSTOCK_POSIX, PENSTOCK_CALL_READ, 4), whole);
  add_read(*whole, 100, 100, 4, 5);  // begins where the last read in `part` ended
  EXPECT_EQ(whole->consecutive_reads, 1U);
  add_write(*whole, 0, 10, 6, 7);
  EXPECT_EQ(whole->read_write_switches, 1U);
  EXPECT_EQ(next_file_counters->bytes_read, 0U);
  EXPECT_EQ(next_file_counters->writes, 0U);
}

TEST_F(InSession, ADescriptorsCountersFitItsCalls) {
  ThreadLog* log = thread_log();
  ASSERT_NE(log, nullptr);
  constexpr int kDescriptor = 950;
  count_open(*log, AT_FDCWD, "/opened to be read", O_RDONLY, kDescriptor,
             {.call = PENSTOCK_CALL_OPEN, .begin = 1, .end = 2});
  const penstock_counters* c =
      count(*log, kDescriptor, {.call = PENSTOCK_CALL_READ, .offset = 0, .length = 5, .begin = 2, .end = 3});
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->form, PENSTOCK_BRIEF);
  // A descriptor that was opened to be read may be written to nevertheless, for example by an ioctl.
  count_read_or_write<PENSTOCK_CALL_WRITE>(*log, kDescriptor, PENSTOCK_POSIX, 5, 7, 3, 4);
  const penstock_counters* later =
      count(*log, kDescriptor, {.call = PENSTOCK_CALL_READ, .offset = 5, .length = 5, .begin = 5, .end = 6});
  ASSERT_NE(later, nullptr);
  EXPECT_EQ(later->form, PENSTOCK_WHOLE_CONTINUATION);
  EXPECT_EQ(later->bytes_written, 7U);
  EXPECT_EQ(later->consecutive_reads, 1U);
  EXPECT_EQ(c->bytes_read + later->bytes_read, 10U);
  EXPECT_EQ(forget_before_close(*log, kDescriptor), later);
  EXPECT_EQ(description_of(kDescriptor), nullptr);

  count_open(*log, AT_FDCWD, "/opened to be written", O_RDWR, kDescriptor,
             {.call = PENSTOCK_CALL_OPEN, .begin = 1, .end = 2});
  c = count(*log, kDescriptor, {.call = PENSTOCK_CALL_STAT, .begin = 2, .end = 3});
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->form, PENSTOCK_WHOLE);
  EXPECT_EQ(forget_before_close(*log, kDescriptor), c);
}

// The name of a description is copied to the new session only once, even if several descriptors refer to it.
// A second copy would look for the name in the old file at the new offset.
TEST_F(InSession, ADescriptionsNameIsCopiedOnce) {
  constexpr int kDescriptor = 703;
  ThreadLog* log = thread_log();
  ASSERT_NE(log, nullptr);
  count_open(*log, AT_FDCWD, "/taken/along", O_RDONLY, kDescriptor,
             {.call = PENSTOCK_CALL_OPEN, .begin = 1, .end = 2});
  describe_duplicate(kDescriptor, kDescriptor + 1);
  const Description* description = description_of(kDescriptor);
  ASSERT_NE(description, nullptr);
  ASSERT_EQ(description_of(kDescriptor + 1), description);
  const auto* name = at_offset<penstock_name>(description->name);
  std::vector<char> before(session.header->file_end + (size_t{4} << 20));
  memcpy(before.data() + description->name, name, sizeof(*name) + name->length);
  for (int i = 0; i < 2; ++i) {
    const uint64_t old_offset = description->name;
    copy_names_to_session(i == 0 ? before.data() : session.base);
    ASSERT_NE(description->name, old_offset);
    const auto* copied_name = at_offset<penstock_name>(description->name);
    EXPECT_EQ(copied_name->file, description->file);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(copied_name + 1), copied_name->length),
              "/taken/along");
  }
  forget(kDescriptor);
  forget(kDescriptor + 1);
}

TEST(TraceLimit, IsANumberOrTheDefault) {
  const auto limit = [](const char* text) {
    ::setenv("PENSTOCK_PROFILE_TRACE_LIMIT", text, 1);
    const uint64_t bytes = trace_limit_from_environment();
    ::unsetenv("PENSTOCK_PROFILE_TRACE_LIMIT");
    return bytes;
  };
  const uint64_t default_limit = trace_limit_from_environment();
  EXPECT_GT(default_limit, 0U);
  EXPECT_EQ(limit("131072"), 131072U);
  EXPECT_EQ(limit("0"), 0U);
  for (const char* invalid_text : {"", "abc", "12abc", "-1", " 1"})
    EXPECT_EQ(limit(invalid_text), default_limit) << invalid_text;
}

TEST_F(InSession, TheOldestSegmentsOfAllThreadsAreDropped) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kCalls = 20'000;
  constexpr uint64_t kLimit = 128U << 10U;
  const uint64_t limit = std::exchange(session.header->trace_limit, kLimit);
  {
    std::vector<std::jthread> threads;
    for (uint64_t number = 1; number <= kThreads; ++number)
      threads.emplace_back([number] {
        ThreadLog* log = thread_log();
        ASSERT_NE(log, nullptr);
        for (uint64_t i = 0; i < kCalls; ++i) {
          const Update update(*log);
          add_segment(*log, number, {.call = PENSTOCK_CALL_READ, .offset = int64_t(i), .end = i});
        }
      });
  }
  session.header->trace_limit = limit;
  std::vector<std::vector<uint64_t>> kept_offsets(kThreads + 1);
  uint64_t bytes = 0;
  for (uint64_t at = PENSTOCK_HEADER_BYTES; at < session.header->file_end;) {
    const auto* block = at_offset<penstock_block>(at);
    at += block->bytes;
    if (block->kind != PENSTOCK_BLOCK_SEGMENTS) continue;
    bytes += block->bytes;
    const auto* calls = reinterpret_cast<const penstock_segment*>(block + 1);
    for (uint64_t i = 0; i < block->used / sizeof(penstock_segment); ++i)
      kept_offsets.at(calls[i].file).push_back(calls[i].offset);
  }
  EXPECT_LE(bytes, kLimit + kThreads * PENSTOCK_BLOCK_GRANULE);
  uint64_t all = session.header->dropped_segments;
  for (uint64_t number = 1; number <= kThreads; ++number) {
    std::vector<uint64_t>& thread_offsets = kept_offsets[number];
    all += thread_offsets.size();
    ASSERT_FALSE(thread_offsets.empty());
    std::sort(thread_offsets.begin(), thread_offsets.end());
    for (size_t i = 0; i < thread_offsets.size(); ++i)
      ASSERT_EQ(thread_offsets[i], kCalls - thread_offsets.size() + i) << "the last ones, and no gap";
  }
  EXPECT_EQ(all, kThreads * kCalls);
}

TEST_F(InSession, OnlyTheOwnerMayReadTheFiles) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    struct stat status {};
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    ++files;
  }
  EXPECT_EQ(files, 1U);
}

}  // namespace
}  // namespace penstock::interpose
