// The ranks of a job that make one data set together: who makes what, and how rank 0 learns of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "datagen/generate/generate.hpp"
#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generation.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// A rank's own: a run of neighbours among the objects, equally long for all but for one object.
struct GenerateShare {
  std::uint64_t first_object = 0;
  std::uint64_t end_object = 0;
  std::uint64_t first_sample = 0;
  std::uint64_t end_sample = 0;
  std::uint64_t objects() const { return end_object - first_object; }
  std::uint64_t samples() const { return end_sample - first_sample; }
};
GenerateShare share_of(const Generation& generation, int rank, int ranks);

// What all ranks made: out.started and what was read of the journal stay as they are. Collective.
Result<void> sum_over_ranks(Communicator& ranks, const GeneratedCounts& mine, Generated& out);

// What is known of the objects that stand. Rank 0's go straight into its manifest; another rank's wait here
// until they are handed over.
class ObjectLedger {
 public:
  // `manifest` is borrowed, has the objects and room for the samples, and is used on rank 0 alone.
  ObjectLedger(const Generation& generation, Communicator& ranks, ManifestBuilder& manifest);

  // An object of the rank's share, which stands as it shall, with all its samples. Any thread, each another
  // object.
  void enter(std::uint64_t object, PublishedObject whole, std::span<const JournalSample> samples,
             std::span<const std::uint32_t> labels);

  // Collective: from here on rank 0's manifest has the objects of all.
  Result<void> hand_over();

 private:
  void set_object(std::uint64_t object, PublishedObject whole);

  const Generation& generation_;
  Communicator& ranks_;
  ManifestBuilder& manifest_;
  const GenerateShare share_;
  std::vector<PublishedObject> objects_;  // of the share, where they wait
  std::vector<SampleEntry> samples_;      // likewise
};

}  // namespace penstock
