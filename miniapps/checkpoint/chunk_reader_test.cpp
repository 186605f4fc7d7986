// Tests reading ahead: chunks must come in order and verified, whatever else is in flight.
#include "miniapps/checkpoint/chunk_reader.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/store_testing.hpp"

namespace penstock {
namespace {

class ReadingAhead : public testing::TestWithParam<const char*> {
 protected:
  static constexpr uint64_t kChunks = 11;  // more than twice the chunks in flight

  // Reads the file; `taken` gets the chunks one after another. The consumer fails at the offset `ends_at`.
  Result<void> read(const CheckpointStore& store, const CheckpointManifest& manifest,
                    std::vector<std::byte>& taken, uint64_t ends_at = UINT64_MAX) {
    return store.read_file("run", manifest.id, manifest.files[0],
                           [&](uint64_t offset, std::span<const std::byte> bytes) -> Result<void> {
                             EXPECT_EQ(offset, taken.size()) << "in order";
                             if (offset >= ends_at) return make_error(Errc::no_space, "no more");
                             taken.insert(taken.end(), bytes.begin(), bytes.end());
                             return success();
                           });
  }

  TestStore store_{StoreRole::slow, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(On, ReadingAhead, testing::Values("mem", "posix"),
                         [](const auto& on) { return std::string(on.param); });

TEST_P(ReadingAhead, GivesAllBytesInOrder) {
  uint64_t step = 0;
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, kCheckpointChunk, kCheckpointChunk + 1,
                               4 * kCheckpointChunk, kChunks * kCheckpointChunk - 5}) {
    const std::vector<std::byte> content = pattern(bytes, unsigned(bytes));
    const CheckpointManifest manifest = save(*store_, "run", {++step, 0}, {{"a", content}});
    std::vector<std::byte> taken;
    EXPECT_OK(read(*store_, manifest, taken));
    EXPECT_EQ(taken, content) << bytes;
  }
}

TEST_P(ReadingAhead, EndsWhereAChunkIsWrongOrTheConsumerStops) {
  const CheckpointManifest manifest =
      save(*store_, "run", {1, 0}, {{"a", pattern(kChunks * kCheckpointChunk)}});
  std::vector<std::byte> taken;
  EXPECT_ERRC(Errc::no_space, read(*store_, manifest, taken, 3 * kCheckpointChunk), "no more");
  EXPECT_EQ(taken.size(), 3 * kCheckpointChunk);
  damage(store_.backend(), manifest, "a", 7 * kCheckpointChunk + 9);
  taken.clear();
  EXPECT_ERRC(Errc::corrupt, read(*store_, manifest, taken), "from byte 29360128 on");
  EXPECT_EQ(taken.size(), 7 * kCheckpointChunk) << "nothing unproven is taken";
}

TEST_P(ReadingAhead, EndsAfterAFailedReadOrASignal) {
  const CheckpointManifest manifest =
      save(*store_, "run", {1, 0}, {{"a", pattern(kChunks * kCheckpointChunk)}});
  for (const std::string fault : {"read/a:eio@#6", "read/a:flip@#6", "read/a:hang=5ms@1.0"}) {
    SCOPED_TRACE(fault);
    const Tier tier = store_.place().tier("slow", "fail=" + fault);
    const auto store = CheckpointStore::open(tier).value();
    std::vector<std::byte> taken;
    const Result<void> done = read(*store, manifest, taken);
    EXPECT_EQ(done.ok(), fault.find("hang") != std::string::npos);
    EXPECT_EQ(done.ok(), taken.size() == kChunks * kCheckpointChunk);
  }
  simulate_interrupt(SIGTERM);
  std::vector<std::byte> taken;
  EXPECT_ERRC(Errc::interrupted, read(*store_, manifest, taken));
  EXPECT_TRUE(taken.empty());
  simulate_interrupt(0);
}

}  // namespace
}  // namespace penstock
