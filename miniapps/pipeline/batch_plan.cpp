#include "miniapps/pipeline/batch_plan.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace penstock {

BatchPlan::BatchPlan(Sampler sampler, uint32_t batch, uint64_t prefetch, PlanLimits limits, MoveSample move,
                     SpanBuffer* spans)
    : sampler_(sampler),
      batch_samples_(batch),
      prefetch_(prefetch),
      limits_(limits),
      move_sample_(std::move(move)),
      spans_(spans),
      next_epoch_(limits.start.epoch) {
  for (size_t count = size_t(prefetch) + 1; count > 0; --count) free_batches_.push_back(count - 1);
  open_more_batches();
}

// Returns the epoch with this number. Epochs have consecutive numbers, so its index in epochs_ is `number`
// minus the number of the first epoch in epochs_.
BatchPlan::Epoch& BatchPlan::epoch(uint64_t number) {
  return epochs_[size_t(number - epochs_.front().number)];
}

void BatchPlan::close_if_short(Epoch& source) const {
  if (source.order.left() < batch_samples_) source.closed = true;
}

EpochOrder BatchPlan::order_of(uint64_t number) const {
  if (number != limits_.start.epoch) return sampler_.epoch(number);
  EpochOrder order = sampler_.epoch(number, limits_.start.used_samples);
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
               .epoch = uint32_t(next_epoch_),
               .thread = span_thread(),
               .component = PENSTOCK_SHUFFLE,
               .detail = 0,
               .reserved = 0});
  return order;
}

// Makes the order of the next epoch and adds the epoch to epochs_. Returns false if the limits of the run
// allow no further epoch. Skips an epoch in which an earlier run left too few samples for a batch.
bool BatchPlan::begin_epoch() {
  while (limits_.epochs == 0 || next_epoch_ < limits_.epochs) {
    Epoch new_epoch;
    new_epoch.number = next_epoch_;
    new_epoch.order = next_order();
    new_epoch.had_batch = next_epoch_ == limits_.start.epoch &&
                          limits_.start.used_samples + limits_.start.own_extra_samples > 0;
    ++next_epoch_;
    if (new_epoch.order.left() < batch_samples_ && new_epoch.had_batch) {
      dropped_tail_ += new_epoch.order.left();
      continue;
    }
    epochs_.push_back(std::move(new_epoch));
    return true;
  }
  return false;
}

// Opens the next batch: chooses its samples and the batch of the pool that holds them. Returns false if a
// limit of the run is reached. Allocates.
bool BatchPlan::open_next() {
  if (limits_.reached(head_number_ + open_batches_.size() - given_up_batches_)) return false;
  if ((epochs_.empty() || epochs_.back().closed) && !begin_epoch()) return false;
  Epoch& source = epochs_.back();
  OpenBatch& batch = open_batches_.emplace_back();
  batch.epoch = source.number;
  batch.pool_index = free_batches_.back();
  free_batches_.pop_back();
  batch.indices.reserve(batch_samples_);
  for (uint32_t slot = 0; slot < batch_samples_; ++slot) batch.indices.push_back(source.order.next());
  batch.untried_slots = batch_samples_;
  ++source.open_batches;
  close_if_short(source);
  return true;
}

// Opens as many batches as the prefetch depth allows, then sets head_ to the state of the first of
// open_batches_.
void BatchPlan::open_more_batches() {
  if (head_ == Head::empty_epoch) return;
  const uint64_t most_open = prefetch_ > 0 ? prefetch_ : (batch_requested_ ? 1 : 0);
  while (open_batches_.size() < most_open && open_next()) {
  }
  if (open_batches_.empty()) {
    // With a prefetch depth of 0 and no request, no batch was opened, so the run may have another batch.
    const bool may_continue = prefetch_ == 0 && !batch_requested_;
    head_ = may_continue ? Head::pending : Head::ended;
  } else {
    head_ = open_batches_.front().untried_slots == 0 && open_batches_.front().holes.empty() ? Head::ready
                                                                                            : Head::pending;
  }
}

// Called by the consumer: frees the batch that it got last and asks for the next one. Allocates only if the
// prefetch depth is 0.
void BatchPlan::request() {
  if (batch_requested_) return;
  batch_requested_ = true;
  if (consumer_batch_) free_batches_.push_back(*consumer_batch_);
  consumer_batch_.reset();
  if (open_batches_.empty()) open_more_batches();
}

bool BatchPlan::can_take() const {
  return head_ != Head::empty_epoch &&
         (!refills_.empty() || first_untaken_batch_ < head_number_ + open_batches_.size());
}

uint64_t BatchPlan::startable_samples() const {
  if (!can_take()) return 0;
  const uint64_t untaken_batches = head_number_ + open_batches_.size() - first_untaken_batch_;
  const uint64_t taken_samples =
      untaken_batches > 0 ? open_batches_[size_t(first_untaken_batch_ - head_number_)].taken_slots : 0;
  return refills_.size() + untaken_batches * batch_samples_ - taken_samples;
}

std::optional<Ticket> BatchPlan::take() {
  if (!can_take()) return std::nullopt;
  if (!refills_.empty()) {
    const Ticket ticket = refills_.front();
    refills_.pop_front();
    return ticket;
  }
  OpenBatch& batch = open_batches_[size_t(first_untaken_batch_ - head_number_)];
  Ticket ticket;
  ticket.batch = first_untaken_batch_;
  ticket.epoch = batch.epoch;
  ticket.slot = batch.taken_slots;
  ticket.pool_index = batch.pool_index;
  ticket.index = batch.indices[batch.taken_slots];
  if (++batch.taken_slots == batch_samples_) ++first_untaken_batch_;
  return ticket;
}

// Counts the ticket's sample as tried (loaded or failed). If the head (the first of open_batches_) may have
// waited for this sample, calls decide_head() and returns true. The head waits until all its own samples are
// tried. If samples of a later batch are to fill its holes, it waits until all samples of that batch are
// tried, too.
bool BatchPlan::count_tried(const Ticket& ticket) {
  if (--open_batches_[size_t(ticket.batch - head_number_)].untried_slots > 0) return false;
  if (head_ == Head::ready || open_batches_.front().untried_slots > 0) return false;
  decide_head();
  return true;
}

bool BatchPlan::record_filled(const Ticket& ticket) {
  return count_tried(ticket);
}

bool BatchPlan::record_failed(const Ticket& ticket) {
  ++skipped_;
  open_batches_[size_t(ticket.batch - head_number_)].holes.push_back(ticket.slot);
  return count_tried(ticket);
}

// `batch` must be the first of open_batches_, and `source` its epoch. Adds to refills_ one ticket for each
// hole (empty slot) of the batch, with the next sample of `source`. If `source` has fewer samples left, the
// last holes stay empty.
void BatchPlan::refill(OpenBatch& batch, Epoch& source) {
  const auto refill_count = ptrdiff_t(std::min<uint64_t>(source.order.left(), batch.holes.size()));
  for (ptrdiff_t i = 0; i < refill_count; ++i)
    refills_.push_back(
        {head_number_, batch.epoch, source.order.next(), batch.holes[size_t(i)], batch.pool_index});
  batch.untried_slots = uint32_t(refill_count);
  batch.holes.erase(batch.holes.begin(), batch.holes.begin() + refill_count);
  close_if_short(source);
}

// Finds the open batch that gives a sample for the first hole of `to`, the first of open_batches_: the last
// batch of the same epoch that has a good or an untried sample. If that batch has an untried sample, `to`
// must wait until it is tried. Returns the batch's index in open_batches_, or 0 if there is no such batch.
size_t BatchPlan::find_donor_batch(const OpenBatch& to) {
  for (size_t i = open_batches_.size() - 1; i > 0; --i)
    if (open_batches_[i].epoch == to.epoch &&
        (open_batches_[i].untried_slots > 0 || open_batches_[i].holes.size() < batch_samples_))
      return i;
  return 0;
}

// Moves the last good sample of `from` into the first hole of `to`, the first of open_batches_.
void BatchPlan::move_last_sample(OpenBatch& from, OpenBatch& to) {
  std::sort(from.holes.begin(), from.holes.end());
  uint32_t slot = batch_samples_ - 1;
  for (auto hole = from.holes.rbegin(); hole != from.holes.rend() && *hole == slot; ++hole) --slot;
  move_sample_({.slot = slot, .pool_index = from.pool_index},
               {.slot = to.holes.front(), .pool_index = to.pool_index});
  from.holes.push_back(slot);
  to.holes.erase(to.holes.begin());
}

// Decides what happens to the head, the first of open_batches_, once all its samples have been tried:
//  - Without holes it is ready.
//  - Otherwise its holes are refilled with the epoch's next samples that are in no batch.
//  - If the epoch has no such sample, good samples of a later batch move into the holes, once all samples of
//    that batch are tried.
//  - If there is no such batch, the head is given up, and the next batch becomes the head.
void BatchPlan::decide_head() {
  while (head_ != Head::empty_epoch && !open_batches_.empty() && open_batches_.front().untried_slots == 0) {
    OpenBatch& batch = open_batches_.front();
    if (batch.holes.empty()) {
      head_ = Head::ready;
      return;
    }
    std::sort(batch.holes.begin(), batch.holes.end());
    if (Epoch& source = epoch(batch.epoch); source.order.left() > 0) {
      refill(batch, source);
      return;
    }
    if (const size_t donor = find_donor_batch(batch); donor != 0) {
      if (open_batches_[donor].untried_slots > 0) return;
      move_last_sample(open_batches_[donor], batch);
    } else {
      dropped_tail_ += batch_samples_ - batch.holes.size();
      retire_head(false);
    }
  }
}

// Removes the first of open_batches_. With `handed_over` the consumer has it now; otherwise it is given up.
// If no batch of its epoch is open and none will follow, removes the epoch too. Then opens the next batches,
// which allocates.
void BatchPlan::retire_head(bool handed_over) {
  const uint64_t number = open_batches_.front().epoch;
  if (handed_over) {
    consumer_batch_ = open_batches_.front().pool_index;
  } else {
    free_batches_.push_back(open_batches_.front().pool_index);
  }
  open_batches_.pop_front();
  ++head_number_;
  Epoch& source = epoch(number);
  --source.open_batches;
  source.had_batch = source.had_batch || handed_over;
  if (!handed_over) ++given_up_batches_;
  close_if_short(source);
  if (source.closed && source.open_batches == 0) {
    dropped_tail_ += source.order.left();
    if (!source.had_batch) {
      head_ = Head::empty_epoch;
      return;
    }
    epochs_.pop_front();
  }
  open_more_batches();
}

size_t BatchPlan::hand_over() {
  const size_t pool_index = open_batches_.front().pool_index;
  batch_requested_ = false;
  retire_head(true);
  decide_head();
  return pool_index;
}

}  // namespace penstock
