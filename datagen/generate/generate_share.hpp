// Splits the making of one data set over the ranks of a job, and collects the results on rank 0.
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

// The range of consecutive objects that one rank makes. The numbers of objects of any two ranks differ by at
// most one.
struct GenerateShare {
  uint64_t first_object = 0;
  uint64_t end_object = 0;
  uint64_t first_sample = 0;
  uint64_t end_sample = 0;
  uint64_t objects() const { return end_object - first_object; }
  uint64_t samples() const { return end_sample - first_sample; }
};
GenerateShare share_of(const Generation& generation, int rank, int ranks);

// Adds up the counts of all ranks, and sets `out` to the sums; out.seconds is the time of the slowest rank.
// On rank 0 of several, adds an entry to out.rank_figures for each rank. Does not change the other members of
// `out`. All ranks must call it together.
Result<void> sum_over_ranks(Communicator& ranks, const GeneratedCounts& mine, GenerateResult& out);

// Collects the size, checksum and samples of finished objects for the manifest. Rank 0 writes them directly
// into the ManifestBuilder. Other ranks keep them until send_to_root() sends them to rank 0.
class ObjectResults {
 public:
  // Only rank 0 uses `manifest`, which must outlive this object. Before rank 0 calls record(), `manifest`
  // must contain all objects and an entry for each sample.
  ObjectResults(const Generation& generation, Communicator& ranks, ManifestBuilder& manifest);

  // Records an object of this rank's share that is complete and correct, with all its samples. Any thread may
  // call it, but only once for each object.
  void record(uint64_t object, PublishedObject published, std::span<const JournalSample> samples,
              std::span<const uint32_t> labels);

  // Sends the objects of all ranks to rank 0's manifest. All ranks must call it together.
  Result<void> send_to_root();

 private:
  void set_object(uint64_t object, PublishedObject published);

  const Generation& generation_;
  Communicator& ranks_;
  ManifestBuilder& manifest_;
  const GenerateShare share_;
  std::vector<PublishedObject> objects_;  // on ranks other than 0: the objects of the share
  std::vector<SampleEntry> samples_;      // the samples of these objects
};

}  // namespace penstock
