#include "profiling/session/session_view.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "io_backends/testing/testing.hpp"
#include "profiling/session/session_testing.hpp"

namespace penstock {
namespace {

SessionView view_of(const std::vector<std::byte>& bytes) {
  return SessionView::parse(bytes).value();
}

size_t counters_in(const SessionView& view) {
  size_t count = 0;
  view.each<penstock_counters>(PENSTOCK_BLOCK_COUNTERS, [&](const auto&, uint64_t) { ++count; });
  return count;
}

penstock_block& block_at(SessionBytes& session, uint64_t offset) {
  return *reinterpret_cast<penstock_block*>(session.bytes().data() + offset);
}

TEST(SessionView, FindsAllEntries) {
  SessionBytes session;
  session.add_file("/data/a", 100, 3, 4096);
  session.add_thread(100, 12288, 0);
  session.add_event(PENSTOCK_EVENT_SPAWN, 5, 101, "/bin/true");
  const SessionView view = view_of(session.bytes());
  EXPECT_EQ(view.header().pid, 100U);
  EXPECT_EQ(view.blocks().size(), 4U);
  EXPECT_EQ(view.torn_bytes(), 0U);
  view.each<penstock_counters>(PENSTOCK_BLOCK_COUNTERS, [&](const penstock_counters& counters, uint64_t at) {
    EXPECT_EQ(counters.bytes_read, 12288U);
    EXPECT_EQ(view.name_at(counters.name).text, "/data/a");
    EXPECT_EQ(view.counters_at(at).file, counters.file);
  });
  EXPECT_EQ(counters_in(view), 1U);
  std::string program;
  view.each_event([&](const penstock_event& event, std::string_view text) {
    EXPECT_EQ(event.pid, 101U);
    program = text;
  });
  EXPECT_EQ(program, "/bin/true");
}

TEST(SessionView, ConvertsBriefCountersToWholeOnes) {
  SessionBytes session;
  const penstock_brief brief{.file = 1,
                             .name = 2,
                             .thread = 3,
                             .layer = 4,
                             .last_was = 5,
                             .form = PENSTOCK_BRIEF,
                             .bytes_read = 7,
                             .read_ticks = 8,
                             .meta_ticks = 9,
                             .last_read = 10,
                             .size = 11,
                             .first_ticks = 12,
                             .last_ticks = 13,
                             .first_read_ticks = 14,
                             .last_read_ticks = 15,
                             .reads = 16,
                             .sequential_reads = 17,
                             .consecutive_reads = 18,
                             .opens = 19,
                             .closes = 20,
                             .stats = 21,
                             .seeks = 22,
                             .other = 255,
                             .read_sizes = {24, 25, 26, 27, 28, 29, 30, 31, 32, 255},
                             .highest_read_upper = 1,
                             .failures = 70'000,
                             .descriptors = 80'000,
                             .highest_read_lower = 90};
  session.add(brief);
  const SessionView view = view_of(session.bytes());
  view.each<penstock_counters>(PENSTOCK_BLOCK_COUNTERS, [&](const penstock_counters& c, uint64_t at) {
    EXPECT_EQ(std::vector<uint64_t>({c.file, c.name, c.thread, c.layer, c.last_was, c.form, c.bytes_read,
                                     c.read_ticks, c.meta_ticks, c.last_read, c.size, c.first_ticks,
                                     c.last_ticks, c.first_read_ticks, c.last_read_ticks}),
              std::vector<uint64_t>({1, 2, 3, 4, 5, PENSTOCK_BRIEF, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
    EXPECT_EQ(std::vector<uint64_t>({c.reads, c.sequential_reads, c.consecutive_reads, c.opens, c.closes,
                                     c.stats, c.seeks, c.other, c.failures, c.descriptors}),
              std::vector<uint64_t>({16, 17, 18, 19, 20, 21, 22, 255, 70'000, 80'000}));
    EXPECT_EQ(std::vector<uint64_t>(std::begin(c.read_sizes), std::end(c.read_sizes)),
              std::vector<uint64_t>({24, 25, 26, 27, 28, 29, 30, 31, 32, 255}));
    EXPECT_EQ(c.highest_read, (uint64_t{1} << 32U) + 90);
    EXPECT_EQ(c.syncs + c.maps + c.mapped_bytes + c.bytes_written + c.writes + c.last_write_ticks, 0U);
    const penstock_counters again = view.counters_at(at);
    EXPECT_EQ(std::memcmp(&again, &c, sizeof c), 0);
  });
  EXPECT_EQ(counters_in(view), 1U);
  EXPECT_EQ(view.blocks().back().entries.size(), sizeof brief);
}

// Older releases wrote whole counters of 288 bytes, without the highest positions.
TEST(SessionView, ReadsShorterCountersOfOlderReleases) {
  constexpr size_t kOldBytes = 288;
  SessionBytes session;
  for (uint64_t file : {1U, 2U}) {
    penstock_counters counters{};
    counters.file = file;
    counters.form = PENSTOCK_WHOLE;
    counters.writes = 3;
    session.add_older(counters, kOldBytes);
  }
  const SessionView view = view_of(session.bytes());
  std::vector<uint64_t> files;
  view.each<penstock_counters>(PENSTOCK_BLOCK_COUNTERS, [&](const penstock_counters& c, uint64_t at) {
    files.push_back(c.file);
    EXPECT_EQ(c.highest_read + c.highest_written, 0U);
    const penstock_counters again = view.counters_at(at);
    EXPECT_EQ(std::memcmp(&again, &c, sizeof c), 0);
  });
  EXPECT_EQ(files, (std::vector<uint64_t>{1, 2}));
}

TEST(SessionView, ReadsBlocksOfAnySizeAndSeveralOfOneKind) {
  SessionBytes session(100, 3 * PENSTOCK_BLOCK_GRANULE);
  for (int i = 0; i < 1000; ++i) session.add_file("/data/" + std::to_string(i), 100, 1, 1);
  EXPECT_EQ(counters_in(view_of(session.bytes())), 1000U);
}

TEST(SessionView, RefusesFilesThatAreNoSession) {
  EXPECT_ERRC(Errc::corrupt, SessionView::parse({}));
  SessionBytes session;
  EXPECT_ERRC(Errc::corrupt, SessionView::parse(std::span(session.bytes()).first(100)));
  session.header().magic[0] = 'X';
  EXPECT_ERRC(Errc::corrupt, SessionView::parse(session.bytes()));
  session = SessionBytes();
  session.header().version = PENSTOCK_SESSION_VERSION + 1;
  EXPECT_TRUE(fails_with(Errc::unsupported, SessionView::parse(session.bytes()), "version 4"));
  session = SessionBytes();
  session.header().byte_order = 0x04030201U;
  EXPECT_ERRC(Errc::unsupported, SessionView::parse(session.bytes()));
  for (const uint32_t granule : {0U, 1U, 12345U, 0xffffffffU}) {
    session = SessionBytes();
    session.header().granule = granule;
    EXPECT_ERRC(Errc::corrupt, SessionView::parse(session.bytes())) << granule;
  }
}

TEST(SessionView, ContinuesAfterADamagedBlock) {
  SessionBytes session;
  session.add_file("/data/a", 100, 1, 10);
  const uint64_t names = PENSTOCK_HEADER_BYTES;
  const uint64_t counters = names + PENSTOCK_BLOCK_GRANULE;
  session.add_thread(100, 1, 1);
  block_at(session, counters).magic = 0x12345678;
  const SessionView view = view_of(session.bytes());
  EXPECT_EQ(counters_in(view), 0U);
  EXPECT_EQ(view.blocks().size(), 2U);
  EXPECT_EQ(view.torn_bytes(), PENSTOCK_BLOCK_GRANULE);
}

TEST(SessionView, TrustsNoSizeFromTheFile) {
  for (const uint64_t lie : {uint64_t{1}, uint64_t{40'000'000}, UINT64_MAX, UINT64_MAX - 63}) {
    SessionBytes session;
    session.add_file("/data/a", 100, 1, 10);
    const uint64_t names = PENSTOCK_HEADER_BYTES;
    block_at(session, names + PENSTOCK_BLOCK_GRANULE).used = lie;
    SessionView view = view_of(session.bytes());
    EXPECT_LE(counters_in(view), PENSTOCK_BLOCK_GRANULE / sizeof(penstock_brief));
    block_at(session, names).bytes = lie;
    view = view_of(session.bytes());
    EXPECT_LE(view.blocks().size(), 2U);
    session.header().file_end = lie;
    view = view_of(session.bytes());
    EXPECT_LE(view.blocks().size(), 2U);
  }
}

TEST(SessionView, IgnoresANameThatReachesBeyondTheFile) {
  SessionBytes session;
  const uint64_t at = session.add_name("/data/a");
  EXPECT_EQ(view_of(session.bytes()).name_at(at).text, "/data/a");
  reinterpret_cast<penstock_name*>(session.bytes().data() + at)->length = UINT32_MAX;
  const SessionView view = view_of(session.bytes());
  EXPECT_EQ(view.name_at(at).text, "");
  EXPECT_EQ(view.name_at(0).text, "");
  EXPECT_EQ(view.name_at(session.bytes().size() - 1).text, "");
  EXPECT_EQ(view.name_at(UINT64_MAX).text, "");
}

TEST(SessionView, EveryTruncatedSessionCanBeRead) {
  SessionBytes session;
  for (int i = 0; i < 100; ++i) session.add_file("/data/" + std::to_string(i), 100, 1, 1);
  size_t last = 0;
  for (size_t size = 0; size <= session.bytes().size(); size += 509) {
    const std::vector<std::byte> prefix(session.bytes().begin(), session.bytes().begin() + ptrdiff_t(size));
    const Result<SessionView> view = SessionView::parse(prefix);
    if (size < sizeof(penstock_session_header)) {
      EXPECT_FALSE(view.ok());
      continue;
    }
    ASSERT_OK(view);
    const size_t now = counters_in(*view);
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_GE(last, 90U);
}

TEST(SessionView, SkipsHoles) {
  SessionBytes session;
  session.add_thread(100, 1, 1);
  const uint64_t block = PENSTOCK_HEADER_BYTES;
  std::vector<std::byte> bytes = session.bytes();
  const uint64_t far = block + 1000 * uint64_t{PENSTOCK_BLOCK_GRANULE};
  bytes.resize(far);
  bytes.insert(bytes.end(), session.bytes().begin() + ptrdiff_t(block), session.bytes().end());
  reinterpret_cast<penstock_session_header*>(bytes.data())->file_end = bytes.size();
  size_t asked = 0;
  const auto next = [&](uint64_t offset) {
    ++asked;
    return offset < block + PENSTOCK_BLOCK_GRANULE ? offset : std::max(offset, far);
  };
  const Result<SessionView> view = SessionView::parse(bytes, next);
  ASSERT_OK(view);
  EXPECT_EQ(view->blocks().size(), 2U);
  EXPECT_LT(asked, 10U);
}

TEST(SessionClock, InterpolatesBetweenTwoReadings) {
  penstock_session_header header{};
  header.clock = PENSTOCK_CLOCK_TSC;
  header.begin = {5000, 1'000'000'000};
  header.begin_realtime_ns = 7'000'000'000;
  header.ticks_per_s = 1;  // must not be used
  header.later[1] = {5000 + 30'000'000, 1'000'000'000 + 10'000'000};
  header.later_index = 1;
  const SessionClock clock(header);
  EXPECT_TRUE(clock.known());
  EXPECT_EQ(clock.monotonic_ns(5000), 1'000'000'000);
  EXPECT_EQ(clock.monotonic_ns(5000 + 3'000'000), 1'001'000'000);
  EXPECT_EQ(clock.monotonic_ns(5000 - 3000), 1'000'000'000 - 1000);
  EXPECT_EQ(clock.realtime_ns(1'000'000'100), 7'000'000'100);
  EXPECT_DOUBLE_EQ(clock.duration_ns(300), 100);
}

TEST(SessionClock, IfReadingsAreTooCloseTheMeasuredRateIsUsed) {
  penstock_session_header header{};
  header.clock = PENSTOCK_CLOCK_TSC;
  header.begin = {1000, 1000};
  header.later[0] = {1100, 1900};
  header.ticks_per_s = 2'000'000'000;
  EXPECT_DOUBLE_EQ(SessionClock(header).duration_ns(2000), 1000);
  header.ticks_per_s = 0;
  EXPECT_FALSE(SessionClock(header).known());
}

TEST(SessionClock, AReadingOfAnotherProcessMakesItMoreExact) {
  penstock_session_header header{};
  header.clock = PENSTOCK_CLOCK_TSC;
  header.begin = {1000, 1000};
  header.ticks_per_s = 2'002'000'000;  // measured over a very short time, wrong by a thousandth
  SessionClock clock(header);
  clock.refine({1000 + 20'000'000'000, 1000 + 10'000'000'000});
  EXPECT_DOUBLE_EQ(clock.duration_ns(2'000'000'000), 1e9);
  // ignored: a reading that is closer to `begin` is less exact
  clock.refine({1000 + 2'000'000, 1000 + 1'001'000});
  EXPECT_DOUBLE_EQ(clock.duration_ns(2'000'000'000), 1e9);
  clock.refine({5, 1'000'000'000'000});  // ignored, like the next two: from another machine or boot
  clock.refine({UINT64_MAX, 1'000'000'000'000});
  clock.refine({1000, INT64_MIN});
  EXPECT_DOUBLE_EQ(clock.duration_ns(2'000'000'000), 1e9);
}

TEST(SessionClock, ImpossibleTimesAreLimited) {
  penstock_session_header header{};
  header.clock = PENSTOCK_CLOCK_TSC;
  header.begin = {0, INT64_MAX};
  header.begin_realtime_ns = INT64_MAX;
  header.ticks_per_s = 1;
  const SessionClock clock(header);
  EXPECT_EQ(clock.monotonic_ns(UINT64_MAX), INT64_MAX);
  EXPECT_EQ(clock.realtime_ns(INT64_MIN), INT64_MAX);
}

TEST(SessionView, SegmentsThatWereReplacedDuringReadingAreSkipped) {
  SessionBytes bytes(100);
  for (unsigned i = 0; i < 10; ++i) {
    penstock_segment segment{};
    segment.file = i;
    bytes.add(segment);
  }
  const SessionView view = SessionView::parse(bytes.bytes()).value();
  ASSERT_EQ(view.blocks().size(), 1U);
  std::byte* const block = bytes.bytes().data() + view.blocks()[0].offset;
  std::vector<uint64_t> seen;
  uint64_t third = 0;
  view.each<penstock_segment>(PENSTOCK_BLOCK_SEGMENTS, [&](const penstock_segment& segment, uint64_t at) {
    seen.push_back(segment.file);
    if (segment.file == 2) {
      third = at;
      EXPECT_EQ(view.segment_at(at).value().file, 2U);
    }
    // Now the process reuses the block.
    if (segment.file == 3) reinterpret_cast<penstock_block*>(block)->renewed += 1;
  });
  EXPECT_EQ(seen, (std::vector<uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(times_emptied(block), 1U);
  EXPECT_FALSE(view.segment_at(third).has_value());
}

}  // namespace
}  // namespace penstock
