// Repairs a finished data set: makes objects that are missing or have a wrong size again, with the bytes that
// the manifest's checksums require. Only generate.cpp uses it.
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

// The objects that are missing or have a wrong size.
Result<std::vector<uint64_t>> wrong_objects(const Manifest& manifest, Tier& tier, unsigned threads);

// One rank's part of the repair. It makes no collective call.
class Repairer {
 public:
  Repairer(const Generation& generation, const Manifest& manifest, Backend& backend, TargetSync sync,
           unsigned threads, Communicator& ranks, Progress& progress);

  // The steps, in this order. Each rank passes the same list of wrong objects. On rank 0, begin() counts the
  // correct samples and the wrong objects. It fails with `corrupt` if this build makes other objects than the
  // manifest names.
  Result<void> begin(std::span<const uint64_t> wrong);
  // Makes this rank's part of the wrong objects again.
  Result<void> make_share(std::span<const uint64_t> wrong);
  GeneratedCounts counts() const;

  // Makes make_share() return soon. Any thread.
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
  // Makes the object again. Publishes it only if it matches the manifest.
  Result<void> make_again(Worker& worker, uint64_t object);
  // Compares an object with its entries in the manifest. If the manifest has no checksums of objects, the
  // bytes around samples are not compared.
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
  // No file records which objects were repaired, and a later check of the finished set compares sizes only.
  // So an object must get its name only after its bytes are durable.
  const Durability durability_;
  const std::vector<std::string> labels_;
  const std::vector<Companion> companions_;
  std::deque<Worker> workers_;
  GeneratedCounts own_counts_;
  std::atomic<bool> stopped_{false};  // set if another rank has failed or was asked to stop
};

}  // namespace penstock
