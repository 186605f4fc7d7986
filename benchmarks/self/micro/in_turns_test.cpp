#include "benchmarks/self/micro/in_turns.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using namespace std::chrono_literals;

// Stores the runs that a benchmark reports.
class StoringReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) all.push_back(run);
  }
  std::vector<Run> all;
};

benchmark::BenchmarkReporter::Run run(const std::function<void(benchmark::State&)>& body,
                                      benchmark::IterationCount iterations, int threads = 1) {
  benchmark::ClearRegisteredBenchmarks();
  benchmark::RegisterBenchmark("it", body)->Iterations(iterations)->Threads(threads)->UseManualTime();
  StoringReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  EXPECT_EQ(reporter.all.size(), 1U);
  return reporter.all.at(0);
}

void expect_ok(const Result<void>& done) {
  EXPECT_TRUE(done.ok());
}

TEST(ByTurns, CallsBothEquallyOftenAndAlternatesTheFirst) {
  std::string calls;
  const auto report = run(
      [&](benchmark::State& state) {
        expect_ok(by_turns(
            state, {.batch = 2}, [&] { calls += 'm'; }, [&] { calls += 'p'; }));
      },
      8);
  EXPECT_EQ(calls, "mmppppmmmmppppmm");
  EXPECT_EQ(report.iterations, 8);
  EXPECT_EQ(report.counters.count("items_per_second"), 1U);
}

TEST(ByTurns, TheTimeIsThatOfWhatIsMeasuredAndTheCounterComparesBoth) {
  for (const int threads : {1, 2}) {
    const auto report = run(
        [&](benchmark::State& state) {
          expect_ok(by_turns(
              state, {.batch = 2, .bytes = 1000}, [] { std::this_thread::sleep_for(2ms); },
              [] { std::this_thread::sleep_for(20ms); }));
        },
        20, threads);
    const double each_s = report.real_accumulated_time / double(report.iterations);
    EXPECT_GE(each_s, 0.0019 / threads);
    EXPECT_LT(each_s, 0.018) << "the plain loop is not in it";
    EXPECT_GT(report.counters.at("of_baseline").value, 1.0);
    EXPECT_LT(report.counters.at("of_baseline").value, 17) << "of each thread, not added up";
    EXPECT_LT(report.counters.at("bytes_per_second").value, 1000 * threads / 0.0019);
  }
}

TEST(ByTurns, TheProcessorTimeIsThatOfWhatIsMeasured) {
  const auto report = run(
      [&](benchmark::State& state) {
        expect_ok(by_turns(
            state, {.batch = 2}, [] {},
            [] {
              const auto until = std::chrono::steady_clock::now() + 10ms;
              while (std::chrono::steady_clock::now() < until) benchmark::ClobberMemory();
            }));
      },
      4);
  EXPECT_LT(report.cpu_accumulated_time, 0.010);
}

TEST(ByTurns, WithoutABaselineThereIsNoFraction) {
  const auto report = run(
      [&](benchmark::State& state) {
        expect_ok(by_turns(
            state, {.batch = 2, .has_baseline = false}, [] {},
            [] { ADD_FAILURE() << "nothing to compare"; }));
      },
      4);
  EXPECT_EQ(report.counters.count("of_baseline"), 0U);
}

TEST(ByTurns, TheFirstErrorEndsTheMeasurement) {
  int calls = 0;
  std::string error_text;
  run(
      [&](benchmark::State& state) {
        const Result<void> done = by_turns(
            state, {.batch = 2},
            [&]() -> Result<void> {
              ++calls;
              return make_error(Errc::io, "broken");
            },
            [] {});
        error_text = done.ok() ? "" : done.error().what;
        state.SkipWithError("broken");
      },
      8);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(error_text, "broken");
}

}  // namespace
}  // namespace penstock
