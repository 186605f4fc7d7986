// Makes one rank's share of the objects of a data set. On rank 0 it also makes the manifest and the
// companions (objects without samples, such as statistics of the data set). It never waits for other ranks:
// generate.cpp, its only user, makes the collective calls between its steps.
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
  // Allocates memory for the records about each object and sample of the share. Throws std::exception if
  // memory is exhausted.
  Generator(const Generation& generation, Tier& tier, TargetSync sync, unsigned threads, bool resume,
            Communicator& ranks, Progress& progress);

  // generate.cpp calls these steps in this order.
  Result<void> name_objects();                    // only on rank 0
  Result<JournalRead> accept_existing_objects();  // only for --resume
  void start_journal(uint64_t next_segment);      // `next_segment` is the same on every rank
  Result<void> make_share();
  GeneratedCounts counts() const;
  ObjectResults& results() { return object_results_; }
  Result<void> publish_manifest();  // only on rank 0, when it has the results of all ranks

  // Makes accept_existing_objects() and make_share() return soon. Any thread may call it. Relaxed order is
  // enough: a thread that sees the change late only makes one more object.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  // A set of bits, one per object, which any thread may set. Relaxed order is enough: a bit only says that an
  // object is done, and a thread that sees it reads no other data because of it.
  class DoneBits {
   public:
    explicit DoneBits(uint64_t count) : words_((count + 63) / 64) {}
    bool set(uint64_t i) {  // returns false if the bit was set before
      const uint64_t bit = uint64_t{1} << (i % 64);
      return (words_[i / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
    }
    bool is_set(uint64_t i) const {
      return ((words_[i / 64].load(std::memory_order_relaxed) >> (i % 64)) & 1) != 0;
    }

   private:
    std::vector<std::atomic<uint64_t>> words_;
  };

  struct alignas(128) Worker {
    explicit Worker(const MakerSetup& setup) : maker(setup) {}

    ObjectMaker maker;
    std::vector<uint32_t> labels;  // labels of the current object's samples
    JournalSegment unflushed_rows;
    Clock::time_point last_flush;
    GeneratedCounts counts;
    Buffer buffer;
  };

  ManifestFacts facts() const;
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Records an object of an earlier run as done, if all its bytes are still correct. For this, a resume reads
  // the whole object once, and compares its checksum with the journal's. A file is dropped from the page
  // cache first, so that its bytes come from the device.
  Result<void> accept_existing_object(Worker& worker, PublishedObject published,
                                      std::span<const JournalSample> samples);
  Result<bool> is_intact(Worker& worker, std::string_view name, PublishedObject published);
  // Records an object that is complete and correct. worker.labels has the labels of its samples.
  void record_object(const Worker& worker, uint64_t object, PublishedObject published,
                     std::span<const JournalSample> samples);
  // Makes an object, and appends its rows for the journal to worker.unflushed_rows.
  Result<void> make_object(Worker& worker, uint64_t object);
  // Makes the companions (recipe.hpp). They are small, so every --resume makes them again.
  Result<void> make_companions();
  // Writes the worker's rows to the journal if the interval since the worker's last flush has passed, or if
  // the worker has rows of kMostUnflushedSamples samples in memory. The interval limits the work that a kill
  // loses. It is one twentieth of the time of the run so far, but at least one second and at most 30.
  // `objects_made` is roughly the number of finished objects of the share.
  Result<void> flush_if_due(Worker& worker, uint64_t objects_made);
  // Whether the target has more free inodes than the rest of the data set needs. `objects_made` is roughly
  // the number of finished objects of this rank's share; objects of other ranks count as missing.
  bool has_spare_inodes(uint64_t objects_made) const;
  Result<void> flush(Worker& worker);
  // Writes the remaining rows of all workers to the journal. Joins them into few segments, because each
  // segment takes time on a tier with latency.
  Result<void> flush_all();

  const Generation& generation_;
  Backend& backend_;
  Communicator& ranks_;
  const GenerateShare share_;
  const unsigned threads_;
  const bool resume_;
  // every rank syncs, because a rank only learns of failed writes of its own host
  const TargetSync sync_;
  Progress& progress_;
  const std::vector<std::string> labels_;
  const std::vector<Companion> companions_;
  ManifestBuilder builder_;  // used only on rank 0
  ObjectResults object_results_;
  DoneBits done_objects_;  // one bit per object of the share
  std::deque<Worker> workers_;
  std::optional<JournalWriter> journal_;
  std::atomic<bool> stopped_{false};  // set if another rank has failed or was asked to stop
  Clock::time_point start_time_;
  double making_seconds_ = 0;
};

}  // namespace penstock
