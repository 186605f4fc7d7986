#include "datagen/reading/collective_order.hpp"

#include <algorithm>

namespace penstock {

CollectiveOrder::CollectiveOrder(const SampleList& samples, SampleOrder order, std::uint64_t seed,
                                 RankShare share)
    : shuffled_(order != SampleOrder::sequential), seed_(seed), share_(share) {
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    if (runs_.empty() || runs_.back().object != samples[i].object)
      runs_.push_back({.object = samples[i].object, .first = i, .samples = 0});
    ++runs_.back().samples;
  }
  for (const SampleRun& run : runs_) rounds_ += share_.longest(run.samples);
  begin_pass(0);
}

// The object depends only on the pass and the position, so all ranks read the same object in the same round.
// A rank with a different order would block the others in their collective read.
Round CollectiveOrder::round(std::uint64_t pass, std::uint64_t position) {
  begin_pass(pass);
  const RunPosition& at = find(position);
  const SampleRun& run = runs_[at.run];
  const std::uint64_t begin = share_.begin(run.samples, pass);
  const std::uint64_t mine = share_.end(run.samples, pass) - begin;
  const std::uint64_t round = position - at.first_round;
  if (round >= mine) return {.object = run.object, .sample = std::nullopt};
  if (!shuffled_) return {.object = run.object, .sample = run.first + begin + round};
  if (permuted_ != at.run) {
    const std::uint64_t number = (pass * runs_.size() + at.run) * share_.ranks + share_.part_index(pass);
    permutation_ = Permutation(mine, PassOrder::pass_seed(seed_, number));
    permuted_ = at.run;
  }
  return {.object = run.object, .sample = run.first + begin + permutation_.at(round)};
}

void CollectiveOrder::begin_pass(std::uint64_t pass) {
  if (pass == pass_) return;
  pass_ = pass;
  current_ = 0;
  permuted_ = UINT64_MAX;
  positions_.clear();
  const Permutation order(runs_.size(), RandomStream(seed_, "objects").bits(pass));
  std::uint64_t round = 0;
  for (std::uint64_t i = 0; i < runs_.size(); ++i) {
    const std::uint64_t run = shuffled_ ? order.at(i) : i;
    positions_.push_back({.first_round = round, .run = run});
    round += share_.longest(runs_[run].samples);
  }
}

const CollectiveOrder::RunPosition& CollectiveOrder::find(std::uint64_t position) {
  const auto holds = [&](std::size_t i) {
    return positions_[i].first_round <= position &&
           (i + 1 == positions_.size() || position < positions_[i + 1].first_round);
  };
  if (!holds(current_)) {
    const auto behind =
        std::upper_bound(positions_.begin(), positions_.end(), position,
                         [](std::uint64_t wanted, const RunPosition& at) { return wanted < at.first_round; });
    current_ = static_cast<std::size_t>(behind - positions_.begin()) - 1;
  }
  return positions_[current_];
}

}  // namespace penstock
