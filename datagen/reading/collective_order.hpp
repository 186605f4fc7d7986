// What the ranks of a job read together: a pass in rounds, each a collective read of one object.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "datagen/reading/sample_source.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

// The same object on every rank.
struct Round {
  std::uint32_t object = 0;
  std::optional<std::uint64_t> sample;  // this rank's; none: it takes part with an empty read
};

// The samples of every object are shared among the ranks as RankShare shares a corpus, so that all have about
// as many rounds to do in it, and each sample is read once a pass. Shuffled: the objects in another order
// every pass, and each rank's samples of an object, too. One thread.
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
