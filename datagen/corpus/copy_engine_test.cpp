#include "datagen/corpus/copy_engine.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "datagen/manifest/manifest_fixture.hpp"
#include "datagen/objects/objects_testing.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

std::string get(Backend& backend, std::string_view name) {
  std::string text(1 << 20, '\0');
  const auto read = backend.read_object(name, 0, std::as_writable_bytes(std::span(text)));
  if (!read.ok()) return "(" + read.error().message() + ")";
  text.resize(*read);
  return text;
}

// Each test uses tier names of its own, because tiers in memory live as long as the process.
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
    for (uint32_t i = 0; i < 10; ++i) {
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
  static std::string content(uint32_t i) { return std::string((size_t{i} + 1) * 1000, char('a' + i)); }

  static void expect_complete(Corpus& from, Tier& to) {
    std::string scratch;
    for (uint32_t i = 0; i < 10; ++i)
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
    EXPECT_EQ(outcome->objects_copied, 10U);
    EXPECT_EQ(outcome->bytes_copied, 55000U);
    expect_complete(from, to);
  }
}

TEST_F(CopyTest, KeepsCorrectObjectsAndReplacesWrongOnes) {
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
    EXPECT_EQ(again->objects_copied, 3U);
    EXPECT_EQ(again->already_there, 7U);
    expect_complete(from, to);
  }
}

TEST_F(CopyTest, ContinuesAfterAFailureAndIsNoCorpusUntilThen) {
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
  EXPECT_EQ(rest->objects_copied, 6U);
  expect_complete(from, to);
}

TEST_F(CopyTest, AFailureOfTheFirstObjectLeavesNothing) {
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
  ASSERT_FALSE(copy_corpus(from, to, {.may_replace = true}).ok());
  EXPECT_EQ(get(*to.backend, "c0"), "a file where the copy wants a folder");
  EXPECT_TRUE(to.backend->names().stat("empty").ok());
  EXPECT_FALSE(to.backend->names().stat(kCopyingName).ok());
}

TEST_F(CopyTest, FailsBeforeItWritesIfTheSpaceIsTooSmall) {
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
  EXPECT_NE(refused.error().what.find("it contains 'c0'"), std::string::npos) << refused.error().what;
  EXPECT_EQ(get(*to.backend, "c0/2.jpg"), "somebody's only copy");
  Tier started = tier(target_ + "-generated");
  put(*started.backend, ".penstock/generate.json", "{}");
  EXPECT_EQ(copy_corpus(from, started, {}).error().code, Errc::already_exists);
  Tier fresh = tier(target_ + "-fresh");
  ASSERT_TRUE(fresh.backend->names().make_folders("lost+found").ok());
  put(*fresh.backend, ".penstock/.penstock-tmp-1", "of a copy that was killed at once");
  EXPECT_TRUE(copy_corpus(from, fresh, {}).ok());
}

TEST_F(CopyTest, ReplacesObjectsIfItMay) {
  Corpus from = corpus();
  Tier to = tier(target_);
  put(*to.backend, "c0/2.jpg", "somebody's only copy");
  const auto replaced = copy_corpus(from, to, {.may_replace = true});
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
  Tier started = tier(target_ + "-started");
  put(*started.backend, kCopyingName, "0123456789abcdef");
  EXPECT_EQ(copy_corpus(from, started, {}).error().code, Errc::already_exists);
  Tier unreadable = tier(target_ + "-unreadable");
  put(*unreadable.backend, kManifestName, "not a manifest");
  EXPECT_EQ(copy_corpus(from, unreadable, {}).error().code, Errc::already_exists);
}

TEST_F(CopyTest, AMarkOfZerosIsIgnored) {
  Corpus from = corpus();
  for (const size_t zeros : {0U, 16U}) {
    const std::string path = target_ + std::to_string(zeros);
    Tier torn = tier(path);
    put(*torn.backend, kCopyingName, std::string(zeros, '\0'));
    Tier with_objects = tier(path + "-with-objects");
    put(*with_objects.backend, kCopyingName, std::string(zeros, '\0'));
    put(*with_objects.backend, "c0/2.jpg", "somebody's only copy");
    const auto outcome = copy_corpus(from, torn, {});
    ASSERT_TRUE(outcome.ok()) << outcome.error().message();
    expect_complete(from, torn);
    const auto refused = copy_corpus(from, with_objects, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().what.find("add --replace"), std::string::npos) << refused.error().what;
    ASSERT_TRUE(copy_corpus(from, with_objects, {.may_replace = true}).ok());
    expect_complete(from, with_objects);
  }
}

TEST_F(CopyTest, ReportsADamagedSource) {
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
  Tier faulty_target = tier(target_ + ",fail=flip@1");
  const auto failed = copy_corpus(from, faulty_target, {});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::corrupt);
  EXPECT_NE(failed.error().what.find("read back from"), std::string::npos) << failed.error().what;
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

// Two objects with two samples each and framing bytes around the samples. `whole` selects checksums of
// objects, else there are only those of samples.
Corpus shards(const std::string& place, bool whole) {
  const std::string content = "<header>the first<middle>a second<-tail->";
  Tier source = tier(place);
  ManifestBuilder builder(with_checksums(whole));
  for (const char* const name : {"a.shard", "b.shard"}) {
    put(*source.backend, name, content);
    const uint32_t object = builder.add_object(name, content.size());
    builder.set_object_crc32c(object, crc32c(bytes_of(content)));
    builder.add_sample({.offset = 8, .length = 9, .object = object, .crc32c = crc32c(bytes_of("the first"))});
    builder.add_sample({.offset = 25, .length = 8, .object = object, .crc32c = crc32c(bytes_of("a second"))});
  }
  EXPECT_TRUE(builder.publish(*source.backend).ok());
  auto opened = open_corpus(place, {});
  EXPECT_TRUE(opened.ok());
  return *std::move(opened);
}

void flip(Backend& backend, std::string_view name, size_t at) {
  std::string content = get(backend, name);
  content[at] = char(content[at] ^ 1);
  put(backend, name, content);
}

TEST_F(CopyTest, ReportsADamagedSourceOutsideOfSamplesToo) {
  Corpus from = shards(source_, true);
  for (const size_t at : {0U, 7U, 8U, 17U, 30U, 40U}) {
    flip(*from.tier.backend, "b.shard", at);
    Tier to = tier(target_ + std::to_string(at));
    const auto failed = copy_corpus(from, to, {});
    ASSERT_FALSE(failed.ok()) << at;
    EXPECT_EQ(failed.error().code, Errc::corrupt);
    EXPECT_NE(failed.error().what.find("b.shard"), std::string::npos);
    EXPECT_FALSE(to.backend->names().stat("b.shard").ok());
    flip(*from.tier.backend, "b.shard", at);
  }
}

TEST_F(CopyTest, ReplacesObjectsThatAreWrongOutsideOfSamples) {
  for (const bool whole : {true, false}) {
    Corpus from = shards(source_ + (whole ? "a" : "b"), whole);
    Tier to = tier(target_ + (whole ? "a" : "b"));
    ASSERT_TRUE(copy_corpus(from, to, {}).ok());
    flip(*to.backend, "a.shard", 18);
    const auto again = copy_corpus(from, to, {});
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(again->objects_copied, 1U) << whole;
    EXPECT_EQ(get(*to.backend, "a.shard"), get(*from.tier.backend, "a.shard"));
  }
}

// Objects that the copy replaces count as free space; other objects do not.
TEST_F(CopyTest, ReplacedObjectsCountAsFreeSpace) {
  Corpus from = corpus();
  for (const bool same_names : {true, false}) {
    const std::string where = target_ + (same_names ? "-same" : "-others");
    Tier before = tier(where);
    for (uint32_t i = 0; i < 10; ++i)
      put(*before.backend,
          "c" + std::to_string(i / 5) + "/" + std::to_string(i) + (same_names ? ".jpg" : ".old"),
          std::string(content(i).size(), '?'));
    Tier small = tier(where + ",capacity=75k");  // 55 kB are taken
    const auto outcome = copy_corpus(from, small, {.may_replace = true});
    ASSERT_EQ(outcome.ok(), same_names) << (same_names ? outcome.error().message() : "");
    if (same_names)
      expect_complete(from, small);
    else
      EXPECT_EQ(outcome.error().code, Errc::no_space);
    EXPECT_EQ(before.backend->names().stat("c0/0.jpg").ok(), same_names) << "said beforehand";
  }
}

}  // namespace
}  // namespace penstock
