// The order of collective reads, in which all ranks of a job read each object together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "datagen/reading/sample_order.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

// One collective read, which all ranks of a job make together. The object is the same on every rank.
struct Round {
  uint32_t object = 0;
  std::optional<uint64_t> sample;  // the sample of this rank; absent: this rank makes an empty read
};

// The order of the rounds (collective reads) of a pass. The samples of each object are divided among the
// ranks as RankShare divides a corpus. So all ranks read about the same number of samples of an object, and
// each sample is read once in a pass. If shuffled, every pass has a different order of the objects, and of
// each rank's samples in an object. Only one thread may use it.
class CollectiveOrder {
 public:
  // `order` must be SampleOrder::sequential or SampleOrder::shuffled.
  CollectiveOrder(const SampleList& samples, SampleOrder order, uint64_t seed, RankShare share);

  uint64_t rounds() const { return rounds_per_pass_; }  // rounds of a pass, equal on every rank
  Round round(uint64_t pass, uint64_t position);

 private:
  struct SampleRun {  // some neighbouring samples of one object
    uint32_t object = 0;
    uint64_t first_sample = 0;
    uint64_t samples = 0;
  };
  struct RunPosition {  // the first round of a SampleRun in the pass
    uint64_t first_round = 0;
    uint64_t run = 0;
  };

  void begin_pass(uint64_t pass);
  const RunPosition& find(uint64_t position);

  const bool shuffled_;
  const uint64_t seed_;
  const RankShare share_;
  std::vector<SampleRun> runs_;
  uint64_t rounds_per_pass_ = 0;
  uint64_t pass_ = UINT64_MAX;
  std::vector<RunPosition> positions_;  // the first round of each SampleRun, in the order of the pass
  size_t current_run_ = 0;              // index into positions_ of the SampleRun of the last returned round
  uint64_t permuted_run_ = UINT64_MAX;  // the SampleRun to which permutation_ belongs
  Permutation permutation_{1, 0};
};

}  // namespace penstock
