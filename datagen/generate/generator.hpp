// One rank's part in making a data set: its share of the objects, and on rank 0 what belongs to all of them.
// Only generate.cpp uses it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/generate/generate.hpp"
#include "datagen/generate/generate_share.hpp"
#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generation.hpp"
#include "datagen/generate/object_maker.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/target/target_sync.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

class Generator {
 public:
  // Takes the memory for what is known of the share, which may not be there: std::exception.
  Generator(const Generation& generation, Tier& tier, TargetSync sync, unsigned threads, bool resume,
            Communicator& ranks, Progress& progress);

  // Collective.
  Result<void> run(Generated& out);

 private:
  using Clock = std::chrono::steady_clock;

  // One bit an object, set by any thread.
  class DoneBits {
   public:
    explicit DoneBits(std::uint64_t count) : words_((count + 63) / 64) {}
    bool set(std::uint64_t i) {  // false: it was set already
      const std::uint64_t bit = std::uint64_t{1} << (i % 64);
      return (words_[i / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
    }
    bool get(std::uint64_t i) const {
      return ((words_[i / 64].load(std::memory_order_relaxed) >> (i % 64)) & 1) != 0;
    }

   private:
    std::vector<std::atomic<std::uint64_t>> words_;
  };

  struct alignas(128) Worker {
    explicit Worker(const Making& making) : maker(making) {}

    ObjectMaker maker;
    std::vector<std::uint32_t> labels;  // of the samples of the object at hand
    JournalSegment unflushed;
    Clock::time_point last_flush;
    GeneratedCounts made;
    Buffer buffer;
  };

  ManifestFacts facts() const;
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  Result<void> name_objects();
  Result<JournalRead> keep_what_is_right();
  // Takes an object of the share over where all of its bytes are those that were written. Its checksum was
  // combined from its samples' while it was made, so this costs the making nothing, and a resume one pass
  // over what it keeps, as the device has it.
  Result<void> keep(Worker& worker, PublishedObject whole, std::span<const JournalSample> samples);
  Result<bool> is_right(Worker& worker, std::string_view name, PublishedObject whole);
  // An object that stands as it shall; worker.labels holds its samples'.
  void enter(const Worker& worker, std::uint64_t object, PublishedObject whole,
             std::span<const JournalSample> samples);
  Result<void> make_share();
  // Its rows for the journal are worker.unflushed's last.
  Result<void> make(Worker& worker, std::uint64_t object);
  // Small: made again by every --resume.
  Result<void> make_companions();
  // What a kill loses is made again: at most a second of each worker's time, later a twentieth of all of it,
  // and never more samples than a journal may hold in memory. `made`: about how many objects of the share
  // are.
  Result<void> flush_now_and_then(Worker& worker, std::uint64_t made);
  // Whether the target has inodes beyond those that the data set itself is still to have.
  bool spares_inodes(std::uint64_t made) const;
  Result<void> flush(Worker& worker);
  // What all workers have left, in few segments: on a tier with latency each takes its time.
  Result<void> flush_all();
  Result<void> finish();

  const Generation& generation_;
  Backend& backend_;
  Communicator& ranks_;
  const GenerateShare share_;
  const unsigned threads_;
  const bool resume_;
  const TargetSync sync_;  // of every rank: each hears of what its own host could not write
  Progress& progress_;
  const std::vector<std::string> labels_;
  const std::vector<Companion> companions_;
  ManifestBuilder builder_;  // of rank 0
  ObjectLedger ledger_;
  DoneBits done_;  // of the share
  std::deque<Worker> workers_;
  std::optional<JournalWriter> journal_;
  std::atomic<bool> stopped_{false};  // another rank cannot go on
  Clock::time_point start_;
  double seconds_ = 0;
};

}  // namespace penstock
