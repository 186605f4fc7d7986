#include "datagen/reading/collective_order.hpp"

#include <algorithm>

namespace penstock {

CollectiveOrder::CollectiveOrder(const SampleList& samples, SampleOrder order, uint64_t seed, RankShare share)
    : shuffled_(order != SampleOrder::sequential), seed_(seed), share_(share) {
  for (uint64_t i = 0; i < samples.size(); ++i) {
    if (runs_.empty() || runs_.back().object != samples[i].object)
      runs_.push_back({.object = samples[i].object, .first_sample = i, .samples = 0});
    ++runs_.back().samples;
  }
  for (const SampleRun& run : runs_) rounds_per_pass_ += share_.largest_part(run.samples);
  begin_pass(0);
}

// Returns the round at `position` of the pass. Its object depends only on the pass and the position, so all
// ranks read the same object in the same round. A rank that reads another object would block all ranks for
// ever, in the collective read.
Round CollectiveOrder::round(uint64_t pass, uint64_t position) {
  begin_pass(pass);
  const RunPosition& run_position = find(position);
  const SampleRun& run = runs_[run_position.run];
  const uint64_t begin = share_.begin(run.samples, pass);
  const uint64_t own_rounds = share_.end(run.samples, pass) - begin;
  const uint64_t round = position - run_position.first_round;
  if (round >= own_rounds) return {.object = run.object, .sample = std::nullopt};
  if (!shuffled_) return {.object = run.object, .sample = run.first_sample + begin + round};
  if (permuted_run_ != run_position.run) {
    const uint64_t seed_key =
        (pass * runs_.size() + run_position.run) * share_.ranks + share_.part_index(pass);
    permutation_ = Permutation(own_rounds, PassOrder::pass_seed(seed_, seed_key));
    permuted_run_ = run_position.run;
  }
  return {.object = run.object, .sample = run.first_sample + begin + permutation_.at(round)};
}

void CollectiveOrder::begin_pass(uint64_t pass) {
  if (pass == pass_) return;
  pass_ = pass;
  current_run_ = 0;
  permuted_run_ = UINT64_MAX;
  positions_.clear();
  const Permutation order(runs_.size(), RandomStream(seed_, "objects").bits(pass));
  uint64_t round = 0;
  for (uint64_t i = 0; i < runs_.size(); ++i) {
    const uint64_t run = shuffled_ ? order.at(i) : i;
    positions_.push_back({.first_round = round, .run = run});
    round += share_.largest_part(runs_[run].samples);
  }
}

const CollectiveOrder::RunPosition& CollectiveOrder::find(uint64_t position) {
  const auto contains = [&](size_t i) {
    return positions_[i].first_round <= position &&
           (i + 1 == positions_.size() || position < positions_[i + 1].first_round);
  };
  if (!contains(current_run_)) {
    const auto next_run =
        std::upper_bound(positions_.begin(), positions_.end(), position,
                         [](uint64_t wanted, const RunPosition& at) { return wanted < at.first_round; });
    current_run_ = size_t(next_run - positions_.begin()) - 1;
  }
  return positions_[current_run_];
}

}  // namespace penstock
