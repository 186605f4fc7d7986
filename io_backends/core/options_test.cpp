#include "io_backends/core/options.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

constexpr OptionSpec kTable[] = {
    {.name = "threads",
     .type = OptionType::list,
     .value = "LIST",
     .fallback = "1,2",
     .help = "workers",
     .at_least = 1},
    {.name = "limit", .type = OptionType::rate, .value = "RATE", .help = "bandwidth"},
    {.name = "depth",
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1",
     .help = "in flight",
     .at_least = 1},
    {.name = "cache",
     .type = OptionType::choice,
     .value = "cold|warm|asis",
     .fallback = "asis",
     .help = "state"},
    {.name = "min-time", .type = OptionType::duration, .value = "TIME", .fallback = "2s", .help = "at least"},
    {.name = "resume", .type = OptionType::flag, .help = "go on"},
    {.name = "tier", .value = "TIER", .help = "place", .repeated = true},
    {.name = "sigma",
     .type = OptionType::real,
     .value = "X",
     .fallback = "0.5",
     .help = "spread",
     .at_least = 0},
};

Result<Options> parse(std::vector<OptionWord> words) {
  return Options::parse(kTable, words, "option");
}

TEST(Options, DefaultsAndGivenValues) {
  const Result<Options> defaults = parse({});
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->list("threads"), (std::vector<uint64_t>{1, 2}));
  EXPECT_FALSE(defaults->given("threads"));
  EXPECT_FALSE(defaults->has("limit"));
  EXPECT_FALSE(defaults->flag("resume"));
  const Result<Options> given =
      parse({{"threads", "4"}, {"limit", "1MB/s"}, {"resume", "1"}, {"tier", "a"}, {"tier", "b"}});
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->list("threads"), (std::vector<uint64_t>{4}));
  EXPECT_TRUE(given->given("threads"));
  EXPECT_EQ(given->size("limit"), 1'000'000U);
  EXPECT_TRUE(given->flag("resume"));
  EXPECT_EQ(given->texts("tier"), (std::vector<std::string>{"a", "b"}));
}

TEST(Options, AnUnknownKeyNamesTheNearestAndAllValidOnes) {
  const Result<Options> wrong = parse({{"thread", "4"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Errc::invalid_argument);
  EXPECT_EQ(wrong.error().what,
            "unknown option 'thread'; did you mean 'threads'? valid: cache, depth, limit, min-time, resume, "
            "sigma, threads, tier");
}

TEST(Options, BadValuesNameTheKey) {
  const std::vector<OptionWord> bad{{"threads", "0"},  {"threads", "1,0"},
                                    {"depth", "0"},    {"depth", "x"},
                                    {"cache", "luke"}, {"min-time", "5"},
                                    {"limit", "-1"},   {"resume", "maybe"},
                                    {"sigma", "-1"},   {"depth", "99999999999999999999"}};
  for (const OptionWord& word : bad) {
    const Result<Options> wrong = parse({word});
    ASSERT_FALSE(wrong.ok()) << word.key << "=" << word.value;
    EXPECT_NE(wrong.error().what.find("'" + word.key + "'"), std::string::npos) << wrong.error().what;
  }
  EXPECT_FALSE(parse({{"depth", "1"}, {"depth", "2"}}).ok());
}

TEST(Options, ResolvedHasTheParsedValues) {
  const Result<Options> given = parse({{"threads", "1..8*2"}, {"min-time", "10ms"}});
  ASSERT_TRUE(given.ok());
  std::string all;
  for (const OptionWord& option : given->resolved()) all += option.key + "=" + option.value + " ";
  EXPECT_EQ(all, "threads=1,2,4,8 depth=1 cache=asis min-time=10000000ns sigma=0.5 ");
}

}  // namespace
}  // namespace penstock
