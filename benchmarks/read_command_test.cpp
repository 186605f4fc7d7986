#include "benchmarks/read_command.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

Result<ReadOptions> parsed(const std::vector<OptionWord>& words) {
  PENSTOCK_ASSIGN(const Options line, Options::parse(command_read.options, words, Options::kOnCommandLine));
  const std::unique_ptr<Communicator> single = single_process();
  return parse_read_options({.options = line,
                             .positionals = {},
                             .argv = {},
                             .command = "read",
                             .output = {},
                             .seed = 7,
                             .communicator = *single});
}

TEST(OpenLoop, IsANumberASecond) {
  for (const char* text : {"500", "500/s", "0.5k", "0.5k/s", "0.0005M/s"}) {
    const auto rate = parse_open_loop(text);
    ASSERT_OK(rate) << text;
    EXPECT_DOUBLE_EQ(rate->per_second, 500) << text;
    EXPECT_FALSE(rate->poisson);
  }
  const auto poisson = parse_open_loop("2.5k/s,poisson");
  ASSERT_OK(poisson);
  EXPECT_DOUBLE_EQ(poisson->per_second, 2500);
  EXPECT_TRUE(poisson->poisson);
  for (const char* text :
       {"", "/s", "fast", "0", "-1", "nan", "inf", "1e10", "5 /s", "500/m", "500,uniform", "500/s/s", "1e-9"})
    EXPECT_ERRC(Errc::invalid_argument, parse_open_loop(text)) << text;
}

// How a repeat ends (passes, time or stonewall) and whether samples arrive at a rate are independent options.
TEST(ReadOptions, EveryEndGoesWithEveryArrival) {
  struct Row {
    std::vector<OptionWord> words;
    size_t end;  // index of the variant's alternative in ReadOptions::end
    std::chrono::nanoseconds limit;
    std::chrono::nanoseconds min_time;
    bool open_loop = false;
  };
  const std::vector<Row> rows{
      {{}, 0, 0s, 2s},
      {{{"min-time", "3s"}}, 0, 0s, 3s},
      {{{"duration", "0s"}}, 0, 0s, 0s},
      {{{"duration", "1s"}}, 1, 1s, 900ms},
      {{{"duration", "10s"}}, 1, 10s, 2s},
      {{{"duration", "1s"}, {"min-time", "3s"}}, 1, 1s, 3s},
      {{{"stonewall", "1s"}}, 2, 1s, 900ms},
      {{{"rate", "500"}}, 1, 2s, 1800ms, true},
      {{{"rate", "500"}, {"min-time", "1s"}}, 1, 1s, 900ms, true},
      {{{"rate", "500/s,poisson"}, {"duration", "1s"}}, 1, 1s, 900ms, true},
      {{{"rate", "500"}, {"stonewall", "1s"}}, 2, 1s, 900ms, true},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto options = parsed(rows[i].words);
    ASSERT_OK(options) << "row " << i;
    EXPECT_EQ(options->end.index(), rows[i].end) << "row " << i;
    EXPECT_EQ(time_limit(options->end), rows[i].limit) << "row " << i;
    EXPECT_EQ(shortest_time(options->end), rows[i].end == 0 ? rows[i].min_time : 0s) << "row " << i;
    EXPECT_EQ(options->min_time, rows[i].min_time) << "row " << i;
    EXPECT_EQ(options->open_loop.has_value(), rows[i].open_loop) << "row " << i;
    EXPECT_EQ(options->measure_baseline, !rows[i].open_loop) << "row " << i;
    EXPECT_EQ(options->measure_ceiling, !rows[i].open_loop) << "row " << i;
  }
}

TEST(ReadOptions, OptionsThatContradictEachOtherAreRefused) {
  const std::vector<std::vector<OptionWord>> lines{
      {{"duration", "1s"}, {"stonewall", "1s"}},
      {{"rate", "500"}, {"depth", "2"}},
      {{"rate", "500"}, {"collective", "1"}},
      {{"collective", "1"}, {"threads", "2"}},
      {{"collective", "1"}, {"depth", "2"}},
      {{"collective", "1"}, {"duration", "1s"}},
      {{"collective", "1"}, {"stonewall", "1s"}},
      {{"collective", "1"}, {"order", "physical"}},
      {{"cold-by", "drop"}, {"cache", "warm"}},
      {{"window", "8"}},
      {{"rank-shift", "1"}},
      {{"threads", "1025"}},
      {{"threads", "1024"}, {"depth", "17"}},
  };
  for (const std::vector<OptionWord>& line : lines)
    EXPECT_ERRC(Errc::invalid_argument, parsed(line)) << line.front().key << " " << line.back().key;
  const auto collective = parsed({{"collective", "1"}});
  ASSERT_OK(collective);
  EXPECT_EQ(collective->threads, (std::vector<unsigned>{1}));
}

}  // namespace
}  // namespace penstock
