// Threads: all workers of a run share one SampleSource and one Arrivals. PassOrder and CollectiveOrder
// belong to one worker each.
// Locks: SampleSource::mutex_ between two passes, Arrivals::mutex_ for each due time. Both are held for a few
// computations and never together.
// Memory: only the first sample of a pass or window allocates, by an order. The shared classes allocate
// nothing.
// Ctrl-C: nothing looks for it, and nothing waits. Crash: nothing is written.
#include "datagen/reading/sample_order.hpp"

#include <algorithm>
#include <cassert>

namespace penstock {

namespace {

std::uint64_t slice_length(std::uint64_t samples, unsigned threads) {
  constexpr std::uint64_t kSlicesAThread = 128;
  constexpr std::uint64_t kLongest = 8;
  return std::clamp<std::uint64_t>(samples / (kSlicesAThread * std::max(threads, 1U)), 1, kLongest);
}

}  // namespace

SampleSource::SampleSource(std::uint64_t samples, unsigned threads, std::uint64_t max_passes,
                           std::int64_t at_least_ns)
    : samples_(samples),
      slice_(slice_length(samples, threads)),
      slices_a_pass_((samples + slice_ - 1) / slice_),
      max_passes_(max_passes),
      at_least_ns_(at_least_ns),
      limit_(slices_a_pass_) {
  assert(samples > 0);
}

// Sorts a window when its first sample is wanted, and keeps it for the others.
std::uint64_t PassOrder::in_window(std::uint64_t position) {
  const std::uint64_t from = position / window_ * window_;
  if (sorted_.empty() || sorted_from_ != from) {
    const std::uint64_t end = std::min(from + window_, length_);
    sorted_.clear();
    for (std::uint64_t i = from; i < end; ++i) sorted_.push_back(first_ + permutation_.at(i));
    const std::vector<std::uint64_t>& offsets = *offsets_;
    std::sort(sorted_.begin(), sorted_.end(), [&](std::uint64_t a, std::uint64_t b) {
      return offsets[a] != offsets[b] ? offsets[a] < offsets[b] : a < b;
    });
    sorted_from_ = from;
  }
  return sorted_[position - from];
}

// By each thread whose ticket is beyond the limit: lets one more pass start, or none. ended_ stays set for
// good. If a later thread could extend after all, the new pass would lack the slices of tickets that were
// refused before.
bool SampleSource::extend(std::uint64_t ticket, std::int64_t now_ns) {
  std::lock_guard lock(mutex_);
  while (ticket >= limit_.load(std::memory_order_relaxed)) {
    if (max_passes_ != 0 && passes() >= max_passes_) ended_ = true;
    if (now_ns >= at_least_ns_) ended_ = true;
    if (ended_) return false;
    limit_.store(limit_.load(std::memory_order_relaxed) + slices_a_pass_, std::memory_order_release);
  }
  return true;
}

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

// Depends on the pass and the position alone, so that all ranks read the same object in the same round. A
// rank with another order would block the others in their collective read.
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

Arrivals::Arrivals(const OpenLoop& loop, std::uint64_t seed, const RankShare& share, std::uint64_t run)
    : poisson_(loop.poisson),
      gap_ns_(1e9 * static_cast<double>(share.ranks) / loop.per_second),
      first_((static_cast<double>(share.rank) + 0.5) / static_cast<double>(share.ranks)),
      random_(RandomStream(seed, "arrivals").substream(run).substream(share.rank)) {}

// When sample `number` is due. `at_ns`: the time of the one before, which becomes its own. Without the lock.
std::int64_t Arrivals::due_ns(std::uint64_t number, double& at_ns) const {
  if (poisson_)
    at_ns -= gap_ns_ * portable_log(1 - random_.uniform(number));
  else
    // In the middle of its gap: a run of n gaps has n samples, and none is due at its end.
    at_ns = gap_ns_ * (static_cast<double>(number) + first_);
  return static_cast<std::int64_t>(at_ns);
}

// Number and time change under one lock: with gaps drawn one after the other, each depends on the one before.
std::int64_t Arrivals::next_ns() {
  const std::lock_guard lock(mutex_);
  return due_ns(given_++, at_ns_);
}

// Computes all times again from the first, so it neither needs the lock nor disturbs next_ns().
std::uint64_t Arrivals::between(std::int64_t from_ns, std::int64_t to_ns) const {
  std::uint64_t count = 0;
  double at_ns = 0;
  for (std::uint64_t number = 0;; ++number) {
    const std::int64_t due = due_ns(number, at_ns);
    if (due >= to_ns) return count;
    if (due >= from_ns) ++count;
  }
}

}  // namespace penstock
