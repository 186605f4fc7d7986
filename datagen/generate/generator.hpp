// One rank's part in making a data set: its share of the objects, and on rank 0 also the manifest and the
// companions. It makes no collective call; generate.cpp, its only user, makes them between its steps.
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
  // Allocates the memory for the facts about the share. Throws std::exception if memory is exhausted.
  Generator(const Generation& generation, Tier& tier, TargetSync sync, unsigned threads, bool resume,
            Communicator& ranks, Progress& progress);

  // The steps, in this order.
  Result<void> name_objects();                    // only on rank 0
  Result<JournalRead> accept_existing_objects();  // only for --resume
  void start_journal(uint64_t next_segment);      // `next_segment` is the same on every rank
  Result<void> make_share();
  GeneratedCounts counts() const;
  ObjectResults& results() { return object_results_; }
  Result<void> publish_manifest();  // on rank 0, with the results of all ranks

  // Makes accept_existing_objects() and make_share() return soon. Any thread. Relaxed is enough: a thread
  // that sees it late makes one more object.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  // One bit per object. Any thread may set one. Relaxed order is enough: the bits only say that an object is
  // done, and pass no other data between threads.
  class DoneBits {
   public:
    explicit DoneBits(uint64_t count) : words_((count + 63) / 64) {}
    bool set(uint64_t i) {  // returns false if it was already set
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
  // Records an object of an earlier run as done, if all its bytes are still correct. Its checksum was
  // combined from the checksums of its samples while it was made, which costs nothing then. A resume reads
  // each such object once, from the device and not from the page cache.
  Result<void> accept_existing_object(Worker& worker, PublishedObject published,
                                      std::span<const JournalSample> samples);
  Result<bool> is_intact(Worker& worker, std::string_view name, PublishedObject published);
  // Records an object that is complete and correct. worker.labels contains the labels of its samples.
  void record_object(const Worker& worker, uint64_t object, PublishedObject published,
                     std::span<const JournalSample> samples);
  // Makes an object, and appends its rows for the journal to worker.unflushed_rows.
  Result<void> make_object(Worker& worker, uint64_t object);
  // Companions are small, so every --resume makes them again.
  Result<void> make_companions();
  // Flushes the worker's rows to the journal if the interval since the last flush has passed. The interval
  // limits the work that a kill loses: one second of each worker's time at first, later one twentieth of the
  // run so far, at most 30 seconds. A flush is also due when the worker has kMostUnflushedSamples samples in
  // memory. `made`: approximate number of finished objects of the share.
  Result<void> flush_if_due(Worker& worker, uint64_t made);
  // Whether the target has more free inodes than the rest of the data set needs.
  bool has_spare_inodes(uint64_t made) const;
  Result<void> flush(Worker& worker);
  // Flushes the remaining rows of all workers in few segments, because on a tier with latency each segment
  // takes time.
  Result<void> flush_all();

  const Generation& generation_;
  Backend& backend_;
  Communicator& ranks_;
  const GenerateShare share_;
  const unsigned threads_;
  const bool resume_;
  const TargetSync sync_;  // every rank has one, so that each learns of failed writes of its own host
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
