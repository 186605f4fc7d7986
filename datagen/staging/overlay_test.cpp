#include "datagen/staging/overlay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string text_in(Backend& backend, std::string_view name, size_t bytes) {
  std::string text(bytes, '?');
  const auto read = backend.read_object(name, bytes, std::as_writable_bytes(std::span(text)));
  EXPECT_OK(read);
  return text;
}

class Overlay : public testing::Test {
 protected:
  Overlay() {
    write(slow() / "set/a/1", "slow 1");
    write(slow() / "set/a/2", "slow 2");
    write(slow() / "set/b", "slow b");
    write(fast() / "set/a/2", "fast 2");
  }

  fs::path slow() const { return folder_.path() / "slow"; }
  fs::path fast() const { return folder_.path() / "fast"; }
  fs::path plan_file() const { return folder_.path() / "plan.json"; }

  Corpus corpus() const {
    return open_corpus((slow() / "set").string(), {.scan = true, .types = "any"}).value();
  }

  StagingPlan plan() const {
    StagingPlan plan;
    plan.id = "0123456789abcdef";
    plan.policy = "density";
    plan.should_stage = true;
    plan.slow = {"disk", "disk=posix:" + slow().string(), slow().string()};
    plan.fast = {"flash", "flash=posix:" + fast().string(), fast().string()};
    const auto time = fs::last_write_time(slow() / "set/a/2");
    const auto since_1970 = std::chrono::file_clock::to_sys(time).time_since_epoch();
    plan.files = {{"set/a/2", 6, std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count()}};
    return plan;
  }

  ScratchFolder folder_;
};

TEST_F(Overlay, TakesEachObjectFromItsTier) {
  Corpus overlaid = corpus();
  ASSERT_OK(save_staging_plan(plan(), plan_file().string()));
  ASSERT_OK(apply_overlay(overlaid, plan_file()));
  Backend& backend = *overlaid.tier.backend;
  EXPECT_EQ(text_in(backend, "a/1", 6), "slow 1");
  EXPECT_EQ(text_in(backend, "a/2", 6), "fast 2");
  EXPECT_EQ(text_in(backend, "b", 6), "slow b");
  EXPECT_EQ(backend.native_path("a/2"), fast() / "set/a/2");
  EXPECT_EQ(backend.moved_bytes().read, 18U);
  EXPECT_FALSE(backend.create("new").ok());
  EXPECT_ERRC(Errc::unsupported, backend.names().remove("a/1"));

  const auto reader = backend.open("a/2");
  ASSERT_OK(reader);
  std::string text(4, '?');
  ASSERT_OK((*reader)->read_at(0, std::as_writable_bytes(std::span(text))));
  EXPECT_EQ(text, "fast");
}

TEST_F(Overlay, NamesAreRelativeToItsFolder) {
  Corpus overlaid = corpus();
  ASSERT_OK(save_staging_plan(plan(), plan_file().string()));
  ASSERT_OK(apply_overlay(overlaid, plan_file()));
  Namespace& names = overlaid.tier.backend->names();
  for (const char* const folder : {"", "a"}) {
    std::vector<std::string> found;
    ASSERT_OK(names.list_all(folder,
                             [&](const Entry& entry) {
                               found.push_back(entry.name);
                               return true;
                             },
                             {}));
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, folder[0] == 0 ? (std::vector<std::string>{"a", "b"})
                                    : (std::vector<std::string>{"a/1", "a/2"}));
    for (const std::string& name : found) EXPECT_EQ(names.stat(name).value().name, name);
  }
  EXPECT_EQ(names.stat("").value().name, "");
}

TEST_F(Overlay, QueuesReadFromBothTiers) {
  Corpus overlaid = corpus();
  ASSERT_OK(save_staging_plan(plan(), plan_file().string()));
  ASSERT_OK(apply_overlay(overlaid, plan_file()));
  const auto queue = deep_queue(*overlaid.tier.backend, 4);
  ASSERT_OK(queue);
  std::string one(6, '?');
  std::string two(6, '?');
  const Operation operations[] = {{ReadObject{"a/1", 6, std::as_writable_bytes(std::span(one))}, 1},
                                  {ReadObject{"a/2", 6, std::as_writable_bytes(std::span(two))}, 2}};
  ASSERT_EQ((*queue)->submit(operations), 2U);
  std::vector<Completion> done(2);
  ASSERT_EQ((*queue)->reap(done, 2), 2U);
  EXPECT_EQ(one + two, "slow 1fast 2");
}

TEST_F(Overlay, BytesOfEachTierAreInTheRecord) {
  Corpus overlaid = corpus();
  ASSERT_OK(save_staging_plan(plan(), plan_file().string()));
  ASSERT_OK(apply_overlay(overlaid, plan_file()));
  text_in(*overlaid.tier.backend, "a/1", 6);
  text_in(*overlaid.tier.backend, "a/2", 3);
  Trial trial;
  ASSERT_OK(record_overlay(
      overlaid.tier, [](uint64_t bytes) { return Result<uint64_t>(2 * bytes); }, trial));
  const Record& record = trial.record();
  EXPECT_EQ(record.metrics.at("tier_bytes_read.slow").value(), 12);
  EXPECT_EQ(record.metrics.at("tier_bytes_read.fast").value(), 6);
  EXPECT_EQ(record.tiers["fast"]["name"], "flash");

  Trial other;
  ASSERT_OK(record_overlay(
      corpus().tier, [](uint64_t bytes) { return Result<uint64_t>(bytes); }, other));
  EXPECT_TRUE(other.record().metrics.empty());
}

TEST_F(Overlay, ACopyThatIsNotThereIsAnError) {
  Corpus overlaid = corpus();
  ASSERT_OK(save_staging_plan(plan(), plan_file().string()));
  fs::remove(fast() / "set/a/2");
  EXPECT_ERRC(Errc::not_found, apply_overlay(overlaid, plan_file()), "penstock stage apply");
  write(fast() / "set/a/2", "longer than it was");
  EXPECT_ERRC(Errc::corrupt, apply_overlay(overlaid, plan_file()), "not the copy");
  EXPECT_EQ(overlaid.tier.backend_name, "posix") << "after an error the corpus is as it was";
}

TEST_F(Overlay, AnOriginalThatWasChangedIsAnError) {
  Corpus overlaid = corpus();
  ASSERT_OK(save_staging_plan(plan(), plan_file().string()));
  fs::last_write_time(slow() / "set/a/2", fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_ERRC(Errc::corrupt, apply_overlay(overlaid, plan_file()), "was changed since");
}

TEST_F(Overlay, AnotherCorpusIsAnError) {
  ASSERT_OK(save_staging_plan(plan(), plan_file().string()));
  Corpus other_corpus = open_corpus(fast().string(), {.scan = true, .types = "any"}).value();
  EXPECT_ERRC(Errc::invalid_argument, apply_overlay(other_corpus, plan_file()),
              "is not inside the plan's slow tier");
}

TEST_F(Overlay, APlanThatStagesNothingIsAnError) {
  StagingPlan empty_plan = plan();
  empty_plan.should_stage = false;
  empty_plan.reason = "for a reason";
  empty_plan.files.clear();
  ASSERT_OK(save_staging_plan(empty_plan, plan_file().string()));
  Corpus overlaid = corpus();
  EXPECT_ERRC(Errc::invalid_argument, apply_overlay(overlaid, plan_file()), "for a reason");
}

TEST_F(Overlay, ATierThatIsElsewhereNowIsAnError) {
  EXPECT_ERRC(Errc::invalid_argument, open_planned_tier({"x", "x=posix:" + slow().string(), "/other"}),
              "/other");
}

}  // namespace
}  // namespace penstock
