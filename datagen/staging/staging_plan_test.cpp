#include "datagen/staging/staging_plan.hpp"

#include <gtest/gtest.h>

#include <string>

#include "datagen/staging/staged_state.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"

namespace penstock {
namespace {

StagingPlan example_plan() {
  StagingPlan plan;
  plan.id = "0123456789abcdef";
  plan.made_at = "2026-11-24T02:00:00Z";
  plan.policy = "density";
  plan.capacity_bytes = 1 << 20;
  plan.threads = 4;
  plan.should_stage = true;
  plan.reason = "an epoch takes 2 s instead of 3 s";
  plan.slow = {"slow", "slow=posix:/data,limit=100MB/s", "/data"};
  plan.fast = {"fast", "fast=posix:/nvme", "/nvme"};
  plan.predicted = {3, 2, 0.5, 0.4, 0.6, 1.25, 1.25};
  plan.files = {{"a/1", 10, 1'700'000'000'123'456'789}, {"a/2", 0, -1}, {"b", 30, 0}};
  return plan;
}

// Replaces `from` by `to` in the text, and replaces the checksum at its end (the seal) by the right one.
std::string resealed(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return seal_line(text.substr(0, text.find(",\"seal\":")) + "}", 1, 1);
}

TEST(StagingPlan, ComesBackAsItWasWritten) {
  const StagingPlan plan = example_plan();
  const auto read = parse_staging_plan(staging_plan_text(plan), "plan");
  ASSERT_OK(read);
  EXPECT_EQ(staging_plan_text(*read), staging_plan_text(plan));
  EXPECT_EQ(read->files, plan.files);
  EXPECT_EQ(read->bytes(), 40U);
  EXPECT_EQ(read->slow.spec, plan.slow.spec);
  EXPECT_DOUBLE_EQ(read->predicted.break_even_epochs, 1.25);
}

TEST(StagingPlan, IsOneLineOfJson) {
  const std::string text = staging_plan_text(example_plan());
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_TRUE(Json::try_parse(text).has_value());
}

TEST(StagingPlan, EveryTruncationAndEveryFlippedBitIsDetected) {
  const std::string text = staging_plan_text(example_plan());
  for (size_t length = 0; length + 1 < text.size(); ++length)
    EXPECT_FALSE(parse_staging_plan(text.substr(0, length), "plan").ok()) << length;
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    std::string flipped = text;
    flipped[at] = char(flipped[at] ^ 1);
    EXPECT_FALSE(parse_staging_plan(flipped, "plan").ok()) << at;
  }
}

TEST(StagingPlan, InvalidPlansAreRefused) {
  const std::string text = staging_plan_text(example_plan());
  ASSERT_OK(parse_staging_plan(resealed(text, "\"a/1\"", "\"a/0\""), "plan"));
  for (const auto& [from, to] : {std::pair("\"a/1\"", "\"../x\""),
                                 {"\"a/1\"", "\"/etc/passwd\""},
                                 {"\"a/1\"", "\"a/2\""},  // twice the same name
                                 {"\"a/1\"", "\"c\""},    // not sorted
                                 {"\"bytes\":10", "\"bytes\":-10"},
                                 {"\"bytes\":10", "\"bytes\":1.5"},
                                 {"\"mtime_ns\":0", "\"mtime_ns\":\"0\""},
                                 {"\"threads\":4", "\"threads\":0"},
                                 {"\"root\":\"/data\"", "\"root\":\"data\""},
                                 {"\"verdict\":\"stage\"", "\"verdict\":\"don't stage\""},
                                 {"\"verdict\":\"stage\"", "\"verdict\":\"perhaps\""},
                                 {"\"id\":\"0", "\"id\":\"x"},
                                 {"\"gain\":0.5", "\"gain\":null"}})
    EXPECT_ERRC(Errc::corrupt, parse_staging_plan(resealed(text, from, to), "plan.json"), "plan.json");
  EXPECT_ERRC(Errc::unsupported, parse_staging_plan(resealed(text, "\"format\":1", "\"format\":2"), "plan"),
              "format");
  EXPECT_ERRC(Errc::corrupt, parse_staging_plan(resealed(text, "staging plan", "shopping list"), "plan"));
  EXPECT_ERRC(Errc::corrupt, parse_staging_plan(std::string(100'000, '['), "plan"));
}

TEST(StagingPlan, AMissingFileIsReported) {
  EXPECT_ERRC(Errc::not_found, load_staging_plan("/nowhere/plan.json"), "/nowhere/plan.json");
}

TEST(StagedState, ComesBackAsItWasWritten) {
  StagedState state;
  state.plan_id = "0123456789abcdef";
  state.earlier_files = {"a/2", "b"};
  state.new_folders = {"a"};
  state.link_farms = {"/home/farm"};
  state.copied["a/1"] = {10, 0xdeadbeef};
  state.may_have_unlisted_copies = true;
  const auto read = parse_staged_state(staged_state_text(state), "state");
  ASSERT_OK(read);
  EXPECT_EQ(*read, state);
  EXPECT_TRUE(read->is_earlier_file("b"));
  EXPECT_FALSE(read->is_earlier_file("a/1"));
}

TEST(StagedState, IsOnTheTierAndIsReplacedAtomically) {
  Tier tier = open_tier("mem:staged-state-test", kNoNamedTiers).value();
  EXPECT_ERRC(Errc::not_found, load_staged_state(*tier.backend, "0123456789abcdef"));
  StagedState state{.plan_id = "0123456789abcdef"};
  ASSERT_OK(save_staged_state(*tier.backend, state));
  state.earlier_files = {"x"};
  ASSERT_OK(save_staged_state(*tier.backend, state));
  const auto read = load_staged_state(*tier.backend, state.plan_id);
  ASSERT_OK(read);
  EXPECT_EQ(*read, state);
}

TEST(StagedState, InvalidStatesAreRefused) {
  StagedState state{.plan_id = "0123456789abcdef", .earlier_files = {"a", "b"}, .link_farms = {"/farm"}};
  const std::string text = staged_state_text(state);
  for (const auto& [from, to] :
       {std::pair("\"a\",\"b\"", "\"b\",\"a\""),
        {"\"a\"", "\"../a\""},
        {"\"/farm\"", "\"farm\""},
        {"\"copied\":[]", "\"copied\":[{\"name\":\"x\",\"bytes\":1,\"crc32c\":4294967296}]"}})
    EXPECT_ERRC(Errc::corrupt, parse_staged_state(resealed(text, from, to), "state"));
}

}  // namespace
}  // namespace penstock
