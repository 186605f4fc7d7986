#include "miniapps/pipeline/sampler.hpp"

#include <string>

#include "io_backends/base/options.hpp"

namespace penstock {

Result<Shuffle> parse_shuffle(std::string_view name) {
  if (name == "none") return Shuffle::none;
  if (name == "local") return Shuffle::local;
  if (name == "global") return Shuffle::global;
  return unknown_name("shuffle", name, {"none", "local", "global"});
}

Sampler::Sampler(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed, int rank, int ranks)
    : samples_(samples),
      per_epoch_(samples / static_cast<std::uint64_t>(ranks)),
      shuffle_(shuffle),
      seed_(seed),
      rank_(static_cast<std::uint64_t>(rank)),
      ranks_(static_cast<std::uint64_t>(ranks)) {}

EpochOrder Sampler::epoch(std::uint64_t number) const {
  const RandomStream seeds(seed_, "train.order");
  EpochOrder order;
  order.size_ = per_epoch_;
  switch (shuffle_) {
    case Shuffle::none:
      order.first_ = rank_;
      order.stride_ = ranks_;
      break;
    case Shuffle::local:
      order.offset_ = rank_ * per_epoch_;
      if (per_epoch_ > 0) order.permutation_.emplace(per_epoch_, seeds.substream(rank_ + 1).bits(number));
      break;
    case Shuffle::global:
      order.first_ = rank_;
      order.stride_ = ranks_;
      if (samples_ > 0) order.permutation_.emplace(samples_, seeds.bits(number));
      break;
  }
  return order;
}

}  // namespace penstock
