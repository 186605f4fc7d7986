// Repairs a finished data set: makes objects again that are missing or have a wrong size. They must get the
// bytes that the manifest's checksums require. Only generate.cpp uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "datagen/generate/generate.hpp"
#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generation.hpp"
#include "datagen/generate/object_maker.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/target/target_sync.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// The numbers of the objects that are missing or have a wrong size.
Result<std::vector<uint64_t>> wrong_objects(const Manifest& manifest, Tier& tier, unsigned threads);

// One rank's part of the repair. It never waits for other ranks: it makes no collective calls.
class Repairer {
 public:
  Repairer(const Generation& generation, const Manifest& manifest, Backend& backend, TargetSync sync,
           unsigned threads, Communicator& ranks, Progress& progress);

  // The two steps of the repair: first begin(), then make_share(). All ranks pass the same list of wrong
  // objects to both.
  // In begin(), rank 0 adds the correct samples and the wrong objects of the whole data set to its counts().
  // begin() fails with `corrupt` if this build would make another number of objects than the manifest has.
  Result<void> begin(std::span<const uint64_t> wrong);
  // Makes this rank's share of the wrong objects again.
  Result<void> make_share(std::span<const uint64_t> wrong);
  GeneratedCounts counts() const;

  // Makes make_share() return soon. Any thread may call it.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

 private:
  struct alignas(128) Worker {
    explicit Worker(const MakerSetup& setup) : maker(setup) {}

    ObjectMaker maker;
    std::vector<JournalSample> rows;  // samples of the current object
    std::vector<uint32_t> labels;
    GeneratedCounts counts;
  };

  uint64_t samples_kept(std::span<const uint64_t> wrong) const;
  // Makes the object again. Publishes it only if it is as the manifest describes it.
  Result<void> make_again(Worker& worker, uint64_t object);
  // Whether an object is as the manifest describes it. If the manifest has no checksums of objects, only the
  // object's size and its samples are compared, not the bytes around the samples.
  bool matches_manifest(uint64_t object, const PublishedObject& written, std::span<const JournalSample> rows,
                        std::span<const uint32_t> labels) const;
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  const Generation& generation_;
  const Manifest& manifest_;
  Backend& backend_;
  const unsigned threads_;
  Communicator& ranks_;
  Progress& progress_;
  const TargetSync sync_;
  // At least Durability::file: an object may get its name only after its bytes are durable. Otherwise a crash
  // could leave an object of the right size with wrong bytes. A later check would not find it, because it
  // compares only sizes, and no file records which objects were repaired.
  const Durability durability_;
  const std::vector<std::string> labels_;
  const std::vector<Companion> companions_;
  std::deque<Worker> workers_;
  GeneratedCounts own_counts_;
  std::atomic<bool> stopped_{false};  // set if another rank has failed or was asked to stop
};

}  // namespace penstock
