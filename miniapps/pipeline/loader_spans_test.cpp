// Tests the spans that the loader records for its workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "miniapps/pipeline/loader_testing.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {
namespace {

// All spans of a run of `epochs` epochs, by component.
std::map<std::string_view, std::vector<penstock_span>> spans_of(Pipe& pipe, unsigned threads, SpanLog& log,
                                                                uint64_t epochs = 2, size_t depth = 1) {
  const auto loader =
      BatchLoader::make({&pipe.manifest, pipe.backend, &pipe.app_transform, &pipe.pool,
                         Sampler(pipe.manifest.samples(), Shuffle::global, 77), PlanLimits{0, epochs},
                         threads, BadSample::skip, depth, std::chrono::nanoseconds{0}, &log});
  EXPECT_TRUE(loader.ok());
  drain(**loader, pipe.manifest);
  EXPECT_TRUE((*loader)->close(std::chrono::hours(1)));
  std::map<std::string_view, std::vector<penstock_span>> by;
  for (size_t i = 0; i < log.buffers(); ++i)
    for (const penstock_span& span : log[i].spans()) by[component_name(span.component)].push_back(span);
  return by;
}

std::unique_ptr<SpanLog> log_for(unsigned threads, size_t capacity = 10000) {
  return SpanLog::make(std::vector<size_t>(threads + 1, capacity)).value();
}

TEST(LoaderSpans, EverySampleIsReadDecodedAndLoadedOnce) {
  for (const size_t depth : {size_t{1}, size_t{5}}) {
    Pipe pipe(48, 8, 3);
    const auto log = log_for(3);
    const auto spans = spans_of(pipe, 3, *log, 2, depth);
    for (const char* what : {"read", "decode", "transform", "load"}) {
      std::set<std::pair<uint32_t, uint64_t>> seen;
      for (const penstock_span& span : spans.at(what)) {
        EXPECT_TRUE(seen.insert({span.epoch, span.number}).second) << what;
        EXPECT_LE(span.begin_ns, span.end_ns);
        EXPECT_EQ(span.bytes,
                  std::string_view(what) == "read" ? pipe.manifest.sample(span.number).length : 0);
      }
      EXPECT_EQ(seen.size(), 96U) << what;
    }
    for (const penstock_span& span : spans.at("transform")) EXPECT_EQ(span.detail, 1U) << "the second stage";
    EXPECT_EQ(spans.at("shuffle").size(), 2U);
    EXPECT_EQ(log->dropped(), 0U);
  }
}

TEST(LoaderSpans, PartsFollowEachOtherWithinTheirLoadSpan) {
  Pipe pipe(32, 8, 2);
  const auto log = log_for(2);
  const auto spans = spans_of(pipe, 2, *log, 1);
  std::map<uint64_t, penstock_span> loads;
  for (const penstock_span& load : spans.at("load")) loads[load.number] = load;
  std::map<uint64_t, int64_t> summed;
  for (const char* what : {"read", "decode", "transform"}) {
    for (const penstock_span& span : spans.at(what)) {
      const penstock_span& load = loads.at(span.number);
      EXPECT_EQ(span.thread, load.thread);
      EXPECT_GE(span.begin_ns, load.begin_ns);
      EXPECT_LE(span.end_ns, load.end_ns);
      summed[span.number] += span.end_ns - span.begin_ns;
    }
  }
  for (const auto& [number, load] : loads) EXPECT_EQ(summed[number], load.end_ns - load.begin_ns);
}

TEST(LoaderSpans, ABadSampleHasASpanForTheStageThatFailed) {
  Pipe pipe(32, 8, 2);
  pipe.app_transform.refused_lengths = {size_t(pipe.manifest.sample(5).length)};
  const auto log = log_for(1);
  const auto spans = spans_of(pipe, 1, *log, 1);
  EXPECT_EQ(spans.at("read").size(), spans.at("load").size());
  EXPECT_EQ(spans.at("decode").size(), spans.at("load").size());
  EXPECT_EQ(spans.at("transform").size(), spans.at("load").size()) << "it is refused behind `decode`";
}

TEST(LoaderSpans, SpansThatDoNotFitAreCounted) {
  Pipe pipe(48, 8, 3);
  const auto log = log_for(1, 10);
  static_cast<void>(spans_of(pipe, 1, *log, 1));
  EXPECT_EQ((*log)[0].spans().size(), 10U);
  EXPECT_GE(log->dropped(), 4U * 48U - 10U);
}

TEST(LoaderSpans, RecordsTheWaitForASlot) {
  Pipe pipe(32, 8, 1);
  const auto log = log_for(1);
  const auto spans = spans_of(pipe, 1, *log, 2);
  ASSERT_TRUE(spans.contains("wait"));
  EXPECT_EQ(spans.at("wait").size(), 7U) << "between 8 batches, of which one may be ready";
  for (const penstock_span& span : spans.at("wait")) {
    EXPECT_EQ(span.detail, PENSTOCK_WAIT_ROOM);
    EXPECT_EQ(span.number, PENSTOCK_NO_NUMBER);
    EXPECT_EQ(span.epoch, PENSTOCK_NO_EPOCH);
  }
}

}  // namespace
}  // namespace penstock
