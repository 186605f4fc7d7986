#include "io_backends/tiers/named_tiers.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

const std::vector<OptionWord> kNamed{
    {"fast", "mem:p"},
    {"slow", "old=posix:/data/p,limit=150MB/s,fail=eio@0.01%2Cwrite:enospc@#3"},
    {"raw", "direct:/data/p"}};

std::string text(std::string_view written) {
  const auto spec = parse_tier(written, kNamed);
  return spec.ok() ? spec->text : spec.error().message();
}

TEST(NamedTiers, AreReplacedByTheirText) {
  const auto spec = parse_tier("fast", kNamed);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->name, "fast");
  EXPECT_EQ(spec->backend, "mem");
  EXPECT_EQ(spec->path, "p");
  EXPECT_EQ(spec->text, "fast=mem:p");
  const auto tier = open_tier("fast", kNamed);
  ASSERT_TRUE(tier.ok()) << tier.error().message();
  EXPECT_EQ(tier->name, "fast");
  EXPECT_EQ(tier->spec, "fast=mem:p") << "what goes into records";
}

TEST(NamedTiers, AddedOptionsReplaceThoseOfTheName) {
  EXPECT_EQ(text("other=fast"), "other=mem:p");
  EXPECT_EQ(text("fast,latency=1ms"), "fast=mem:p,latency=1ms");
  EXPECT_EQ(text("slow"), "slow=posix:/data/p,limit=150MB/s,fail=eio@0.01%2Cwrite:enospc@#3");
  EXPECT_EQ(text("slow,limit=1GB/s"), "slow=posix:/data/p,fail=eio@0.01%2Cwrite:enospc@#3,limit=1GB/s");
  EXPECT_EQ(text("raw"), "raw=direct:/data/p");
  EXPECT_EQ(parse_tier("raw", kNamed).value().options.at(0).key, "direct");
}

TEST(NamedTiers, TheReplacedTextParsesToTheSameTier) {
  for (const char* written : {"fast", "slow,latency=1ms", "x=raw"}) {
    const TierSpec once = parse_tier(written, kNamed).value();
    const TierSpec again = parse_tier(once.text, kNamed).value();
    EXPECT_EQ(again.name, once.name);
    EXPECT_EQ(again.path, once.path);
    ASSERT_EQ(again.options.size(), once.options.size());
    for (size_t i = 0; i < once.options.size(); ++i) EXPECT_EQ(again.options[i].value, once.options[i].value);
  }
}

TEST(NamedTiers, APathIsNoNamedTier) {
  for (const char* written : {"./fast", "/fast", "posix:fast", "fast/x", "fas", "other"}) {
    const auto spec = parse_tier(written, kNamed);
    ASSERT_TRUE(spec.ok()) << written;
    EXPECT_EQ(spec->text, written);
  }
}

TEST(NamedTier, NeedsANameAndAPlaceOfItsOwn) {
  EXPECT_TRUE(check_named_tier("a.b-c_1", "posix:/x").ok());
  EXPECT_TRUE(check_named_tier("a", "./x").ok());
  EXPECT_TRUE(check_named_tier("a", "b=/x,limit=1MB/s").ok());
  for (const auto& [name, spec] : {std::pair("a b", "/x"), std::pair("", "/x"), std::pair("a", "x"),
                                   std::pair("a", ""), std::pair("a", "x=y"), std::pair("a", "posx:/x")})
    EXPECT_FALSE(check_named_tier(name, spec).ok()) << name << " " << spec;
}

}  // namespace
}  // namespace penstock
