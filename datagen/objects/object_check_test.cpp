#include "datagen/objects/object_check.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "datagen/manifest/manifest_fixture.hpp"
#include "datagen/objects/objects_testing.hpp"
#include "datagen/target/extra_objects.hpp"
#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {
namespace {

struct Range {
  uint64_t offset;
  uint64_t length;
};

constexpr std::string_view kShard = "<header>the first<middle>a second, longer one<tail>";
constexpr Range kFirst{8, 9};
constexpr Range kSecond{25, 20};
const std::vector<std::vector<Range>> kLayouts{
    {kFirst, kSecond},                   // one after the other
    {kSecond, kFirst},                   // in the order of a shuffled manifest
    {kFirst, {10, 20}, kSecond},         // overlapping
    {{0, 0}, kFirst, {51, 0}, {45, 6}},  // empty samples, also at both ends
    {},                                  // no sample: a companion
};

// A correct manifest of the object "shard".
Manifest shard_of(const std::vector<Range>& samples, bool has_object_checksums) {
  ManifestBuilder builder(with_checksums(has_object_checksums));
  const uint32_t object = builder.add_object("shard", kShard.size());
  builder.set_object_crc32c(object, crc32c(bytes_of(kShard)));
  for (const Range& at : samples)
    builder.add_sample({.offset = at.offset,
                        .length = at.length,
                        .object = object,
                        .crc32c = crc32c(bytes_of(kShard.substr(at.offset, at.length)))});
  return Manifest::from_bytes(builder.finish().value()).value();
}

ObjectVerdict verdict_on(Backend& backend, const Manifest& manifest, size_t buffer_bytes) {
  Buffer buffer(buffer_bytes);
  return check_object(backend, manifest, ObjectIndex(manifest), 0, "shard", buffer).value();
}

TEST(ObjectCheck, AFlippedByteAnywhereIsFound) {
  Tier place = tier("mem:object-flips");
  for (const auto& samples : kLayouts) {
    const Manifest manifest = shard_of(samples, true);
    for (const size_t buffer : {1U, 7U, 4096U}) {
      put(*place.backend, "shard", kShard);
      const ObjectVerdict right = verdict_on(*place.backend, manifest, buffer);
      EXPECT_EQ(right.state, ObjectState::right) << right.detail;
      for (size_t at = 0; at < kShard.size(); ++at) {
        std::string flipped(kShard);
        flipped[at] = char(flipped[at] ^ 0x10);
        put(*place.backend, "shard", flipped);
        const ObjectVerdict wrong = verdict_on(*place.backend, manifest, buffer);
        ASSERT_EQ(wrong.state, ObjectState::wrong_bytes) << at;
        std::string where = "(outside of samples)";
        for (size_t i = samples.size(); i-- > 0;)
          if (at >= samples[i].offset && at < samples[i].offset + samples[i].length)
            where = "(sample " + std::to_string(i) + ")";
        EXPECT_NE(wrong.detail.find(where), std::string::npos) << wrong.detail << " at " << at;
      }
    }
  }
}

TEST(ObjectCheck, ReadsAContainerOnce) {
  Tier place = tier("mem:object-once");
  put(*place.backend, "shard", kShard);
  const auto bytes_read = [&](const Manifest& manifest) {
    const uint64_t before = place.backend->moved_bytes().read;
    EXPECT_EQ(verdict_on(*place.backend, manifest, 4096).state, ObjectState::right);
    return place.backend->moved_bytes().read - before;
  };
  EXPECT_EQ(bytes_read(shard_of({kFirst, kSecond}, true)), kShard.size());
  EXPECT_EQ(bytes_read(shard_of({}, true)), kShard.size());
  EXPECT_EQ(bytes_read(shard_of({{0, kShard.size()}}, true)), kShard.size());
  EXPECT_EQ(bytes_read(shard_of({kSecond, kFirst}, true)), kShard.size() + kFirst.length);
  EXPECT_EQ(bytes_read(shard_of({kFirst, kSecond}, false)), kFirst.length + kSecond.length);
}

TEST(ObjectCheck, WithChecksumsOfSamplesAloneThoseAreChecked) {
  Tier place = tier("mem:object-payloads");
  const Manifest manifest = shard_of({kFirst, kSecond}, false);
  for (const size_t at : {8U, 16U, 25U, 44U}) {
    std::string flipped(kShard);
    flipped[at] = '!';
    put(*place.backend, "shard", flipped);
    EXPECT_EQ(verdict_on(*place.backend, manifest, 5).state, ObjectState::wrong_bytes) << at;
  }
  std::string flipped(kShard);
  flipped[17] = '!';
  put(*place.backend, "shard", flipped);
  EXPECT_EQ(verdict_on(*place.backend, manifest, 5).state, ObjectState::right);
}

TEST(ObjectCheck, ASampleChecksumThatContradictsTheObjectsIsReported) {
  Tier place = tier("mem:object-disagree");
  put(*place.backend, "shard", kShard);
  ManifestBuilder builder(with_checksums(true));
  builder.set_object_crc32c(builder.add_object("shard", kShard.size()), crc32c(bytes_of(kShard)));
  builder.add_sample({.offset = 8, .length = 9, .crc32c = crc32c(bytes_of("not these"))});
  const ObjectVerdict verdict =
      verdict_on(*place.backend, Manifest::from_bytes(builder.finish().value()).value(), 4096);
  EXPECT_EQ(verdict.state, ObjectState::wrong_bytes);
  EXPECT_NE(verdict.detail.find("(sample 0)"), std::string::npos) << verdict.detail;
}

TEST(ObjectCheck, FindsTheSamplesOfObjectsThatHoldSeveral) {
  Tier place = tier("mem:object-check");
  put(*place.backend, "a", "aaabbb");
  put(*place.backend, "b", "cccdd");
  const auto sample = [](uint32_t object, uint64_t offset, std::string_view text) {
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
    std::vector<uint64_t> seen;
    for (const uint64_t object : {0U, 1U})
      ASSERT_TRUE(index
                      .for_each_sample(object,
                                       [&](uint64_t i) -> Result<void> {
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

TEST(ObjectCheck, DistinguishesStates) {
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
  EXPECT_EQ(extra->first_names, (std::vector<std::string>{"extra/y.jpg"}));
}

TEST(ObjectCheck, SizesAreCheckedWithoutReading) {
  Tier place = tier("mem:object-check-sizes,fail=open:eio@#1..+read:eio@#1..");
  Tier healthy = tier("mem:object-check-sizes");
  ManifestBuilder builder(with_checksums(false));
  const std::vector<std::string> contents{"right", "cut", "grown by some", "", "folder"};
  for (size_t i = 0; i < contents.size(); ++i) {
    const std::string name = "object" + std::to_string(i);
    builder.add_sample({.length = 5, .object = builder.add_object(name, 5)});
    if (i < 3) put(*healthy.backend, name, contents[i]);
    if (i == 4) put(*healthy.backend, name + "/inside", contents[i]);
  }
  const Manifest manifest = Manifest::from_bytes(builder.finish().value()).value();
  const auto wrong = check_object_sizes(place.backend->names(), manifest, 3);
  ASSERT_TRUE(wrong.ok()) << wrong.error().message();
  ASSERT_EQ(wrong->size(), 4U);
  const ObjectState states[] = {ObjectState::shrunk, ObjectState::grown, ObjectState::vanished,
                                ObjectState::vanished};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*wrong)[i].object, i + 1);
    EXPECT_EQ((*wrong)[i].state, states[i]) << i;
    EXPECT_NE((*wrong)[i].detail, "") << i;
    EXPECT_EQ((*wrong)[i].bytes, i < 2 ? contents[i + 1].size() : 0) << i;
  }
  Tier closed = tier("mem:object-check-sizes,fail=names:eacces@#1..");
  const auto refused = check_object_sizes(closed.backend->names(), manifest, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::permission_denied);
}

}  // namespace
}  // namespace penstock
