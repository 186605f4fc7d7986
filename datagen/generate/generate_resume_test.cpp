// Tests that --resume checks existing objects with all threads, even if each segment of the journal names
// only a few objects.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generate_testing.hpp"
#include "io_backends/decorators/wrapper.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr uint64_t kObjects = 12;

const Generation& resumed_generation() {
  static const Generation generation =
      plan_generation("climate", "", {{"shape", "2,8,8"}}, {.samples = kObjects + 1}, 7).value();
  return generation;
}

// A slow reader that counts how many reads run at the same time.
class SlowReader final : public ReaderWrapper {
 public:
  struct ReadCounts {
    std::atomic<int> current{0};
    std::atomic<int> highest{0};
  };
  SlowReader(std::unique_ptr<Reader> inner, ReadCounts& counts)
      : ReaderWrapper(std::move(inner)), counts_(counts) {}

  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
    const int current = ++counts_.current;
    for (int highest = counts_.highest;
         highest < current && !counts_.highest.compare_exchange_weak(highest, current);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Result<void> done = inner().read_at(offset, out);
    --counts_.current;
    return done;
  }

 private:
  ReadCounts& counts_;
};

class SlowBackend final : public BackendWrapper {
 public:
  SlowBackend(std::unique_ptr<Backend> inner, SlowReader::ReadCounts& counts)
      : BackendWrapper(std::move(inner)), counts_(counts) {}
  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_ASSIGN(auto reader, inner().open(name));
    if (!name.ends_with(".h5")) return reader;
    return std::make_unique<SlowReader>(std::move(reader), counts_);
  }

 private:
  SlowReader::ReadCounts& counts_;
};

// Makes a data set without its last object. Its journal has one segment for each object, and contains each
// segment `times` times.
void make_unfinished(const std::string& path, int times) {
  // The `+ 2`: the state file is published first, and the last object must fail.
  Tier sick = tier(path, ",fail=publish:eio@#" + std::to_string(kObjects + 2));
  ASSERT_FALSE(make(sick, resumed_generation(), 1).ok());
  Tier target = tier(path);
  const uint32_t key = journal_key(resumed_generation().state);
  std::vector<JournalSegment> rows;
  const auto read = read_journal(*target.backend, key, [&](const JournalSegment& segment) {
    for (const JournalObject& object : segment.objects) {
      JournalSegment one;
      const auto samples = segment.samples_of(object);
      one.samples.assign(samples.begin(), samples.end());
      one.objects.push_back({object.published, 0, samples.size()});
      rows.push_back(std::move(one));
    }
    return success();
  });
  ASSERT_OK(read);
  ASSERT_EQ(rows.size(), kObjects);
  JournalWriter journal(*target.backend, key, read->next_segment);
  for (int i = 0; i < times; ++i)
    for (const JournalSegment& one : rows) ASSERT_OK(journal.append(one));
  Tree tree = tree_of(target);
  std::erase_if(tree, [](const auto& one) { return !one.first.starts_with(kJournalFolder); });
  // Removes the original segments, which name several objects each.
  for (const auto& [name, bytes] : tree) {
    if (std::stoull(name.substr(kJournalFolder.size() + 1)) >= read->next_segment) continue;
    ASSERT_OK(target.backend->names().remove(name));
  }
}

TEST(GenerateResume, ObjectsOfManySegmentsAreReadInParallel) {
  make_unfinished("generate-resume-slow", 1);
  SlowReader::ReadCounts counts;
  Tier target = tier("generate-resume-slow");
  target.backend = std::make_unique<SlowBackend>(std::move(target.backend), counts);
  const auto resumed = make(target, resumed_generation(), 4, true);
  ASSERT_OK(resumed);
  EXPECT_EQ(resumed->samples_kept, kObjects);
  EXPECT_GE(counts.highest, 3);
}

// Counts the segments of the journal that are created.
class CountingBackend final : public BackendWrapper {
 public:
  CountingBackend(std::unique_ptr<Backend> inner, std::atomic<int>& segments)
      : BackendWrapper(std::move(inner)), segments_(segments) {}
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    if (name.starts_with(kJournalFolder)) ++segments_;
    return inner().create(name, bytes_hint);
  }

 private:
  std::atomic<int>& segments_;
};

TEST(GenerateResume, AllThreadsShareTheLastSegment) {
  // A thread writes a segment of its own if its last flush was a second ago. So a run of about a second
  // proves nothing, and the test tries again.
  for (int tries = 0; tries < 20; ++tries) {
    std::atomic<int> segments{0};
    const std::string name = "generate-resume-segments" + std::to_string(tries);
    Tier target = tier(name, ",latency=10ms");  // the latency gives each thread some of the work
    target.backend = std::make_unique<CountingBackend>(std::move(target.backend), segments);
    const auto began = std::chrono::steady_clock::now();
    ASSERT_OK(make(target, resumed_generation(), 8));
    if (std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(900)) continue;
    EXPECT_EQ(segments, 1);
    return;
  }
  GTEST_SKIP() << "this machine never made the set within a second";
}

TEST(GenerateResume, ObjectsThatAreNamedTwiceAreKeptOnce) {
  make_unfinished("generate-resume-twice", 3);
  Tier target = tier("generate-resume-twice");
  const auto resumed = make(target, resumed_generation(), 4, true);
  ASSERT_OK(resumed);
  EXPECT_EQ(resumed->samples_kept, kObjects);
  EXPECT_EQ(resumed->samples_made, 1U);
  Tier whole = tier("generate-resume-whole");
  ASSERT_OK(make(whole, resumed_generation()));
  expect_same(tree_of(target), tree_of(whole));
}

}  // namespace
}  // namespace penstock
