#include "results/record/time_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io_backends/core/options.hpp"

namespace penstock {
namespace {

constexpr OptionSpec kPlanned[] = {kTimeLimitOption};

// A command with a warm-up, four repeats of two cells, four baselines and two ceilings.
class TimePlanTest : public testing::Test {
 protected:
  TimePlan plan(const std::string& limit) {
    std::vector<OptionWord> words;
    if (!limit.empty()) words.push_back({"time-limit", limit});
    options_ = std::make_unique<Options>(Options::parse(kPlanned, words, Options::kOnCommandLine).value());
    CommandContext context{.options = *options_,
                           .positionals = {},
                           .argv = {},
                           .command = "test",
                           .output = {.progress = true, .logs_steps = true},
                           .communicator = *single_};
    context.log = [this](std::string_view text) { log_.emplace_back(text); };
    context.warn = [this](std::string_view text) { warnings_.emplace_back(text); };
    return TimePlan(context);
  }
  void add_parts(TimePlan& plan, double seconds_each) const {
    const TimeRange each{0.5 * seconds_each, seconds_each};
    plan.add({.name = "warm-up", .asked = 1, .each = each, .least = 1});
    plan.add({.name = "repeats", .asked = 4, .each = each, .least = 2, .group = 2});
    plan.add({.name = "baseline", .asked = 4, .each = each, .group = 2});
    plan.add({.name = "ceiling", .asked = 2, .each = each, .group = 2});
  }

  std::vector<std::string> log_;
  std::vector<std::string> warnings_;

 private:
  std::unique_ptr<Options> options_;
  std::unique_ptr<Communicator> single_ = single_process();
};

TEST_F(TimePlanTest, PrintsEachPartOfALongCommandAndNothingOfAShortOne) {
  TimePlan long_plan = plan("");
  add_parts(long_plan, 100);
  ASSERT_TRUE(long_plan.settle("").ok());
  ASSERT_EQ(log_.size(), 5U);
  for (const std::string_view part : {"warm-up", "repeats", "baseline", "ceiling"})
    EXPECT_EQ(std::count_if(log_.begin(), log_.end(),
                            [&](const std::string& line) { return line.find(part) != std::string::npos; }),
              1)
        << part;
  EXPECT_NEAR(long_plan.expected().high_s, 1100, 60);
  EXPECT_NEAR(long_plan.expected().low_s, 550, 60);
  ASSERT_TRUE(long_plan.begin("warm-up", "the step"));
  ASSERT_EQ(log_.size(), 6U);
  EXPECT_TRUE(log_.back().starts_with("the step"));

  log_.clear();
  TimePlan short_plan = plan("");
  short_plan.add({.name = "repeats", .asked = 3, .each = {1e-6, 1e-6}, .least = 1});
  ASSERT_TRUE(short_plan.settle("").ok());
  ASSERT_TRUE(short_plan.begin("repeats", "the step"));
  if (process_seconds() < 10) {
    EXPECT_TRUE(log_.empty());
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(TimePlanTest, LeavesOutTheCeilingFirstThenTheBaselineThenRepeats) {
  // The limits are far apart, because the time since the start of this process counts as well.
  const double each_s = 1e5;
  const auto parts = [&](double limit_s) {
    TimePlan limited = plan(std::to_string(limit_s) + "s");
    add_parts(limited, each_s);
    EXPECT_TRUE(limited.settle("").ok());
    return std::vector<uint64_t>{limited.left_out("warm-up"), limited.left_out("repeats"),
                                 limited.left_out("baseline"), limited.left_out("ceiling")};
  };
  EXPECT_EQ(parts(11.5 * each_s), (std::vector<uint64_t>{0, 0, 0, 0}));
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(parts(9.5 * each_s), (std::vector<uint64_t>{0, 0, 0, 2}));
  EXPECT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(parts(8.5 * each_s), (std::vector<uint64_t>{0, 0, 2, 2})) << "a round of all cells";
  EXPECT_EQ(parts(5.5 * each_s), (std::vector<uint64_t>{0, 0, 4, 2}));
  EXPECT_EQ(parts(3.5 * each_s), (std::vector<uint64_t>{0, 2, 4, 2}));
}

TEST_F(TimePlanTest, RefusesALimitIntoWhichNothingFitsAndNamesOneThatDoes) {
  TimePlan limited = plan("100000s");
  add_parts(limited, 1e5);
  const Result<void> refused = limited.settle("fewer --threads");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  const std::string text = refused.error().message();
  EXPECT_NE(text.find("fewer --threads"), std::string::npos);
  const size_t at = text.find("--time-limit", text.find("give"));
  ASSERT_NE(at, std::string::npos) << text;
  const std::string advised = text.substr(at + 13, text.find(',', at) - at - 13);
  TimePlan again = plan(advised);
  add_parts(again, 1e5);
  EXPECT_TRUE(again.settle("").ok()) << advised;
}

TEST_F(TimePlanTest, StartsNothingThatWouldEndAfterTheLimit) {
  using std::chrono::milliseconds;
  const double now_s = process_seconds();
  TimePlan limited = plan(std::to_string(now_s + 1) + "s");
  add_parts(limited, 0.01);
  ASSERT_TRUE(limited.settle("").ok());
  ASSERT_TRUE(limited.begin("warm-up", ""));
  ASSERT_TRUE(limited.begin("ceiling", ""));
  std::this_thread::sleep_for(milliseconds(600));
  // A ceiling takes 0.6 s, as is known now, so a second one does not fit any more.
  EXPECT_FALSE(limited.begin("ceiling", ""));
  EXPECT_EQ(limited.left_out("ceiling"), 1U);
  EXPECT_EQ(warnings_.size(), 1U);
  EXPECT_TRUE(limited.begin("repeats", ""));
  limited.end();
  const Json json = limited.json();
  ASSERT_EQ(json["parts"].size(), 4U);
  EXPECT_EQ(json["parts"][3]["asked"], Json(2));
  EXPECT_EQ(json["parts"][3]["done"], Json(1));
  EXPECT_GE(json["parts"][3]["took_s"].get<double>(), 0.6);
}

TEST_F(TimePlanTest, APartThatIsLeftOutDoesNotEndTheRunningOne) {
  const double limit_s = process_seconds() + 2;
  TimePlan limited = plan(std::to_string(limit_s) + "s");
  add_parts(limited, 0.01);
  ASSERT_TRUE(limited.settle("").ok());
  ASSERT_TRUE(limited.begin("warm-up", ""));
  ASSERT_TRUE(limited.begin("repeats", ""));
  const double after_begin_s = process_seconds();
  EXPECT_FALSE(limited.begin("warm-up", "")) << "only one was asked for";
  while (process_seconds() < limit_s) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(limited.begin("baseline", ""));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before_end_s = process_seconds();
  limited.end();
  const Json repeats = limited.json()["parts"][1];
  EXPECT_EQ(repeats["name"], Json("repeats"));
  EXPECT_GE(repeats["took_s"].get<double>(), before_end_s - after_begin_s);
}

TEST_F(TimePlanTest, WithoutALimitEverythingStarts) {
  TimePlan unlimited = plan("");
  add_parts(unlimited, 1e6);
  ASSERT_TRUE(unlimited.settle("").ok());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(unlimited.begin("repeats", ""));
  EXPECT_FALSE(unlimited.begin("repeats", "")) << "only four were asked for";
  EXPECT_EQ(unlimited.left_out("repeats"), 0U);
  EXPECT_FALSE(unlimited.begin("unknown", ""));
}

TEST_F(TimePlanTest, OtherRanksFollowTheTimesOfTheFirst) {
  constexpr OptionSpec kNone[] = {kTimeLimitOption};
  const Options options =
      Options::parse(kNone, std::vector<OptionWord>{{"time-limit", "1000s"}}, Options::kOnCommandLine)
          .value();
  const std::unique_ptr<Communicator> single = single_process();
  const CommandContext context{.options = options,
                               .positionals = {},
                               .argv = {},
                               .command = "test",
                               .output = {},
                               .communicator = *single};
  TimePlan other(context, [](double) { return 1.0; });  // rank 0 expects one second of everything
  other.add({.name = "repeats", .asked = 5, .each = {1e6, 1e6}, .least = 1});
  ASSERT_TRUE(other.settle("").ok());
  EXPECT_EQ(other.left_out("repeats"), 0U);
}

TEST(TimeRangeTest, HasOneUnitForBothEnds) {
  EXPECT_EQ(to_text({1.25, 2}), "1.2 to 2.0 s");
  EXPECT_EQ(to_text({85.2, 110.4}), "85 to 110 s");
  EXPECT_EQ(to_text({720, 900}), "12 to 15 min");
  EXPECT_EQ(to_text({3600, 36000}), "1.0 to 10 h");
  EXPECT_EQ(to_text({5, 5}), "5.0 s");
}

}  // namespace
}  // namespace penstock
