#include "miniapps/train/timeline.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/ranks/ranks_testing.hpp"
#include "results/record/record.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr SteadyTime kStart{std::chrono::seconds(100)};
constexpr int64_t kStartNs = 100'000'000'000;

StepTimes step(int64_t begin, int64_t deadline, int64_t end, int64_t next_step) {
  return {.epoch = 1,
          .payload_bytes = 1000,
          .handed_ns = begin,
          .begin_ns = begin,
          .deadline_ns = deadline,
          .end_ns = end,
          .busy_ns = deadline - begin,
          .next_may_begin_ns = next_step};
}

penstock_span reading(int64_t begin, int64_t end, uint64_t bytes) {
  return {kStartNs + begin, kStartNs + end, 3, bytes, 0, 7, PENSTOCK_READ, 0, 0};
}

using Shape =
    // Component; begin and end in ns since the start.
    std::vector<std::tuple<int, int64_t, int64_t>>;
Shape shape(const std::vector<penstock_span>& spans) {
  Shape shape;
  for (const penstock_span& span : spans)
    shape.emplace_back(span.component, span.begin_ns - kStartNs, span.end_ns - kStartNs);
  return shape;
}

TEST(StepSpans, DivideTheRunIntoWaitsAndSteps) {
  TrainingRun run;
  run.steps = {step(50, 150, 152, 150), step(150, 250, 250, 250)};  // the host woke up 2 ns late
  EXPECT_EQ(shape(step_spans(run, kStart, 7)), (Shape{{PENSTOCK_ITERATION, 0, 150},
                                                      {PENSTOCK_WAIT, 0, 50},
                                                      {PENSTOCK_TRAIN, 50, 150},
                                                      {PENSTOCK_ITERATION, 150, 250},
                                                      {PENSTOCK_TRAIN, 150, 250}}));
}

TEST(StepSpans, TimeBetweenStepsIsNoWaiting) {
  TrainingRun run;
  run.steps = {step(50, 150, 150, 150), step(400, 500, 500, 500)};
  run.steps[1].observer_ns = 240;
  run.observer_after_ns = 30;
  EXPECT_EQ(shape(step_spans(run, kStart, 7, PENSTOCK_CHECKPOINT)), (Shape{{PENSTOCK_ITERATION, 0, 150},
                                                                           {PENSTOCK_WAIT, 0, 50},
                                                                           {PENSTOCK_TRAIN, 50, 150},
                                                                           {PENSTOCK_ITERATION, 150, 500},
                                                                           {PENSTOCK_WAIT, 150, 160},
                                                                           {PENSTOCK_CHECKPOINT, 160, 400},
                                                                           {PENSTOCK_TRAIN, 400, 500},
                                                                           {PENSTOCK_CHECKPOINT, 500, 530}}));
}

TEST(StepSpans, ACollectiveComesBeforeTheWait) {
  TrainingRun run;
  run.steps = {step(0, 100, 100, 100), step(400, 500, 500, 500)};
  run.steps[1].observer_ns = 240;
  run.steps[1].collective_ns = 200;
  EXPECT_EQ(shape(step_spans(run, kStart, 7, PENSTOCK_CHECKPOINT)), (Shape{{PENSTOCK_ITERATION, 0, 100},
                                                                           {PENSTOCK_TRAIN, 0, 100},
                                                                           {PENSTOCK_ITERATION, 100, 500},
                                                                           {PENSTOCK_CHECKPOINT, 100, 300},
                                                                           {PENSTOCK_WAIT, 300, 360},
                                                                           {PENSTOCK_CHECKPOINT, 360, 400},
                                                                           {PENSTOCK_TRAIN, 400, 500}}));
}

TEST(StepSpans, OfRanksEndWithTheWaitForTheOthers) {
  TrainingRun run;
  run.steps = {step(10, 20, 21, 40)};
  const std::vector<penstock_span> spans = step_spans(run, kStart, 7);
  EXPECT_EQ(shape(spans), (Shape{{PENSTOCK_ITERATION, 0, 40},
                                 {PENSTOCK_WAIT, 0, 10},
                                 {PENSTOCK_TRAIN, 10, 20},
                                 {PENSTOCK_WAIT, 20, 40}}));
  EXPECT_EQ(spans[1].detail, PENSTOCK_WAIT_INPUT);
  EXPECT_EQ(spans[3].detail, PENSTOCK_WAIT_RANKS);
  EXPECT_EQ(spans[0].epoch, 1U);
}

TEST(TimelineFigures, CountWhatSeveralDoAtATimeOnce) {
  const auto log = SpanLog::make({10, 10}).value();
  constexpr int64_t kS = 1'000'000'000;
  (*log)[0].add(reading(0, 4 * kS, 100));
  (*log)[1].add(reading(2 * kS, 6 * kS, 200));
  (*log)[1].add(reading(8 * kS, 9 * kS, 50));
  (*log)[1].add(reading(9 * kS, 11 * kS, 999));  // ended after the measured time
  penstock_span other = reading(0, 10 * kS, 0);
  other.component = PENSTOCK_LOAD;
  (*log)[0].add(other);
  TrainingRun run;
  run.steps = {step(5 * kS, 7 * kS, 7 * kS, 7 * kS), step(7 * kS, 10 * kS, 10 * kS, 10 * kS)};
  const auto steps = step_spans(run, kStart, 7);
  const TimelineFigures figures = timeline_figures(*log, steps, kStartNs, 10 * kS);
  EXPECT_EQ(figures.spans, 5U + 5U);
  EXPECT_EQ(figures.dropped, 0U);
  EXPECT_EQ(figures.read_bytes, 350U);
  EXPECT_DOUBLE_EQ(figures.read_summed_s, 9);
  EXPECT_DOUBLE_EQ(figures.read_merged_s, 7);
  EXPECT_DOUBLE_EQ(figures.train_merged_s, 5);
  EXPECT_DOUBLE_EQ(figures.read_train_overlap_s, 2);
  EXPECT_DOUBLE_EQ(figures.read_share, 0.7);
}

// One process whose clock is 500 ns ahead of rank 0's clock.
class ClockAheadCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int rank_on_node() const override { return 0; }
  Result<void> barrier() override { return inner_->barrier(); }
  Result<void> all_reduce(std::span<double> values, Reduction how) override {
    return inner_->all_reduce(values, how);
  }
  Result<void> all_reduce(std::span<uint64_t> values, Reduction how) override {
    return inner_->all_reduce(values, how);
  }
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> bytes) override {
    return inner_->gather(bytes);
  }
  Result<void> broadcast(std::vector<std::byte>& bytes) override { return inner_->broadcast(bytes); }
  Result<ClockOffset> clock_offset() override { return ClockOffset{.offset_ns = 500, .error_ns = 10}; }
  void report_signal(int) override {}
  int heard_signal() override { return 0; }
  bool wait_for_all(std::chrono::milliseconds) override { return true; }
  void abandon(int) override {}

 private:
  std::unique_ptr<Communicator> inner_ = single_process();
};

class TimelineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (fs::temp_directory_path() / "penstock-timeline-XXXXXX").string();
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { fs::remove_all(folder_); }
  TimelineRequest request(const std::string& name) const {
    return {.path = (folder_ / name).string(),
            .memory_bytes = 1 << 26,
            .threads = 1,
            .stages = {"decode", "resize"},
            .samples = 70000,
            .epochs = 3,
            .manifest = &manifest_};
  }
  fs::path folder_;
  ScriptedBackend backend_;
  const Manifest manifest_ = scripted_files(backend_, 8);
};

TEST_F(TimelineTest, HoldsTheSpansOfAllRanksInOneFile) {
  constexpr int kReads = 40000;  // more spans than one message of Timeline::write() holds
  RankThreads::run(2, [&](Communicator& ranks) {
    auto timeline = Timeline::make(request("run.csv"), ranks).value();
    const int mine = ranks.root() ? 3 : kReads;
    for (int i = 0; i < mine; ++i) timeline->log()[0].add(reading(i, i + 1, 10));
    TrainingRun run;
    run.steps = {step(10, 20, 20, 20)};
    const TimelineFigures figures = timeline->end(run, kStart);
    EXPECT_EQ(figures.spans, uint64_t(mine) + 3);
    EXPECT_TRUE(timeline->write().ok());
  });
  std::ifstream file(folder_ / "run.csv");
  std::map<std::string, int> rows;
  for (std::string line; std::getline(file, line);) {
    const size_t rank = line.find(',');
    ++rows[line.substr(rank + 1, line.find(',', line.find(',', rank + 1) + 1) - rank - 1)];
  }
  EXPECT_EQ(rows["Rank,Action Name"], 1);
  EXPECT_EQ(rows["0,File Read"], 3);
  EXPECT_EQ(rows["1,File Read"], kReads);
  EXPECT_EQ(rows["0,Training Step"], 1);
  EXPECT_EQ(rows["1,Wait for Input"], 1);
}

TEST_F(TimelineTest, MovesTimesToRankZerosClock) {
  ClockAheadCommunicator ahead;
  const auto timeline = Timeline::make(request("run.json"), ahead).value();
  timeline->log()[0].add(reading(1000, 3000, 10));
  static_cast<void>(timeline->end({}, kStart));
  ASSERT_TRUE(timeline->write().ok());
  std::ostringstream text;
  text << std::ifstream(folder_ / "run.json").rdbuf();
  const Json trace = Json::parse(text.str());
  const Json& event = trace["traceEvents"].back();
  EXPECT_EQ(event["name"], "read");
  EXPECT_DOUBLE_EQ(event["ts"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(event["dur"].get<double>(), 2);
}

TEST_F(TimelineTest, KeepsToItsMemory) {
  const auto alone = single_process();
  TimelineRequest small = request("run.json");
  small.memory_bytes = 100 * sizeof(penstock_span);
  const auto timeline = Timeline::make(small, *alone).value();
  for (int i = 0; i < 130; ++i) timeline->log()[0].add(reading(i, i + 1, 10));
  const TimelineFigures figures = timeline->end({}, kStart);
  EXPECT_EQ(figures.spans, 100U);
  EXPECT_EQ(figures.dropped, 30U);
}

TEST_F(TimelineTest, AFileThatCannotBeMadeFailsAllRanks) {
  RankThreads::run(2, [&](Communicator& ranks) {
    const auto timeline = Timeline::make(request("nowhere/run.csv"), ranks);
    ASSERT_FALSE(timeline.ok());
    EXPECT_NE(timeline.error().message().find("nowhere/run.csv"), std::string::npos);
  });
}

TEST_F(TimelineTest, ADiskThatIsFullFailsAllRanks) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  fs::create_symlink("/dev/full", folder_ / "run.csv");
  RankThreads::run(2, [&](Communicator& ranks) {
    auto timeline = Timeline::make(request("run.csv"), ranks).value();
    for (int i = 0; i < 40000; ++i) timeline->log()[0].add(reading(i, i + 1, 10));
    static_cast<void>(timeline->end({}, kStart));
    const Result<void> written = timeline->write();
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().sys_errno, ENOSPC);
  });
}

}  // namespace
}  // namespace penstock
