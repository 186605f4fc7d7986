#include "datagen/reading/collective_order.hpp"

#include <algorithm>

namespace penstock {

CollectiveOrder::CollectiveOrder(const SampleList& samples, SampleOrder order, std::uint64_t seed,
                                 RankShare share)
    : shuffled_(order != SampleOrder::sequential), seed_(seed), share_(share) {
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    if (stretches_.empty() || stretches_.back().object != samples[i].object)
      stretches_.push_back({.object = samples[i].object, .first = i, .samples = 0});
    ++stretches_.back().samples;
  }
  for (const Stretch& stretch : stretches_) rounds_ += share_.longest(stretch.samples);
  begin_pass(0);
}

// The object depends only on the pass and the position, so all ranks read the same object in the same round.
// A rank with a different order would block the others in their collective read.
Round CollectiveOrder::round(std::uint64_t pass, std::uint64_t position) {
  begin_pass(pass);
  const Place& place = find(position);
  const Stretch& stretch = stretches_[place.stretch];
  const std::uint64_t begin = share_.begin(stretch.samples, pass);
  const std::uint64_t mine = share_.end(stretch.samples, pass) - begin;
  const std::uint64_t round = position - place.first_round;
  if (round >= mine) return {.object = stretch.object, .sample = std::nullopt};
  if (!shuffled_) return {.object = stretch.object, .sample = stretch.first + begin + round};
  if (permuted_ != place.stretch) {
    const std::uint64_t number = (pass * stretches_.size() + place.stretch) * share_.ranks + share_.run(pass);
    permutation_ = Permutation(mine, PassOrder::pass_seed(seed_, number));
    permuted_ = place.stretch;
  }
  return {.object = stretch.object, .sample = stretch.first + begin + permutation_.at(round)};
}

void CollectiveOrder::begin_pass(std::uint64_t pass) {
  if (pass == pass_) return;
  pass_ = pass;
  place_ = 0;
  permuted_ = UINT64_MAX;
  places_.clear();
  const Permutation order(stretches_.size(), RandomStream(seed_, "objects").bits(pass));
  std::uint64_t round = 0;
  for (std::uint64_t i = 0; i < stretches_.size(); ++i) {
    const std::uint64_t stretch = shuffled_ ? order.at(i) : i;
    places_.push_back({.first_round = round, .stretch = stretch});
    round += share_.longest(stretches_[stretch].samples);
  }
}

const CollectiveOrder::Place& CollectiveOrder::find(std::uint64_t position) {
  const auto holds = [&](std::size_t i) {
    return places_[i].first_round <= position &&
           (i + 1 == places_.size() || position < places_[i + 1].first_round);
  };
  if (!holds(place_)) {
    const auto behind =
        std::upper_bound(places_.begin(), places_.end(), position,
                         [](std::uint64_t wanted, const Place& place) { return wanted < place.first_round; });
    place_ = static_cast<std::size_t>(behind - places_.begin()) - 1;
  }
  return places_[place_];
}

}  // namespace penstock
