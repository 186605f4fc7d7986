// Which sample belongs in which slot of which batch: the bookkeeping of the loader, without its threads.
//
// What it promises, for any number of workers and any timing:
//  - Position i of an epoch's order goes to slot i % B of the epoch's batch i / B (B: the batch size), as
//    long as nothing was skipped before it.
//  - Batches are handed over in order. At most max(K, 1) batches that have not been handed over are open at
//    any time (K: the prefetch depth): with K > 0 these are open from the start, the next one opens when one
//    is handed over. With K = 0 a batch opens when the consumer asks for it, so that nothing runs ahead of
//    the accelerator.
//  - A batch never mixes epochs. The positions of an epoch that fill no batch are its tail.
//  - A sample that fails leaves a hole. Once its batch is the next to be handed over and all its other
//    samples have been tried, holes are filled in slot order by the epoch's next positions that belong to no
//    batch yet; that is settled before another batch may open. Where the epoch has no such position left,
//    good samples are moved into the holes from the epoch's last batch ahead, its last one first, once all of
//    that batch have been tried; they leave holes there. So the composition depends on order, B, K and on
//    which samples are bad, and on nothing else, every sample is tried at most once an epoch, and an epoch
//    has as many batches as its good samples fill, whatever K is.
//  - A batch whose holes cannot be filled, because its epoch has no samples left, is given up; its good
//    samples count as tail. An epoch that yields no batch at all ends the plan (Head::empty_epoch) rather
//    than going round for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "datagen/reading/sampler.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {

// One sample to be loaded.
struct Ticket {
  std::uint64_t batch = 0;  // running number of its batch
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;  // in the manifest
  std::uint32_t slot = 0;
  std::size_t place = 0;  // of its batch in the pool
};

// Where a run goes on that others have started.
struct PlanStart {
  std::uint64_t batches = 0;  // that were handed over before
  std::uint64_t epoch = 0;    // the one to go on in, of which
  std::uint64_t used = 0;     // all ranks together have used that many samples (Sampler::epoch()), and
  std::uint64_t own = 0;      // this rank that many more, which counts where ranks do not use equally many

  friend bool operator==(const PlanStart&, const PlanStart&) = default;
};

// When to stop; whichever comes first. 0: no bound. Both count from the begin of the whole run.
struct PlanLimits {
  std::uint64_t batches = 0;  // handed over
  std::uint64_t epochs = 0;
  PlanStart start{};

  bool reached(std::uint64_t made) const { return batches != 0 && start.batches + made >= batches; }
};

// One thread at a time (the loader's mutex).
class BatchPlan {
 public:
  enum class Head : std::uint8_t {
    pending,      // the next batch is not complete
    ready,        // it may be handed over
    ended,        // the limits are reached
    empty_epoch,  // a whole epoch came to nothing
  };

  // Moves a loaded sample from its slot to the hole in another batch. Of both tickets only `place` and `slot`
  // count. No other thread uses either slot meanwhile.
  using MoveSample = std::function<void(const Ticket& from, const Ticket& to)>;

  // Needs batch > 0 and sampler.per_epoch() >= batch. The pool has prefetch + 1 places. `move` is called from
  // within done(), failed() and hand_over(), and has moved the sample when it returns. `spans` may be null;
  // it gets one of PENSTOCK_SHUFFLE for each epoch whose order is made, and is borrowed.
  BatchPlan(Sampler sampler, std::uint32_t batch, std::uint64_t prefetch, PlanLimits limits, MoveSample move,
            SpanBuffer* spans = nullptr);

  // The consumer waits for the next batch, and is done with the one before.
  void request();
  // The next sample to load, if one may be started now: by batch, then slot.
  std::optional<Ticket> take();
  bool can_take() const;
  std::uint64_t to_take() const;  // how many such samples there are now
  // The ticket's slot is filled, or never will be. True: head() or can_take() may have changed for the
  // better.
  bool done(const Ticket& ticket);
  bool failed(const Ticket& ticket);

  Head head() const { return head_; }
  std::uint64_t head_epoch() const { return open_.front().epoch; }  // head() == ready
  // head() == ready: the consumer has the batch until its next request(). Returns its place in the pool.
  std::size_t hand_over();

  std::uint64_t skipped() const { return skipped_; }  // samples that failed
  // Samples, good or untried, without a batch at the end of their epoch.
  std::uint64_t dropped_tail() const { return dropped_tail_; }

 private:
  struct Epoch {
    std::uint64_t number = 0;
    EpochOrder order;        // what is left of it belongs to no batch, and was not drawn to fill a hole
    std::uint64_t open = 0;  // its batches in open_
    bool useful = false;     // a batch of it was handed over, perhaps by a run before this one
    bool closed = false;     // no further batch will open
  };
  struct Open {
    std::uint64_t epoch = 0;
    std::size_t place = 0;
    std::vector<std::uint64_t> indices;  // of its slots' first tickets
    std::uint32_t taken = 0;             // slots whose first ticket was given out
    std::uint32_t unsettled = 0;         // slots neither filled nor known to be holes
    std::vector<std::uint32_t> holes;
  };

  Epoch& epoch(std::uint64_t number);
  EpochOrder order_of(std::uint64_t number) const;
  EpochOrder next_order() const;
  bool begin_epoch();
  void admit();
  bool open_next();
  void close_if_short(Epoch& from) const;
  bool tried(const Ticket& ticket);
  void settle();
  void refill(Open& batch, Epoch& from);
  std::size_t donor_for(const Open& to);
  void move_last_sample(Open& from, Open& to);
  void retire(bool handed);

  const Sampler sampler_;
  const std::uint32_t batch_;
  const std::uint64_t prefetch_;
  const PlanLimits limits_;
  const MoveSample move_;
  SpanBuffer* const spans_;

  std::deque<Epoch> epochs_;  // those with open batches, and the one that batches open from
  std::uint64_t next_epoch_ = 0;
  std::deque<Open> open_;   // batches next_ .. next_ + open_.size() - 1
  std::uint64_t next_ = 0;  // handed over or given up so far
  std::uint64_t given_up_ = 0;
  std::vector<std::size_t> free_places_;  // of the pool's K + 1
  std::optional<std::size_t> held_;       // by the consumer
  std::deque<Ticket> refills_;            // fill holes; go before all others
  std::uint64_t filling_ = 0;             // the first batch with slots that have no ticket yet
  bool requested_ = false;
  Head head_ = Head::pending;
  std::uint64_t skipped_ = 0;
  std::uint64_t dropped_tail_ = 0;
};

}  // namespace penstock
