#include "profiling/spans/span_log.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace penstock {
namespace {

penstock_span numbered(uint64_t number) {
  penstock_span span{};
  span.number = number;
  return span;
}

TEST(SpanBuffer, KeepsSpansUpToItsCapacityAndCountsTheRest) {
  SpanBuffer buffer(3);
  EXPECT_TRUE(buffer.spans().empty());
  for (uint64_t i = 0; i < 5; ++i) buffer.add(numbered(i));
  ASSERT_EQ(buffer.spans().size(), 3U);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(buffer.spans()[i].number, i);
  EXPECT_EQ(buffer.dropped(), 2U);
  SpanBuffer none(0);
  none.add(numbered(1));
  EXPECT_EQ(none.dropped(), 1U);
}

TEST(SpanBuffer, CanBeReadWhileSpansAreAdded) {
  constexpr uint64_t kSpans = 20000;
  SpanBuffer buffer(kSpans);
  std::jthread owner([&] {
    for (uint64_t i = 0; i < kSpans; ++i) buffer.add(numbered(i));
  });
  for (size_t seen = 0; seen < kSpans;) {
    const auto spans = buffer.spans();
    ASSERT_GE(spans.size(), seen);
    seen = spans.size();
    if (seen > 0) {
      ASSERT_EQ(spans.back().number, seen - 1);
    }
  }
}

TEST(SpanLog, AddsUpTheCountsOfItsBuffers) {
  const auto log = SpanLog::make({2, 1}).value();
  ASSERT_EQ(log->buffers(), 2U);
  for (uint64_t i = 0; i < 3; ++i) (*log)[0].add(numbered(i));
  (*log)[1].add(numbered(9));
  EXPECT_EQ(log->recorded(), 3U);
  EXPECT_EQ(log->dropped(), 1U);
}

TEST(SpanLog, ReportsTheNumberOfSpansIfMemoryIsShort) {
  const auto log = SpanLog::make({std::numeric_limits<size_t>::max() / 2});
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().code, Errc::exhausted);
}

TEST(Components, HaveNames) {
  EXPECT_EQ(component_name(PENSTOCK_READ), "read");
  EXPECT_EQ(component_name(PENSTOCK_WAIT), "wait");
  EXPECT_EQ(component_name(PENSTOCK_COMPONENTS), "");
}

}  // namespace
}  // namespace penstock
