#include "datagen/copy_engine.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "datagen/extra_objects.hpp"
#include "datagen/object_check.hpp"
#include "io_backends/base/crc32c.hpp"
#include "io_backends/base/interrupt.hpp"

namespace penstock {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void put(Backend& backend, std::string_view name, std::string_view content) {
  const auto writer = backend.create(name, content.size());
  ASSERT_TRUE(writer.ok()) << writer.error().message();
  ASSERT_TRUE((*writer)->append(bytes_of(content)).ok());
  ASSERT_TRUE((*writer)->publish(Durability::visible).ok());
}

std::string get(Backend& backend, std::string_view name) {
  std::string text(1 << 20, '\0');
  const auto read = backend.read_object(name, 0, std::as_writable_bytes(std::span(text)));
  if (!read.ok()) return "(" + read.error().message() + ")";
  text.resize(*read);
  return text;
}

Tier tier(const std::string& text) {
  auto opened = open_tier(text);
  EXPECT_TRUE(opened.ok()) << opened.error().message();
  return *std::move(opened);
}

// Tiers of this test alone: memory lives as long as the process.
class CopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static std::atomic<int> number{0};
    const std::string own = std::to_string(number++);
    source_ = "mem:copy-source-" + own;
    target_ = "mem:copy-target-" + own;
  }
  void TearDown() override { simulate_interrupt(0); }

  // Ten objects of 1 to 10 kB.
  Corpus corpus(bool checksums = true) {
    Tier place = tier(source_);
    ManifestBuilder builder({});
    builder.facts().checksums = checksums;
    for (std::uint32_t i = 0; i < 10; ++i) {
      const std::string name = "c" + std::to_string(i / 5) + "/" + std::to_string(i) + ".jpg";
      put(*place.backend, name, content(i));
      builder.add_sample({.length = content(i).size(),
                          .object = builder.add_object(name, content(i).size()),
                          .crc32c = crc32c(bytes_of(content(i)))});
    }
    EXPECT_TRUE(builder.publish(*place.backend).ok());
    auto opened = open_corpus(source_, {});
    EXPECT_TRUE(opened.ok());
    return *std::move(opened);
  }
  static std::string content(std::uint32_t i) {
    return std::string((std::size_t{i} + 1) * 1000, static_cast<char>('a' + i));
  }

  static void expect_complete(Corpus& from, Tier& to) {
    std::string scratch;
    for (std::uint32_t i = 0; i < 10; ++i)
      EXPECT_EQ(get(*to.backend, from.manifest.object_name(i, scratch)), content(i));
    const auto copy = Manifest::load(*to.backend, kManifestName);
    ASSERT_TRUE(copy.ok()) << copy.error().message();
    EXPECT_EQ(copy->checksum(), from.manifest.checksum());
    EXPECT_FALSE(to.backend->names().stat(kCopyingName).ok());
  }

  std::string source_;
  std::string target_;
};

TEST_F(CopyTest, CopiesObjectsAndThenTheManifest) {
  for (const unsigned threads : {1U, 4U}) {
    Corpus from = corpus();
    Tier to = tier(target_ + std::to_string(threads));
    const auto outcome = copy_corpus(from, to, {.threads = threads});
    ASSERT_TRUE(outcome.ok()) << outcome.error().message();
    EXPECT_TRUE(outcome->complete);
    EXPECT_EQ(outcome->copied, 10U);
    EXPECT_EQ(outcome->bytes_copied, 55000U);
    expect_complete(from, to);
  }
}

TEST_F(CopyTest, LeavesWhatIsRightAndMendsWhatIsNot) {
  for (const bool checksums : {true, false}) {
    Corpus from = corpus(checksums);
    Tier to = tier(target_ + (checksums ? "a" : "b"));
    ASSERT_TRUE(copy_corpus(from, to, {}).ok());
    std::string flipped = content(3);
    flipped[17] = '!';
    put(*to.backend, "c0/3.jpg", flipped);
    put(*to.backend, "c0/4.jpg", "short");
    ASSERT_TRUE(to.backend->names().remove("c1/9.jpg").ok());
    const auto again = copy_corpus(from, to, {.threads = 2});
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(again->copied, 3U);
    EXPECT_EQ(again->already_there, 7U);
    expect_complete(from, to);
  }
}

TEST_F(CopyTest, GoesOnAfterAFailureAndIsNoCorpusUntilThen) {
  Corpus from = corpus();
  {
    Tier full = tier(target_ + ",fail=write:enospc@#6");
    const auto failed = copy_corpus(from, full, {});
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, Errc::no_space);
    EXPECT_NE(failed.error().what.find("4 of 10 objects"), std::string::npos) << failed.error().what;
  }
  Tier to = tier(target_);
  EXPECT_EQ(Manifest::load(*to.backend, kManifestName).error().code, Errc::not_found);
  EXPECT_TRUE(to.backend->names().stat(kCopyingName).ok());
  const auto rest = copy_corpus(from, to, {});
  ASSERT_TRUE(rest.ok()) << rest.error().message();
  EXPECT_EQ(rest->already_there, 4U);
  EXPECT_EQ(rest->copied, 6U);
  expect_complete(from, to);
}

TEST_F(CopyTest, NothingMadeNothingLeft) {
  Corpus from = corpus();
  Tier full = tier(target_ + ",fail=write:enospc@#2");
  ASSERT_FALSE(copy_corpus(from, full, {}).ok());
  Tier to = tier(target_);
  std::vector<std::string> left;
  const auto listed = to.backend->names().list("", [&](const Entry& entry) {
    left.push_back(entry.name);
    return true;
  });
  EXPECT_EQ(left, std::vector<std::string>{});
}

TEST_F(CopyTest, AFailureTouchesNothingOfOthers) {
  Corpus from = corpus();
  Tier to = tier(target_);
  put(*to.backend, "c0", "a file where the copy wants a folder");
  ASSERT_TRUE(to.backend->names().make_folders("empty").ok());
  ASSERT_FALSE(copy_corpus(from, to, {.replace = true}).ok());
  EXPECT_EQ(get(*to.backend, "c0"), "a file where the copy wants a folder");
  EXPECT_TRUE(to.backend->names().stat("empty").ok());
  EXPECT_FALSE(to.backend->names().stat(kCopyingName).ok());
}

TEST_F(CopyTest, SaysBeforehandThatItDoesNotFit) {
  Corpus from = corpus();
  Tier small = tier(target_ + ",capacity=50k");
  const auto refused = copy_corpus(from, small, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::no_space);
  Tier to = tier(target_);
  EXPECT_FALSE(to.backend->names().stat("c0").ok());
}

TEST_F(CopyTest, RefusesFoldersThatHoldOtherThings) {
  Corpus from = corpus();
  Tier to = tier(target_);
  put(*to.backend, "c0/2.jpg", "somebody's only copy");
  const auto refused = copy_corpus(from, to, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::already_exists);
  EXPECT_NE(refused.error().what.find("there is 'c0'"), std::string::npos) << refused.error().what;
  EXPECT_EQ(get(*to.backend, "c0/2.jpg"), "somebody's only copy");
  Tier begun = tier(target_ + "-generated");
  put(*begun.backend, ".penstock/generate.json", "{}");
  EXPECT_EQ(copy_corpus(from, begun, {}).error().code, Errc::already_exists);
  Tier fresh = tier(target_ + "-fresh");
  ASSERT_TRUE(fresh.backend->names().make_folders("lost+found").ok());
  put(*fresh.backend, ".penstock/.penstock-tmp-1", "of a copy that was killed at once");
  EXPECT_TRUE(copy_corpus(from, fresh, {}).ok());
}

TEST_F(CopyTest, ReplacesOnlyWhenTold) {
  Corpus from = corpus();
  Tier to = tier(target_);
  put(*to.backend, "c0/2.jpg", "somebody's only copy");
  const auto replaced = copy_corpus(from, to, {.replace = true});
  ASSERT_TRUE(replaced.ok()) << replaced.error().message();
  expect_complete(from, to);
}

TEST_F(CopyTest, RefusesItselfAndOtherCorpora) {
  Corpus from = corpus();
  Tier itself = tier(source_);
  EXPECT_EQ(copy_corpus(from, itself, {}).error().code, Errc::invalid_argument);
  Tier other = tier(target_);
  ManifestBuilder builder({});
  builder.add_sample({.length = 1, .object = builder.add_object("x.jpg", 1)});
  ASSERT_TRUE(builder.publish(*other.backend).ok());
  EXPECT_EQ(copy_corpus(from, other, {}).error().code, Errc::already_exists);
  Tier begun = tier(target_ + "-begun");
  put(*begun.backend, kCopyingName, "0123456789abcdef");
  EXPECT_EQ(copy_corpus(from, begun, {}).error().code, Errc::already_exists);
  Tier unreadable = tier(target_ + "-unreadable");
  put(*unreadable.backend, kManifestName, "not a manifest");
  EXPECT_EQ(copy_corpus(from, unreadable, {}).error().code, Errc::already_exists);
}

TEST_F(CopyTest, TellsADamagedSource) {
  Corpus from = corpus();
  std::string flipped = content(6);
  flipped[0] = '!';
  put(*from.tier.backend, "c1/6.jpg", flipped);
  Tier to = tier(target_);
  const auto failed = copy_corpus(from, to, {});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::corrupt);
  EXPECT_NE(failed.error().what.find("c1/6.jpg"), std::string::npos);
  EXPECT_FALSE(to.backend->names().stat("c1/6.jpg").ok());
  put(*from.tier.backend, "c1/6.jpg", "grown or shrunk");
  EXPECT_EQ(copy_corpus(from, to, {}).error().code, Errc::corrupt);
  ASSERT_TRUE(from.tier.backend->names().remove("c1/6.jpg").ok());
  EXPECT_EQ(copy_corpus(from, to, {}).error().code, Errc::not_found);
  EXPECT_EQ(Manifest::load(*to.backend, kManifestName).error().code, Errc::not_found);
}

TEST_F(CopyTest, NoticesThatTheTargetGivesOtherBytes) {
  Corpus from = corpus();
  Tier lying = tier(target_ + ",fail=flip@1");
  const auto failed = copy_corpus(from, lying, {});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::corrupt);
  EXPECT_NE(failed.error().what.find("came back"), std::string::npos) << failed.error().what;
  Tier to = tier(target_);
  EXPECT_FALSE(to.backend->names().stat("c0/0.jpg").ok());
}

TEST_F(CopyTest, AnInterruptLeavesWholeObjectsAndNoManifest) {
  Corpus from = corpus();
  Tier to = tier(target_);
  simulate_interrupt(2);
  const auto stopped = copy_corpus(from, to, {.threads = 2});
  ASSERT_TRUE(stopped.ok()) << stopped.error().message();
  EXPECT_FALSE(stopped->complete);
  simulate_interrupt(0);
  EXPECT_EQ(Manifest::load(*to.backend, kManifestName).error().code, Errc::not_found);
  ASSERT_TRUE(copy_corpus(from, to, {}).ok());
  expect_complete(from, to);
}

TEST(ObjectCheck, FindsTheSamplesOfObjectsThatHoldSeveral) {
  Tier place = tier("mem:object-check");
  put(*place.backend, "a", "aaabbb");
  put(*place.backend, "b", "cccdd");
  const auto sample = [](std::uint32_t object, std::uint64_t offset, std::string_view text) {
    return SampleEntry{
        .offset = offset, .length = text.size(), .object = object, .crc32c = crc32c(bytes_of(text))};
  };
  const std::vector<std::vector<SampleEntry>> orders{
      {sample(0, 0, "aaa"), sample(0, 3, "bbb"), sample(1, 0, "ccc"), sample(1, 3, "dd")},
      {sample(1, 3, "dd"), sample(0, 3, "bbb"), sample(1, 0, "ccc"), sample(0, 0, "aaa")}};
  for (const auto& order : orders) {
    ManifestBuilder builder({});
    builder.facts().checksums = true;
    builder.add_object("a", 6);
    builder.add_object("b", 5);
    for (const SampleEntry& entry : order) builder.add_sample(entry);
    const auto manifest = Manifest::from_bytes(*builder.finish());
    ASSERT_TRUE(manifest.ok());
    const ObjectIndex index(*manifest);
    std::vector<std::uint64_t> seen;
    for (const std::uint64_t object : {0U, 1U})
      ASSERT_TRUE(index
                      .for_each_sample(object,
                                       [&](std::uint64_t i) -> Result<void> {
                                         EXPECT_EQ(manifest->sample(i).object, object);
                                         seen.push_back(i);
                                         return success();
                                       })
                      .ok());
    EXPECT_EQ(seen.size(), 4U);
    Buffer buffer(2);  // smaller than a sample
    const auto right = check_object(*place.backend, *manifest, index, 0, "a", buffer);
    ASSERT_TRUE(right.ok());
    EXPECT_EQ(right->state, ObjectState::right) << right->detail;
    put(*place.backend, "b", "cccdX");
    const auto wrong = check_object(*place.backend, *manifest, index, 1, "b", buffer);
    ASSERT_TRUE(wrong.ok());
    EXPECT_EQ(wrong->state, ObjectState::wrong_bytes);
    put(*place.backend, "b", "cccdd");
  }
}

TEST(ObjectCheck, TellsStatesApart) {
  Tier place = tier("mem:object-states");
  ManifestBuilder builder({});
  builder.facts().checksums = true;
  builder.add_sample({.length = 3, .object = builder.add_object("x", 3), .crc32c = crc32c(bytes_of("abc"))});
  const auto manifest = Manifest::from_bytes(*builder.finish());
  ASSERT_TRUE(manifest.ok());
  const ObjectIndex index(*manifest);
  Buffer buffer;
  const auto state = [&](Backend& backend) {
    const auto verdict = check_object(backend, *manifest, index, 0, "x", buffer);
    EXPECT_TRUE(verdict.ok());
    return verdict.ok() ? verdict->state : ObjectState::right;
  };
  EXPECT_EQ(state(*place.backend), ObjectState::vanished);
  put(*place.backend, "x", "ab");
  EXPECT_EQ(state(*place.backend), ObjectState::shrunk);
  put(*place.backend, "x", "abcd");
  EXPECT_EQ(state(*place.backend), ObjectState::grown);
  put(*place.backend, "x", "abd");
  EXPECT_EQ(state(*place.backend), ObjectState::wrong_bytes);
  put(*place.backend, "x", "abc");
  EXPECT_EQ(state(*place.backend), ObjectState::right);
  const Tier failing = tier("mem:object-states,fail=read:eio@1");
  EXPECT_EQ(state(*failing.backend), ObjectState::unreadable);
  const Tier forbidden = tier("mem:object-states,fail=open:eacces@1");
  EXPECT_EQ(state(*forbidden.backend), ObjectState::unreadable);

  put(*place.backend, "extra/y.jpg", "");
  put(*place.backend, ".hidden", "");
  const auto extra = find_extra_objects(place.backend->names(), *manifest, 2);
  ASSERT_TRUE(extra.ok());
  EXPECT_EQ(extra->count, 1U);
  EXPECT_EQ(extra->first, (std::vector<std::string>{"extra/y.jpg"}));
}

}  // namespace
}  // namespace penstock
