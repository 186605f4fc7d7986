#include "miniapps/pipeline/batch_plan.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace penstock {

BatchPlan::BatchPlan(Sampler sampler, std::uint32_t batch, std::uint64_t prefetch, PlanLimits limits,
                     SpanBuffer* spans)
    : sampler_(sampler),
      batch_(batch),
      prefetch_(prefetch),
      limits_(limits),
      spans_(spans),
      next_epoch_(limits.start.epoch) {
  for (std::size_t place = static_cast<std::size_t>(prefetch) + 1; place > 0; --place)
    free_places_.push_back(place - 1);
  admit();
}

BatchPlan::Epoch& BatchPlan::epoch(std::uint64_t number) {
  return epochs_[static_cast<std::size_t>(number - epochs_.front().number)];
}

void BatchPlan::close_if_short(Epoch& from) const {
  if (from.order.left() < batch_) from.closed = true;
}

EpochOrder BatchPlan::order_of(std::uint64_t number) const {
  if (number != limits_.start.epoch) return sampler_.epoch(number);
  EpochOrder order = sampler_.epoch(number, limits_.start.used);
  order.skip(limits_.start.own);
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

// False: there is no further one. One that was begun before may have no batch left.
bool BatchPlan::begin_epoch() {
  while (limits_.epochs == 0 || next_epoch_ < limits_.epochs) {
    Epoch fresh;
    fresh.number = next_epoch_;
    fresh.order = next_order();
    fresh.useful = next_epoch_ == limits_.start.epoch && limits_.start.used + limits_.start.own > 0;
    ++next_epoch_;
    if (fresh.order.left() < batch_ && fresh.useful) {
      counts_.dropped_tail += fresh.order.left();
      continue;
    }
    epochs_.push_back(std::move(fresh));
    return true;
  }
  return false;
}

bool BatchPlan::open_next() {
  if (limits_.reached(next_ + open_.size() - given_up_)) return false;
  if ((epochs_.empty() || epochs_.back().closed) && !begin_epoch()) return false;
  Epoch& from = epochs_.back();
  Open& batch = open_.emplace_back();
  batch.epoch = from.number;
  batch.place = free_places_.back();
  free_places_.pop_back();
  batch.indices.reserve(batch_);
  for (std::uint32_t slot = 0; slot < batch_; ++slot) batch.indices.push_back(from.order.next());
  batch.unsettled = batch_;
  ++from.open;
  close_if_short(from);
  return true;
}

void BatchPlan::admit() {
  if (head_ == Head::barren) return;
  const std::uint64_t window = prefetch_ > 0 ? prefetch_ : (requested_ ? 1 : 0);
  while (open_.size() < window && open_next()) {
  }
  if (open_.empty()) {
    const bool more = prefetch_ == 0 && !requested_;  // unknown until asked for
    head_ = more ? Head::pending : Head::ended;
  } else {
    head_ = open_.front().unsettled == 0 && open_.front().holes.empty() ? Head::ready : Head::pending;
  }
}

void BatchPlan::request() {
  if (requested_) return;
  requested_ = true;
  if (held_) free_places_.push_back(*held_);
  held_.reset();
  if (open_.empty()) admit();
}

bool BatchPlan::can_take() const {
  return head_ != Head::barren && (!refills_.empty() || filling_ < next_ + open_.size());
}

std::uint64_t BatchPlan::to_take() const {
  if (!can_take()) return 0;
  const std::uint64_t unfilled = next_ + open_.size() - filling_;
  const std::uint64_t begun = unfilled > 0 ? open_[static_cast<std::size_t>(filling_ - next_)].taken : 0;
  return refills_.size() + unfilled * batch_ - begun;
}

std::optional<Ticket> BatchPlan::take() {
  if (!can_take()) return std::nullopt;
  if (!refills_.empty()) {
    const Ticket ticket = refills_.front();
    refills_.pop_front();
    return ticket;
  }
  Open& batch = open_[static_cast<std::size_t>(filling_ - next_)];
  Ticket ticket;
  ticket.batch = filling_;
  ticket.epoch = batch.epoch;
  ticket.slot = batch.taken;
  ticket.place = batch.place;
  ticket.index = batch.indices[batch.taken];
  if (++batch.taken == batch_) ++filling_;
  return ticket;
}

bool BatchPlan::done(const Ticket& ticket) {
  Open& batch = open_[static_cast<std::size_t>(ticket.batch - next_)];
  if (--batch.unsettled > 0 || ticket.batch != next_) return false;
  settle();
  return true;
}

bool BatchPlan::failed(const Ticket& ticket) {
  ++counts_.skipped;
  Open& batch = open_[static_cast<std::size_t>(ticket.batch - next_)];
  batch.holes.push_back(ticket.slot);
  if (--batch.unsettled > 0 || ticket.batch != next_) return false;
  settle();
  return true;
}

// Decides what becomes of the head, all of whose tickets have been tried.
void BatchPlan::settle() {
  while (head_ != Head::barren && !open_.empty() && open_.front().unsettled == 0) {
    Open& batch = open_.front();
    if (batch.holes.empty()) {
      head_ = Head::ready;
      return;
    }
    Epoch& from = epoch(batch.epoch);
    if (from.order.left() < batch.holes.size()) {
      counts_.dropped_tail += batch_ - batch.holes.size();
      retire(false);
      continue;
    }
    std::sort(batch.holes.begin(), batch.holes.end());
    for (const std::uint32_t slot : batch.holes) {
      refills_.push_back({next_, batch.epoch, from.order.next(), slot, batch.place});
    }
    batch.unsettled = static_cast<std::uint32_t>(batch.holes.size());
    batch.holes.clear();
    close_if_short(from);
  }
}

void BatchPlan::retire(bool handed) {
  const std::uint64_t number = open_.front().epoch;
  if (handed) {
    held_ = open_.front().place;
  } else {
    free_places_.push_back(open_.front().place);
  }
  open_.pop_front();
  ++next_;
  Epoch& from = epoch(number);
  --from.open;
  from.useful = from.useful || handed;
  if (!handed) ++given_up_;
  close_if_short(from);
  if (from.closed && from.open == 0) {
    counts_.dropped_tail += from.order.left();
    if (!from.useful) {
      head_ = Head::barren;
      return;
    }
    epochs_.pop_front();
  }
  admit();
}

BatchPlan::Handed BatchPlan::hand_over() {
  const Handed handed{open_.front().place, open_.front().epoch};
  requested_ = false;
  retire(true);
  settle();
  return handed;
}

}  // namespace penstock
