// Tests --resume on a finished data set: missing objects and objects of a wrong size are made again, byte for
// byte.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "datagen/generate/generate_target.hpp"
#include "datagen/generate/generate_testing.hpp"
#include "datagen/manifest/manifest.hpp"

namespace penstock {
namespace {

// A data set of objects with two samples each, and a companion without samples.
Generation weather(uint64_t seed = 7) {
  return plan_generation("climate", "", {{"shape", "2,8,8"}, {"samples_per_file", "2"}}, {.samples = 7}, seed)
      .value();
}

void remove(Tier& tier, const std::string& name) {
  ASSERT_TRUE(tier.backend->names().remove(name).ok()) << name;
}

std::vector<std::string> names_of(Tier& tier) {
  const Manifest manifest = Manifest::load(*tier.backend, kManifestName).value();
  std::vector<std::string> names(manifest.objects());
  for (size_t i = 0; i < names.size(); ++i) manifest.object_name(i, names[i]);
  return names;
}

TEST(GenerateRepair, MissingObjectsAndThoseOfWrongSizeAreMadeAgain) {
  const Generation generation = weather();
  Tier target = tier("mend");
  ASSERT_TRUE(make(target, generation).ok());
  const Tree whole = tree_of(target);
  const std::vector<std::string> names = names_of(target);
  ASSERT_EQ(names.size(), 5U);
  remove(target, names[0]);
  put(*target.backend, names[1], whole.at(names[1]).substr(1));
  put(*target.backend, names[3], whole.at(names[3]) + "x");  // the last object with samples; it has only one
  remove(target, names[4]);
  ASSERT_TRUE(names[4].starts_with("stats"));
  const auto repaired = make(target, generation, 2, true);
  ASSERT_TRUE(repaired.ok()) << repaired.error().message();
  EXPECT_EQ(repaired->damaged_objects, 4U);
  EXPECT_EQ(repaired->samples_made, 5U);
  EXPECT_EQ(repaired->samples_kept, 2U);
  EXPECT_FALSE(repaired->can_resume);
  expect_same(tree_of(target), whole);
}

TEST(GenerateRepair, SpaceIsNeededOnlyForTheMissingBytes) {
  ManifestBuilder builder({});
  for (const char* name : {"cut", "gone", "grown"}) builder.add_object(name, 100);
  const Manifest manifest = Manifest::from_bytes(builder.finish().value()).value();
  const std::vector<ObjectVerdict> wrong{{ObjectState::shrunk, "cut", 0, 60},
                                         {ObjectState::vanished, "gone", 1, 0},
                                         {ObjectState::grown, "grown", 2, 130}};
  // In this test the target is empty: check_space_for_repair() relies on `wrong` and does not inspect the
  // objects again.
  Tier enough = tier("mend-enough", ",capacity=140");
  const auto fits = check_space_for_repair(enough, manifest, wrong);
  EXPECT_TRUE(fits.ok()) << fits.error().message();
  Tier full = tier("mend-full", ",capacity=139");
  const auto refused = check_space_for_repair(full, manifest, wrong);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::no_space);
}

TEST(GenerateRepair, ACorrectDataSetIsNotChanged) {
  const Generation generation = weather();
  Tier target = tier("mend-nothing");
  ASSERT_TRUE(make(target, generation).ok());
  Tier readable = tier("mend-nothing", ",fail=write:eio@#1..+publish:eio@#1..");
  const auto resumed = make(readable, generation, 2, true);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message();
  EXPECT_EQ(resumed->samples_made, 0U);
  EXPECT_EQ(resumed->damaged_objects, 0U);
}

TEST(GenerateRepair, AStoppedRepairCanBeResumed) {
  const Generation generation = weather();
  uint64_t failed = 0;
  for (int at = 1;; ++at) {
    const std::string path = "mend-stopped-" + std::to_string(at);
    Tier target = tier(path);
    ASSERT_TRUE(make(target, generation, 1).ok());
    const Tree whole = tree_of(target);
    const std::vector<std::string> names = names_of(target);
    remove(target, names[0]);
    remove(target, names[2]);
    Tier failing = tier(path, ",fail=any:enospc@#" + std::to_string(at) + "..");
    if (make(failing, generation, 1, true).ok()) break;
    ++failed;
    EXPECT_TRUE(target.backend->open(kManifestName).ok()) << at;
    ASSERT_TRUE(make(target, generation, 1, true).ok()) << at;
    expect_same(tree_of(target), whole);
  }
  EXPECT_GT(failed, 10U);
}

// A tier on which every write and publish fails.
Tier unwritable(const std::string& path) {
  return tier(path, ",fail=write:eio@#1..+publish:eio@#1..");
}

TEST(GenerateRepair, WithAManifestNothingIsMadeAgain) {
  const Generation generation = weather();
  Tier made = tier("mend-behind");
  ASSERT_TRUE(make(made, generation).ok());
  const Tree whole = tree_of(made);
  uint64_t failures_after_manifest = 0;
  for (int at = 1;; ++at) {
    const std::string path = "mend-behind-" + std::to_string(at);
    Tier failing = tier(path, ",fail=any:enospc@#" + std::to_string(at) + "..");
    if (make(failing, generation, 1).ok()) break;
    Tier target = tier(path);
    if (!target.backend->open(kManifestName).ok()) continue;
    ++failures_after_manifest;
    Tier readable = unwritable(path);
    const auto resumed = make(readable, generation, 1, true);
    ASSERT_TRUE(resumed.ok()) << at << ": " << resumed.error().message();
    EXPECT_EQ(resumed->samples_made, 0U) << at;
    expect_same(tree_of(target), whole);
  }
  // In these runs, the removal of the journal, of its folder, of the state file or of the lock's file failed.
  EXPECT_GE(failures_after_manifest, 4U);
}

TEST(GenerateRepair, AFinishedDataSetStaysFinishedIfTheRemovalOfItsStateFails) {
  const Generation generation = weather();
  uint64_t failed = 0;
  for (int at = 1;; ++at) {
    const std::string path = "mend-swept-" + std::to_string(at);
    Tier target = tier(path);
    ASSERT_TRUE(make(target, generation).ok());
    const Tree whole = tree_of(target);
    put(*target.backend, kGenerationStateName, to_text(generation.state));
    put(*target.backend, std::string(kJournalFolder) + "/00000003", "");
    EXPECT_TRUE(check_target(target, generation.state, true).value());
    Tier failing = tier(path, ",fail=any:enospc@#" + std::to_string(at) + "..");
    if (make(failing, generation, 1, true).ok()) break;
    ++failed;
    for (const auto& [name, bytes] : whole) ASSERT_TRUE(target.backend->open(name).ok()) << at << name;
    Tier readable = unwritable(path);
    ASSERT_TRUE(make(readable, generation, 1, true).ok()) << at;
    expect_same(tree_of(target), whole);
  }
  EXPECT_GT(failed, 6U);
}

TEST(GenerateRepair, LeftoversAreRemovedWithoutMakingAnything) {
  const Generation generation = weather();
  Tier target = tier("mend-sweep");
  ASSERT_TRUE(make(target, generation).ok());
  const Tree whole = tree_of(target);
  put(*target.backend, kGenerationStateName, to_text(generation.state));
  put(*target.backend, std::string(kJournalFolder) + "/00000003", "");
  {
    const auto lock = target.backend->names().lock(kGenerationLockName).value();
    remove_leftovers(*target.backend);
    EXPECT_TRUE(read_generation_state(*target.backend).value()) << "another one is at work";
  }
  remove_leftovers(*target.backend);
  expect_same(tree_of(target), whole);
}

// If there is a state file, and the manifest belongs to another data set, the manifest is removed before any
// object is changed.
TEST(GenerateRepair, AManifestOfAnotherDataSetIsRemovedBeforeAnyObject) {
  const Generation generation = weather();
  Tier other = tier("mend-else");
  ASSERT_TRUE(make(other, weather(8)).ok());
  const std::string manifest = content(*other.backend, kManifestName);
  uint64_t failed = 0;
  for (int at = 1;; ++at) {
    const std::string path = "mend-else-" + std::to_string(at);
    Tier target = tier(path);
    ASSERT_TRUE(make(target, generation).ok());
    const Tree whole = tree_of(target);
    put(*target.backend, kGenerationStateName, to_text(generation.state));
    put(*target.backend, kManifestName, at % 2 == 0 ? manifest : manifest.substr(1));
    Tier failing = tier(path, ",fail=any:enospc@#" + std::to_string(at) + "..");
    if (make(failing, generation, 1, true).ok()) break;
    ++failed;
    const Tree left = tree_of(target);
    const std::string named(kManifestName);
    const bool has_other_manifest = left.contains(named) && left.at(named) != whole.at(named);
    for (const auto& [name, bytes] : whole)
      EXPECT_TRUE(!has_other_manifest || left.contains(name)) << at << name;
    ASSERT_TRUE(make(target, generation, 1, true).ok()) << at;
    expect_same(tree_of(target), whole);
  }
  EXPECT_GT(failed, 20U);
}

TEST(GenerateRepair, ResumeKeepsTheJournaledSamples) {
  const Generation generation = weather();
  uint64_t journaled = 0;
  uint64_t lost = 0;
  for (const std::string& fault : {std::string("publish:enospc@#4"), std::string("publish:enospc@#4.."),
                                   std::string("publish:enospc@#5..")}) {
    const std::string path = "mend-said-" + fault;
    Tier failing = tier(path, ",fail=" + fault);
    Progress progress(false, "", 0, "");
    GenerateResult stopped;
    ASSERT_FALSE(generate(generation, failing, 1, false, *single_process(), progress, stopped).ok()) << fault;
    Tier healthy = tier(path);
    const auto resumed = make(healthy, generation, 1, true);
    ASSERT_TRUE(resumed.ok()) << resumed.error().message();
    EXPECT_EQ(stopped.samples_journaled, resumed->samples_kept) << fault;
    journaled += stopped.samples_journaled;
    lost += stopped.samples_made - stopped.samples_journaled;
  }
  EXPECT_GT(journaled, 0U);
  EXPECT_GT(lost, 0U);
}

// Makes a data set of seed 8 whose manifest claims seed 7. Removes one of its objects and returns the
// object's name.
std::string mislabelled(Tier& target, bool object_checksums) {
  EXPECT_TRUE(make(target, weather(8)).ok());
  const Manifest manifest = Manifest::load(*target.backend, kManifestName).value();
  const std::vector<std::string> names = names_of(target);
  ManifestFacts facts = manifest.facts();
  facts.seed = 7;
  facts.object_checksums = object_checksums;
  ManifestBuilder builder(facts);
  for (uint32_t i = 0; i < names.size(); ++i)
    builder.set_object_crc32c(builder.add_object(names[i], manifest.object_bytes(i)),
                              manifest.object_crc32c(i).value());
  for (uint64_t i = 0; i < manifest.samples(); ++i) builder.add_sample(manifest.sample(i));
  remove(target, std::string(kManifestName));
  EXPECT_TRUE(builder.publish(*target.backend).ok());
  remove(target, names[1]);
  return names[1];
}

// An object is only made again if it gets the bytes that the manifest describes.
TEST(GenerateRepair, AnObjectWithOtherBytesThanTheManifestsIsRefused) {
  for (const bool object_checksums : {true, false}) {
    Tier target = tier("mend-other-" + std::to_string(object_checksums));
    const std::string gone = mislabelled(target, object_checksums);
    const Tree before = tree_of(target);
    const auto refused = make(target, weather(7), 2, true);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Errc::corrupt);
    EXPECT_NE(refused.error().what.find("'" + gone + "'"), std::string::npos) << refused.error().what;
    EXPECT_NE(refused.error().what.find("another build"), std::string::npos) << refused.error().what;
    expect_same(tree_of(target), before);
  }
}

TEST(GenerateRepair, OtherBytesThanTheManifestsNeverGetTheName) {
  Tier target = tier("mend-never");
  const std::string gone = mislabelled(target, true);
  const Tree before = tree_of(target);
  for (int at = 1; at <= 4; ++at) {
    Tier failing = tier("mend-never", ",fail=names/" + gone + ":eio@#" + std::to_string(at) + "..");
    EXPECT_FALSE(make(failing, weather(7), 1, true).ok());
    expect_same(tree_of(target), before);
  }
}

}  // namespace
}  // namespace penstock
