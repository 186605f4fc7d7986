#include "datagen/generate/generate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "datagen/codec/gzip.hpp"
#include "datagen/commands/dry_run.hpp"
#include "datagen/generate/generate_target.hpp"
#include "datagen/generate/generate_testing.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

// One small data set for all tests, because preparing the recipe takes longer than making its samples.
const Generation& small() {
  static const Generation generation =
      plan_generation("imagenet", "files", {{"median", "4KB"}, {"classes", "3"}}, {.samples = 17}, 7).value();
  return generation;
}

Result<GenerateResult> make(Tier& tier, unsigned threads = 2, bool resume = false) {
  return penstock::make(tier, small(), threads, resume);
}

const Tree& expected() {
  static const Tree tree = [] {
    Tier target = tier("generate-expected");
    EXPECT_TRUE(make(target, 1).ok());
    return tree_of(target);
  }();
  return tree;
}

void expect_complete(Tier& target) {
  expect_same(tree_of(target), expected());
}

TEST(Generate, ADryRunTakesOnlyAPartOfTheMemory) {
  for (const uint64_t mib : {16U, 64U, 200U, 1000U, 4000U})
    EXPECT_LE(measure_buffer_bytes(mib << 20U), (mib << 20U) / 4) << mib;
  EXPECT_EQ(measure_buffer_bytes(uint64_t{64} << 30U), size_t{256} << 20U);
  EXPECT_EQ(measure_buffer_bytes(0), size_t{256} << 20U) << "unknown";
  EXPECT_GE(measure_buffer_bytes(1), size_t{1} << 20U);
}

TEST(Generate, TheTreeIsObjectsAndManifestAlone) {
  EXPECT_EQ(expected().size(), 18U);
  EXPECT_TRUE(expected().contains(".penstock/manifest"));
  EXPECT_TRUE(expected().contains("n00000001/n00000001_5.JPEG"));
  Tier target = tier("generate-expected");
  const Manifest manifest = Manifest::load(*target.backend, kManifestName).value();
  EXPECT_TRUE(manifest.check().ok());
  EXPECT_TRUE(manifest.one_object_per_sample());
  EXPECT_EQ(manifest.samples(), 17U);
  EXPECT_EQ(manifest.facts().recipe, "imagenet");
  EXPECT_EQ(manifest.facts().codec, "jpeg");
  EXPECT_EQ(manifest.facts().seed, 7U);
  EXPECT_EQ(manifest.facts().settings.at("median"), "4000");
  EXPECT_EQ(manifest.facts().label_names.size(), 3U);
  EXPECT_TRUE(manifest.facts().checksums);
  EXPECT_EQ(manifest.sample(16).label, 1U);
}

TEST(Generate, ThreadsDoNotMatter) {
  for (const unsigned threads : {2U, 3U, 40U}) {
    Tier target = tier("generate-threads-" + std::to_string(threads));
    const auto made = make(target, threads);
    ASSERT_TRUE(made.ok()) << made.error().what;
    EXPECT_EQ(made->samples_made, 17U);
    expect_complete(target);
  }
}

TEST(Generate, CompanionsAreNextToTheSamplesAndHoldNone) {
  const Generation weather = plan_generation("climate", "", {{"shape", "2,8,8"}}, {.samples = 3}, 7).value();
  Tier whole = tier("generate-companions");
  ASSERT_TRUE(penstock::make(whole, weather).ok());
  const Tree tree = tree_of(whole);
  EXPECT_EQ(tree.size(), 5U);
  EXPECT_TRUE(tree.contains("stats.h5"));
  const Manifest manifest = Manifest::load(*whole.backend, kManifestName).value();
  EXPECT_TRUE(manifest.check().ok());
  EXPECT_EQ(manifest.samples(), 3U);
  EXPECT_EQ(manifest.objects(), 4U);
  EXPECT_EQ(manifest.object_bytes(3), tree.at("stats.h5").size());
  uint64_t failed = 0;
  for (uint64_t at = 1;; ++at) {
    const std::string path = "generate-companions-" + std::to_string(at);
    Tier failing = tier(path, ",fail=any:enospc@#" + std::to_string(at) + "..");
    if (penstock::make(failing, weather, 1).ok()) break;
    ++failed;
    Tier healthy = tier(path);
    ASSERT_TRUE(penstock::make(healthy, weather, 2, true).ok()) << at;
    EXPECT_TRUE(tree_of(healthy) == tree) << at;
  }
  EXPECT_GT(failed, 20U);
}

TEST(Generate, NamesOfCompanionsDoNotDependOnTheLayoutOfSamples) {
  const std::vector<std::vector<OptionWord>> ways{{{"samples_per_file", "2"}},
                                                  {{"shards", "2"}},
                                                  {{"samples_per_file", "1"}, {"dirs", "hash:64"}},
                                                  {{"samples_per_file", "1"}, {"dirs", "flat"}}};
  for (const std::vector<OptionWord>& way : ways)
    for (const auto& [format, name] : {std::pair{"hdf5", "stats.h5"}, std::pair{"npz", "stats.npz"},
                                       std::pair{"tfrecord", "stats.tfrecord"}}) {
      std::vector<OptionWord> settings{{"shape", "2,8,8"}};
      settings.insert(settings.end(), way.begin(), way.end());
      const auto weather = plan_generation("climate", format, settings, {.samples = 3}, 7);
      ASSERT_TRUE(weather.ok()) << weather.error().what;
      Tier target = tier(std::string("generate-names-") + format + way.back().key + way.back().value);
      ASSERT_TRUE(penstock::make(target, *weather).ok());
      EXPECT_TRUE(tree_of(target).contains(name)) << format << " " << way.back().key;
    }
}

// From operation number `at` on, all operations fail, as on a full, dead or missing target. Then --resume
// runs on a target without faults. The test repeats this for many values of `at`.
TEST(Generate, FailingAnywhereLeavesSomethingToResume) {
  uint64_t failed = 0;
  for (uint64_t at = 1;; at += at < 40 ? 1 : 7) {
    const std::string path = "generate-fault-" + std::to_string(at);
    Tier failing = tier(path, ",fail=any:enospc@#" + std::to_string(at) + "..");
    const auto stopped = make(failing);
    if (stopped.ok()) break;
    ++failed;
    EXPECT_EQ(stopped.error().code, Errc::no_space) << stopped.error().what;
    Tier healthy = tier(path);
    EXPECT_FALSE(healthy.backend->open(kManifestName).ok() &&
                 read_generation_state(*healthy.backend).value() == std::nullopt &&
                 tree_of(healthy).size() != expected().size())
        << "half a data set is no corpus";
    const auto resumed = make(healthy, 2, true);
    ASSERT_TRUE(resumed.ok()) << at << ": " << resumed.error().what;
    expect_complete(healthy);
  }
  EXPECT_GT(failed, 40U);
}

TEST(Generate, FlippedBitsInReadingDoNotPassForSamples) {
  Tier target = tier("generate-flip", ",fail=publish:eio@#12");
  ASSERT_FALSE(make(target, 1).ok());
  Tier lying = tier("generate-flip", ",fail=flip@0.5");
  (void)make(lying, 1, true);  // may succeed or fail, but must not leave a wrong object
  Tier healthy = tier("generate-flip");
  ASSERT_TRUE(make(healthy, 1, true).ok());
  expect_complete(healthy);
}

TEST(Generate, ResumeKeepsWhatIsRightAndMakesTheRestAgain) {
  Tier target = tier("generate-damage", ",fail=publish:eio@#12");
  ASSERT_FALSE(make(target, 1).ok());
  Tier healthy = tier("generate-damage");
  Tree before = tree_of(healthy);
  std::vector<std::string> objects;
  for (const auto& [name, bytes] : before)
    if (name.ends_with(".JPEG")) objects.push_back(name);
  ASSERT_GE(objects.size(), 5U);
  std::string flipped = before[objects[0]];
  flipped[flipped.size() / 2] ^= 1;
  put(*healthy.backend, objects[0], flipped);
  put(*healthy.backend, objects[1], before[objects[1]].substr(1));
  put(*healthy.backend, objects[2], before[objects[2]] + "x");
  ASSERT_TRUE(healthy.backend->names().remove(objects[3]).ok());
  const auto resumed = make(healthy, 2, true);
  ASSERT_TRUE(resumed.ok()) << resumed.error().what;
  EXPECT_EQ(resumed->damaged_objects, 4U);
  EXPECT_EQ(resumed->samples_kept, objects.size() - 4);
  EXPECT_EQ(resumed->samples_made + resumed->samples_kept, 17U);
  expect_complete(healthy);
}

TEST(Generate, UnreadableObjectsAreMadeAgain) {
  Tier target = tier("generate-unreadable", ",fail=publish:eio@#12");
  ASSERT_FALSE(make(target, 1).ok());
  Tier healthy = tier("generate-unreadable");
  const Tree before = tree_of(healthy);
  uint64_t made_again = 0;
  uint64_t lost_journals = 0;
  for (int at = 1; at <= 12; ++at) {
    for (const auto& [name, bytes] : tree_of(healthy))
      ASSERT_TRUE(healthy.backend->names().remove(name).ok());
    for (const auto& [name, bytes] : before) put(*healthy.backend, name, bytes);
    Tier failing = tier("generate-unreadable", ",fail=read:eio@#" + std::to_string(at));
    const auto resumed = make(failing, 1, true);
    if (!resumed.ok()) {  // the unreadable object was the state file
      EXPECT_EQ(resumed.error().code, Errc::io);
      ASSERT_TRUE(make(healthy, 1, true).ok());
    } else {
      made_again += resumed->damaged_objects;
      lost_journals += resumed->damaged_journal_parts;
    }
    expect_complete(healthy);
  }
  EXPECT_GE(made_again, 5U);
  EXPECT_GE(lost_journals, 1U);
}

TEST(Generate, DamagedJournalsCostTimeOnly) {
  Tier target = tier("generate-journal", ",fail=publish:eio@#12");
  ASSERT_FALSE(make(target, 1).ok());
  Tier healthy = tier("generate-journal");
  // Joins all segments of the journal to one, because their number depends on the speed of the run.
  std::vector<std::string> segments;
  ASSERT_TRUE(healthy.backend->names()
                  .list(kJournalFolder,
                        [&](const Entry& entry) {
                          segments.push_back(entry.name);
                          return true;
                        })
                  .ok());
  std::sort(segments.begin(), segments.end());
  std::string bytes;
  for (const std::string& name : segments) {
    bytes += content(*healthy.backend, name);
    ASSERT_TRUE(healthy.backend->names().remove(name).ok());
  }
  const std::string segment = std::string(kJournalFolder) + "/00000000";
  ASSERT_GE(bytes.size(), 3 * 32U);
  bytes[40] ^= 4;                           // a wrong entry of one sample, which makes its object invalid
  bytes += std::string(64, '\0') + "torn";  // and an incomplete entry at the end
  put(*healthy.backend, segment, bytes);
  put(*healthy.backend, std::string(kJournalFolder) + "/notes", "of somebody else");
  const auto read =
      read_journal(*healthy.backend, journal_key(small().state), [](const auto&) { return success(); });
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->damaged_parts, 5U);
  ASSERT_TRUE(healthy.backend->names().remove(std::string(kJournalFolder) + "/notes").ok());
  ASSERT_TRUE(make(healthy, 2, true).ok());
  expect_complete(healthy);
}

TEST(Generate, TheJournalOfAnotherStateIsNotUsed) {
  Tier target = tier("generate-other-seed", ",fail=publish:eio@#12");
  ASSERT_FALSE(make(target, 1).ok());
  Tier healthy = tier("generate-other-seed");
  const std::string name(kGenerationStateName);
  std::string state = content(*healthy.backend, name);
  const size_t seed = state.find("\"seed\": 7");
  ASSERT_NE(seed, std::string::npos);
  state[seed + 8] = '8';
  put(*healthy.backend, name, state);
  const Generation other =
      plan_generation("imagenet", "files", {{"median", "4KB"}, {"classes", "3"}}, {.samples = 17}, 8).value();
  const auto resumed = penstock::make(healthy, other, 2, true);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message();
  EXPECT_EQ(resumed->samples_kept, 0U);
  EXPECT_GT(resumed->damaged_journal_parts, 0U);
  Tier whole = tier("generate-whole-of-other-seed");
  ASSERT_TRUE(penstock::make(whole, other, 1).ok());
  EXPECT_EQ(tree_of(healthy), tree_of(whole));
}

TEST(Generate, AnInterruptedRunCanBeResumed) {
  simulate_interrupt(SIGINT);
  Tier target = tier("generate-interrupt");
  const auto stopped = make(target);
  simulate_interrupt(0);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  ASSERT_TRUE(make(target, 2, true).ok());
  expect_complete(target);
}

TEST(Generate, ResumeOnAnEmptyTargetMakesTheDataSet) {
  Tier target = tier("generate-fresh");
  ASSERT_TRUE(make(target, 2, true).ok());
  expect_complete(target);
  EXPECT_TRUE(check_target(target, small().state, true).value());
}

TEST(Generate, TargetsWithSomethingInThemAreRefused) {
  Tier corpus = tier("generate-expected");
  EXPECT_FALSE(expected().empty());
  EXPECT_EQ(make(corpus).error().code, Errc::already_exists);

  Tier full = tier("generate-full");
  put(*full.backend, "thesis.tex", "years of work");
  for (const bool resume : {false, true}) {
    const auto refused = make(full, 1, resume);
    EXPECT_EQ(refused.error().code, Errc::already_exists);
    EXPECT_NE(refused.error().what.find("thesis.tex"), std::string::npos) << refused.error().what;
  }
  Tier fresh = tier("generate-lost");
  ASSERT_TRUE(fresh.backend->names().make_folders("lost+found").ok());
  EXPECT_TRUE(make(fresh).ok());
}

TEST(Generate, UnfinishedDataSetsNeedResumeAndTheSameArguments) {
  Tier target = tier("generate-unfinished", ",fail=publish:eio@#9");
  ASSERT_FALSE(make(target, 1).ok());
  Tier healthy = tier("generate-unfinished");
  const auto again = make(healthy);
  EXPECT_EQ(again.error().code, Errc::already_exists);
  EXPECT_NE(again.error().what.find("--resume"), std::string::npos) << again.error().what;
  GenerationState other = small().state;
  other.seed = 8;
  EXPECT_NE(check_target(healthy, other, true).error().what.find("--seed 7, not 8"), std::string::npos);
  other = small().state;
  other.samples = 18;
  EXPECT_NE(check_target(healthy, other, true).error().what.find("17 samples, not 18"), std::string::npos);
  other = small().state;
  other.settings["classes"] = "4";
  EXPECT_NE(check_target(healthy, other, true).error().what.find("classes=3, not 4"), std::string::npos);
  other.settings.erase("classes");
  EXPECT_NE(check_target(healthy, other, true).error().what.find("classes=3"), std::string::npos);
  other = small().state;
  ++other.fingerprint;
  EXPECT_NE(check_target(healthy, other, true).error().what.find("another build"), std::string::npos);
}

TEST(Generate, ALockedTargetIsBusy) {
  Tier target = tier("generate-lock");
  const auto lock = target.backend->names().lock(kGenerationLockName).value();
  EXPECT_EQ(make(target).error().code, Errc::busy);
}

TEST(GenerationState, IsTheSameAfterParsingItsText) {
  const GenerationState state = small().state;
  EXPECT_EQ(difference(parse_generation_state(to_text(state)).value(), state), "");
  EXPECT_EQ(parse_generation_state(to_text(state)).value().fingerprint, state.fingerprint);
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"schema\":3}"),
        std::string("{\"schema\":\"x\"}"), to_text(state).substr(0, 40)})
    EXPECT_EQ(parse_generation_state(text).error().code, Errc::corrupt) << text;
  // The state file of another version is refused, since its journal is different.
  for (const char* const text : {"{\"schema\":99}", "{\"schema\":2}"}) {
    const auto refused = parse_generation_state(text);
    EXPECT_EQ(refused.error().code, Errc::unsupported);
    EXPECT_NE(refused.error().what.find("another version of penstock"), std::string::npos);
  }
}

TEST(Generation, CountsByBytesScaleOrSamples) {
  const auto samples = [](const SampleCountRequest& count_request) {
    return plan_generation("imagenet", "files", {}, count_request, 7).value().state.samples;
  };
  EXPECT_EQ(samples({}), 1281167U);
  EXPECT_EQ(samples({.scale = 0.001}), 1281U);
  EXPECT_EQ(samples({.scale = 1e-9}), 1U);
  EXPECT_EQ(samples({.bytes = 1}), 1U);
  const auto ten_mb = plan_generation("imagenet", "files", {}, {.bytes = 10'000'000}, 7).value();
  EXPECT_LE(ten_mb.bytes_expected, 10'000'000U);
  EXPECT_GT(ten_mb.bytes_expected, 9'500'000U);
  EXPECT_NEAR(double(samples({.bytes = 1'000'000'000'000})), 1e12 / 121328, 1e12 / 121328 * 0.01);
  // The first samples of a larger data set must equal those of a smaller one.
  SamplePlan few;
  SamplePlan many;
  const auto ten = plan_generation("imagenet", "files", {}, {.samples = 10}, 7).value();
  const auto more = plan_generation("imagenet", "files", {}, {.samples = 100000}, 7).value();
  ten.recipe->plan(9, few);
  more.recipe->plan(9, many);
  EXPECT_EQ(few.key, many.key);
  EXPECT_EQ(ten.recipe->bytes_expected(9), more.recipe->bytes_expected(9));
}

TEST(Generation, PlansForTheMostBytesOfCompression) {
  if (!gzip_available().ok()) GTEST_SKIP() << gzip_available().error().what;
  const auto planned = [](const char* compression, const SampleCountRequest& count_request) {
    return plan_generation("cifar10", "tfrecord", {{"compression", compression}}, count_request, 7).value();
  };
  const Generation plain = planned("none", {.samples = 100});
  const Generation compressed = planned("gzip", {.samples = 100});
  EXPECT_FALSE(plain.bytes_are_limit);
  EXPECT_TRUE(compressed.bytes_are_limit);
  EXPECT_GT(compressed.bytes_expected, plain.bytes_expected);
  EXPECT_LT(compressed.bytes_expected, plain.bytes_expected + uint64_t{100} * 100);
  Tier target = tier("compressed");
  ASSERT_TRUE(make(target, compressed, 2).ok());
  const Manifest manifest = Manifest::load(*target.backend, kManifestName).value();
  EXPECT_EQ(manifest.facts().codec, "raw.tfrecord.gz");
  EXPECT_LE(manifest.object_bytes(0), compressed.bytes_expected);
  EXPECT_LE(planned("gzip", {.bytes = 1'000'000}).bytes_expected, 1'000'000U);
}

TEST(Generation, RefusesInvalidRequests) {
  const auto refused = [](const SampleCountRequest& count_request,
                          const std::vector<OptionWord>& settings = {}) {
    const auto planned = plan_generation("imagenet", "files", settings, count_request, 7);
    EXPECT_FALSE(planned.ok());
    if (!planned.ok()) {
      EXPECT_EQ(planned.error().code, Errc::invalid_argument) << planned.error().what;
    }
  };
  refused({.samples = 1, .bytes = 1});
  refused({.scale = -1});
  refused({.scale = 1e300});
  refused({.samples = UINT64_MAX});
  refused({.samples = INT64_MAX / 200000});
  refused({.bytes = INT64_MAX});
  refused({.samples = 5}, {{"no_such_key", "1"}});
  refused({.samples = 5}, {{"dirs", "deep"}});
  refused({.samples = 5}, {{"types", "png"}});
  EXPECT_EQ(plan_generation("imagenot", "files", {}, {}, 7).error().code, Errc::invalid_argument);
  EXPECT_EQ(plan_generation("imagenet", "flies", {}, {}, 7).error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace penstock
