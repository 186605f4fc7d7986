// Which samples the ranks of a job read together, when they read each object together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "datagen/reading/sample_order.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

// One collective read of all ranks of a job. The object is the same on every rank.
struct Round {
  std::uint32_t object = 0;
  std::optional<std::uint64_t> sample;  // of this rank; none: it makes an empty read
};

// A pass of rounds. The samples of each object are divided among the ranks as RankShare divides a corpus. So
// all ranks have about the same number of rounds in it, and each sample is read once a pass. Shuffled: every
// pass has another order of the objects, and of each rank's samples of an object. One thread.
class CollectiveOrder {
 public:
  // SampleOrder::sequential or ::shuffled.
  CollectiveOrder(const SampleList& samples, SampleOrder order, std::uint64_t seed, RankShare share);

  std::uint64_t rounds() const { return rounds_; }  // of a pass, the same on every rank
  Round round(std::uint64_t pass, std::uint64_t position);

 private:
  struct Stretch {  // neighbouring samples of one object
    std::uint32_t object = 0;
    std::uint64_t first = 0;
    std::uint64_t samples = 0;
  };
  struct Place {  // of a stretch in the pass
    std::uint64_t first_round = 0;
    std::uint64_t stretch = 0;
  };

  void begin_pass(std::uint64_t pass);
  const Place& find(std::uint64_t position);

  const bool shuffled_;
  const std::uint64_t seed_;
  const RankShare share_;
  std::vector<Stretch> stretches_;
  std::uint64_t rounds_ = 0;
  std::uint64_t pass_ = UINT64_MAX;
  std::vector<Place> places_;            // in the order of the pass
  std::size_t place_ = 0;                // where the last round was
  std::uint64_t permuted_ = UINT64_MAX;  // the stretch that the permutation is of
  Permutation permutation_{1, 0};
};

}  // namespace penstock
