// Tests the loader on back ends that hold objects in memory: stored samples are used without a copy.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>

#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/in_place.hpp"
#include "miniapps/pipeline/loader_testing.hpp"

namespace penstock {
namespace {

void put(Backend& backend, std::string_view name, std::span<const std::byte> bytes) {
  const auto writer = backend.create(name, bytes.size());
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(bytes));
  ASSERT_OK((*writer)->publish(Durability::visible));
}

class InPlace : public testing::TestWithParam<const char*> {
 protected:
  static constexpr uint64_t kSamples = 40;

  void SetUp() override {
    const std::string tier = GetParam();
    const size_t options = std::min(tier.find(','), tier.size());
    const std::string path = tier == "mem" ? "in-place-test" : scratch_.path().string();
    backend_ = open_tier("t=" + tier.substr(0, options) + ":" + path + tier.substr(options), kNoNamedTiers)
                   .value()
                   .backend;
  }

  static std::string name(uint64_t i) { return "s" + std::to_string(i); }
  static size_t length(uint64_t i) { return 3000 + size_t(i) * 501; }

  // Makes objects with `an_object` samples each after a header.
  void make(uint64_t an_object, size_t header = 0) {
    ManifestBuilder builder(ManifestFacts{
        .recipe = "test", .format = "files", .codec = "raw", .settings = {}, .label_names = {}});
    uint64_t sample = 0;
    for (uint32_t object = 0; sample < kSamples; ++object) {
      size_t bytes = header;
      for (uint64_t i = 0; i < an_object; ++i) bytes += length(sample + i);
      const std::vector<std::byte> content = pattern(bytes, 1 + object);
      put(*backend_, name(object), content);
      builder.add_object(name(object), bytes);
      size_t at = header;
      for (uint64_t i = 0; i < an_object; ++i, ++sample) {
        builder.add_sample({.offset = at,
                            .length = length(sample),
                            .object = object,
                            .crc32c = crc32c(std::span(content).subspan(at, length(sample)))});
        at += length(sample);
      }
    }
    manifest_.emplace(Manifest::from_bytes(builder.finish().value()).value());
  }

  std::unique_ptr<BatchLoader> start(PlanLimits limits, BadSample bad = BadSample::fail, size_t batch = 8) {
    pool_.emplace(BatchPool::make({.samples = batch, .in_place = true}, 2).value());
    return BatchLoader::make({&*manifest_, backend_.get(), &as_stored_, &*pool_,
                              Sampler(kSamples, Shuffle::global, 5), limits, 3, bad})
        .value();
  }

  // Counts the batches up to the end, and checks that each slot holds the sample of its index.
  uint64_t batches_of(BatchLoader& loader) const {
    uint64_t batches = 0;
    for (; true; ++batches) {
      const Result<const Batch*> batch = loader.next();
      EXPECT_OK(batch);
      if (!batch.ok() || *batch == nullptr) return batches;
      for (size_t i = 0; i < (*batch)->samples(); ++i) {
        const SampleEntry& entry = manifest_->sample((*batch)->index[i]);
        const std::span<const std::byte> got = (*batch)->slot(i);
        EXPECT_EQ(got.size(), entry.length);
        EXPECT_EQ(crc32c(got), entry.crc32c);
        EXPECT_EQ((*batch)->stored[i].memory.capacity(), 0U) << "it was copied";
      }
    }
  }

  ScratchFolder scratch_;
  std::unique_ptr<Backend> backend_;
  std::optional<Manifest> manifest_;
  const Transform as_stored_ = leave_as_stored();
  std::optional<BatchPool> pool_;
};

TEST_P(InPlace, WholeObjectsAreNotCopied) {
  make(1);
  const uint64_t before = backend_->moved_bytes().read;
  auto loader = start({.epochs = 3});
  EXPECT_EQ(batches_of(*loader), 3 * kSamples / 8);
  EXPECT_EQ(backend_->moved_bytes().read - before, 3 * manifest_->payload_bytes());
  loader.reset();
  for (size_t i = 0; i < pool_->size(); ++i)
    for (const StoredSample& sample : (*pool_)[i].stored) {
      EXPECT_EQ(sample.reader, nullptr) << "it outlives the loader";
      EXPECT_TRUE(sample.bytes.empty());
    }
}

TEST_P(InPlace, SamplesOfAnObjectAreAdjacent) {
  make(kSamples, 100);
  const auto loader = start({.batches = 5});
  std::map<uint64_t, const std::byte*> places;
  while (const Batch* const batch = loader->next().value())
    for (size_t i = 0; i < batch->samples(); ++i) places[batch->index[i]] = batch->slot(i).data();
  ASSERT_EQ(places.size(), kSamples);
  for (uint64_t i = 1; i < kSamples; ++i) EXPECT_EQ(size_t(places[i] - places[i - 1]), length(i - 1));
}

TEST_P(InPlace, ObjectsStayOpenWhileTheirSamplesAreUsed) {
  EXPECT_TRUE(in_child_process([&] {
    make(1, 100);
    const rlimit few{64, 64};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    ASSERT_LT(max_open_objects(manifest_->objects()), manifest_->objects());
    ASSERT_EQ(why_copied(*manifest_, *backend_, 1, 3 * 5), "");
    const auto loader = start({.epochs = 2}, BadSample::fail, 5);
    EXPECT_EQ(batches_of(*loader), 2 * kSamples / 5);
    make(2);
    EXPECT_NE(why_copied(*manifest_, *backend_, 1, 3 * 5), "")
        << "each would be mapped for every sample of it";
  }));
}

TEST_P(InPlace, SamplesOfATruncatedMappingAreRead) {
  if (std::string(GetParam()) == "mem") GTEST_SKIP() << "its objects do not change";
  make(kSamples, 100);
  HeldObjects objects(*backend_, objects_to_hold(*manifest_, *backend_));
  const auto reader = SampleLoader::make(*manifest_, *backend_, objects, 1, true).value();
  const auto take = [&](uint64_t index) -> Result<std::span<const std::byte>> {
    Ticket ticket;
    ticket.index = index;
    reader->request(ticket);
    const SampleLoader::Slot& sample = reader->next();
    PENSTOCK_TRY(sample.outcome);
    return sample.stored.bytes;
  };
  const auto whole = [&](uint64_t index) {
    const auto bytes = take(index);
    return bytes.ok() && crc32c(*bytes) == manifest_->sample(index).crc32c;
  };
  EXPECT_TRUE(whole(3) && whole(35));
  const std::string file = (scratch_.path() / name(0)).string();
  ASSERT_EQ(::truncate(file.c_str(), off_t(manifest_->sample(30).offset)), 0);
  EXPECT_ERRC(Errc::truncated, take(35)) << "from here on the mapping is marked";
  EXPECT_TRUE(whole(3) && whole(29)) << "which is no fault of these";
  StoredSample given;
  reader->move_to(given);
  EXPECT_GT(given.memory.capacity(), 0U) << "they are read";
  EXPECT_EQ(crc32c(given.bytes), manifest_->sample(29).crc32c);
  EXPECT_ERRC(Errc::truncated, take(30));
}

TEST_P(InPlace, ABadSampleFailsOrIsSkippedByName) {
  make(1);
  put(*backend_, name(7), pattern(10));
  ASSERT_OK(backend_->names().remove(name(11)));
  const auto skipping = start({.epochs = 1}, BadSample::skip);
  EXPECT_EQ(batches_of(*skipping), (kSamples - 2) / 8);
  EXPECT_EQ(skipping->losses().skipped, 2U);
  std::map<std::string, std::string> why;
  for (const SkippedObject& object : skipping->losses().named) why[object.name] = object.why;
  EXPECT_NE(why["s7"].find("ends"), std::string::npos) << why["s7"];
  EXPECT_NE(why["s11"].find("s11"), std::string::npos) << why["s11"];
  const auto failing = start({.epochs = 1});
  Result<const Batch*> batch = failing->next();
  while (batch.ok() && *batch != nullptr) batch = failing->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_TRUE(batch.error().code == Errc::truncated || batch.error().code == Errc::not_found);
}

INSTANTIATE_TEST_SUITE_P(BackEnds, InPlace,
                         testing::Values("mem", "mmap", "mmap,keep=1", "mmap,touch=page",
                                         "mmap,keep=1,touch=page"),
                         [](const auto& tier) {
                           std::string name;
                           for (const char c : std::string(tier.param)) name += std::isalnum(c) ? c : '_';
                           return name;
                         });

TEST(WhyCopied, NamesTheReasonForACopy) {
  ScratchFolder scratch;
  ScriptedBackend scripted;
  const Manifest manifest = scripted_files(scripted, 1000);
  const auto open = [&](const std::string& kind) {
    return open_tier("t=" + kind + ":" + scratch.path().string(), kNoNamedTiers).value().backend;
  };
  const auto mapped = open("mmap");
  EXPECT_NE(why_copied(manifest, *open("posix"), 1, 8), "");
  EXPECT_EQ(why_copied(manifest, *mapped, 1, 8), "");
  const auto slowed =
      open_tier("t=mmap:" + scratch.path().string() + ",latency=1ms", kNoNamedTiers).value().backend;
  EXPECT_NE(why_copied(manifest, *slowed, 1, 8), "") << "opening and looking would be two operations";
  EXPECT_NE(why_copied(manifest, *mapped, 2, 8), "") << "reads come in any order";
  EXPECT_NE(why_copied(manifest, *mapped, 1, kMostMappings + 1), "");
  EXPECT_TRUE(in_child_process([&] {
    ASSERT_TRUE(leave_descriptors(400));
    EXPECT_EQ(why_copied(manifest, *mapped, 1, 100), "");
    EXPECT_NE(why_copied(manifest, *mapped, 1, 401), "");
  }));
}

}  // namespace
}  // namespace penstock
