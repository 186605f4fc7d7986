#include "miniapps/pipeline/batch_plan.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace penstock {

BatchPlan::BatchPlan(Sampler sampler, std::uint32_t batch, std::uint64_t prefetch, PlanLimits limits,
                     MoveSample move, SpanBuffer* spans)
    : sampler_(sampler),
      batch_(batch),
      prefetch_(prefetch),
      limits_(limits),
      move_(std::move(move)),
      spans_(spans),
      next_epoch_(limits.start.epoch) {
  for (std::size_t count = static_cast<std::size_t>(prefetch) + 1; count > 0; --count)
    free_batches_.push_back(count - 1);
  admit();
}

// With the loader's lock held, as everything here. Epoch numbers are consecutive, so the difference is the
// index.
BatchPlan::Epoch& BatchPlan::epoch(std::uint64_t number) {
  return epochs_[static_cast<std::size_t>(number - epochs_.front().number)];
}

void BatchPlan::close_if_short(Epoch& from) const {
  if (from.order.left() < batch_) from.closed = true;
}

EpochOrder BatchPlan::order_of(std::uint64_t number) const {
  if (number != limits_.start.epoch) return sampler_.epoch(number);
  EpochOrder order = sampler_.epoch(number, limits_.start.used);
  order.skip(limits_.start.own_extra_samples);
  return order;
}

EpochOrder BatchPlan::next_order() const {
  if (spans_ == nullptr) return order_of(next_epoch_);
  const auto begin = std::chrono::steady_clock::now();
  EpochOrder order = order_of(next_epoch_);
  spans_->add({.begin_ns = span_ns(begin),
               .end_ns = span_ns(std::chrono::steady_clock::now()),
               .number = PENSTOCK_NO_NUMBER,
               .bytes = 0,
               .epoch = static_cast<std::uint32_t>(next_epoch_),
               .thread = span_thread(),
               .component = PENSTOCK_SHUFFLE,
               .detail = 0,
               .reserved = 0});
  return order;
}

// Makes the order of the next epoch. False: the limits allow no further epoch. An epoch that an earlier run
// began may have too few samples left for a batch; it is skipped.
bool BatchPlan::begin_epoch() {
  while (limits_.epochs == 0 || next_epoch_ < limits_.epochs) {
    Epoch fresh;
    fresh.number = next_epoch_;
    fresh.order = next_order();
    fresh.useful =
        next_epoch_ == limits_.start.epoch && limits_.start.used + limits_.start.own_extra_samples > 0;
    ++next_epoch_;
    if (fresh.order.left() < batch_ && fresh.useful) {
      dropped_tail_ += fresh.order.left();
      continue;
    }
    epochs_.push_back(std::move(fresh));
    return true;
  }
  return false;
}

// Opens the next batch: chooses its samples and its batch of the pool. False: a limit is reached. Allocates.
bool BatchPlan::open_next() {
  if (limits_.reached(head_number_ + open_.size() - given_up_)) return false;
  if ((epochs_.empty() || epochs_.back().closed) && !begin_epoch()) return false;
  Epoch& from = epochs_.back();
  OpenBatch& batch = open_.emplace_back();
  batch.epoch = from.number;
  batch.pool_index = free_batches_.back();
  free_batches_.pop_back();
  batch.indices.reserve(batch_);
  for (std::uint32_t slot = 0; slot < batch_; ++slot) batch.indices.push_back(from.order.next());
  batch.unsettled = batch_;
  ++from.open_batches;
  close_if_short(from);
  return true;
}

// Opens as many batches as the prefetch depth allows, then sets head_.
void BatchPlan::admit() {
  if (head_ == Head::empty_epoch) return;
  const std::uint64_t window = prefetch_ > 0 ? prefetch_ : (requested_ ? 1 : 0);
  while (open_.size() < window && open_next()) {
  }
  if (open_.empty()) {
    const bool more = prefetch_ == 0 && !requested_;  // unknown until the consumer asks
    head_ = more ? Head::pending : Head::ended;
  } else {
    head_ = open_.front().unsettled == 0 && open_.front().holes.empty() ? Head::ready : Head::pending;
  }
}

// By the consumer. Frees the batch that it had. Allocates only with a prefetch depth of 0.
void BatchPlan::request() {
  if (requested_) return;
  requested_ = true;
  if (held_) free_batches_.push_back(*held_);
  held_.reset();
  if (open_.empty()) admit();
}

bool BatchPlan::can_take() const {
  return head_ != Head::empty_epoch &&
         (!refills_.empty() || first_untaken_batch_ < head_number_ + open_.size());
}

std::uint64_t BatchPlan::to_take() const {
  if (!can_take()) return 0;
  const std::uint64_t unfilled = head_number_ + open_.size() - first_untaken_batch_;
  const std::uint64_t started =
      unfilled > 0 ? open_[static_cast<std::size_t>(first_untaken_batch_ - head_number_)].taken : 0;
  return refills_.size() + unfilled * batch_ - started;
}

std::optional<Ticket> BatchPlan::take() {
  if (!can_take()) return std::nullopt;
  if (!refills_.empty()) {
    const Ticket ticket = refills_.front();
    refills_.pop_front();
    return ticket;
  }
  OpenBatch& batch = open_[static_cast<std::size_t>(first_untaken_batch_ - head_number_)];
  Ticket ticket;
  ticket.batch = first_untaken_batch_;
  ticket.epoch = batch.epoch;
  ticket.slot = batch.taken;
  ticket.pool_index = batch.pool_index;
  ticket.index = batch.indices[batch.taken];
  if (++batch.taken == batch_) ++first_untaken_batch_;
  return ticket;
}

// Counts one tried sample. If it was the last of its batch, the head may be decided now: the batch is the
// head, or the head waits for a sample from it.
bool BatchPlan::sample_done(const Ticket& ticket) {
  if (--open_[static_cast<std::size_t>(ticket.batch - head_number_)].unsettled > 0) return false;
  if (head_ == Head::ready || open_.front().unsettled > 0) return false;
  decide_head();
  return true;
}

bool BatchPlan::done(const Ticket& ticket) {
  return sample_done(ticket);
}

bool BatchPlan::failed(const Ticket& ticket) {
  ++skipped_;
  open_[static_cast<std::size_t>(ticket.batch - head_number_)].holes.push_back(ticket.slot);
  return sample_done(ticket);
}

// Fills the first holes of the head with the epoch's next positions, as many as it has.
void BatchPlan::refill(OpenBatch& batch, Epoch& from) {
  const auto filled =
      static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(from.order.left(), batch.holes.size()));
  for (std::ptrdiff_t i = 0; i < filled; ++i)
    refills_.push_back({head_number_, batch.epoch, from.order.next(),
                        batch.holes[static_cast<std::size_t>(i)], batch.pool_index});
  batch.unsettled = static_cast<std::uint32_t>(filled);
  batch.holes.erase(batch.holes.begin(), batch.holes.begin() + filled);
  close_if_short(from);
}

// Finds the open batch that gives a sample for the head's first hole: the last batch of the head's epoch that
// has a good or an untried sample. If it has an untried one, the head waits for it. Returns the batch's index
// in open_, or 0 (the head itself) if there is none.
std::size_t BatchPlan::find_donor_batch(const OpenBatch& to) {
  for (std::size_t i = open_.size() - 1; i > 0; --i)
    if (open_[i].epoch == to.epoch && (open_[i].unsettled > 0 || open_[i].holes.size() < batch_)) return i;
  return 0;
}

// Moves the last good sample of a batch into the first hole of the head.
void BatchPlan::move_last_sample(OpenBatch& from, OpenBatch& to) {
  std::sort(from.holes.begin(), from.holes.end());
  std::uint32_t slot = batch_ - 1;
  for (auto hole = from.holes.rbegin(); hole != from.holes.rend() && *hole == slot; ++hole) --slot;
  move_({.slot = slot, .pool_index = from.pool_index},
        {.slot = to.holes.front(), .pool_index = to.pool_index});
  from.holes.push_back(slot);
  to.holes.erase(to.holes.begin());
}

// Decides about the head once all its samples have been tried: ready, wait, fill its holes, or give it up.
void BatchPlan::decide_head() {
  while (head_ != Head::empty_epoch && !open_.empty() && open_.front().unsettled == 0) {
    OpenBatch& batch = open_.front();
    if (batch.holes.empty()) {
      head_ = Head::ready;
      return;
    }
    std::sort(batch.holes.begin(), batch.holes.end());
    if (Epoch& from = epoch(batch.epoch); from.order.left() > 0) {
      refill(batch, from);
      return;
    }
    if (const std::size_t donor = find_donor_batch(batch); donor != 0) {
      if (open_[donor].unsettled > 0) return;
      move_last_sample(open_[donor], batch);
    } else {
      dropped_tail_ += batch_ - batch.holes.size();
      retire(false);
    }
  }
}

// Removes the head from open_: `handed` to the consumer, or given up. Closes its epoch after the epoch's last
// batch, then opens the next batches, which allocates.
void BatchPlan::retire(bool handed) {
  const std::uint64_t number = open_.front().epoch;
  if (handed) {
    held_ = open_.front().pool_index;
  } else {
    free_batches_.push_back(open_.front().pool_index);
  }
  open_.pop_front();
  ++head_number_;
  Epoch& from = epoch(number);
  --from.open_batches;
  from.useful = from.useful || handed;
  if (!handed) ++given_up_;
  close_if_short(from);
  if (from.closed && from.open_batches == 0) {
    dropped_tail_ += from.order.left();
    if (!from.useful) {
      head_ = Head::empty_epoch;
      return;
    }
    epochs_.pop_front();
  }
  admit();
}

std::size_t BatchPlan::hand_over() {
  const std::size_t pool_index = open_.front().pool_index;
  requested_ = false;
  retire(true);
  decide_head();
  return pool_index;
}

}  // namespace penstock
