// Decides which sample belongs in which slot of which batch. The loader calls it to hand out work; it has no
// threads of its own.
//
// K is the prefetch depth, B the batch size. These rules hold for any number of workers and any timing:
//  - Position i of an epoch's order goes to slot i % B of the epoch's batch i / B, until a sample fails.
//  - Batches are handed over in order. A batch is open from the moment its samples are chosen until it is
//    handed over or given up. With K > 0 the plan opens K batches at once and a new one after each hand-over.
//    With K = 0 it opens one batch when the consumer asks for it, so no sample is read ahead of the
//    accelerator.
//  - A batch never mixes epochs. The positions at the end of an epoch that fill no batch are its tail.
//  - A sample that fails leaves a hole in its batch. The plan fills holes only in the head, which is the next
//    batch to hand over. It waits until all samples of the head have been tried. Then it fills the holes in
//    slot order with the epoch's next positions that belong to no batch. No other batch opens before the
//    samples for the holes have been tried.
//  - If the epoch has no such position left, good samples of the epoch's last open batch move into the holes
//    of the head. The last sample moves first. The plan first waits until all samples of that last batch have
//    been tried. A moved sample leaves a hole there.
//  - If the epoch has no sample left for the holes, the plan gives the head up. Its good samples count as
//    tail. An epoch without any batch ends the plan (Head::empty_epoch); otherwise the run would try the same
//    epoch for ever.
//  - So the samples of each batch depend only on the order, B, K and on which samples are bad. Every sample
//    is tried at most once an epoch. An epoch has as many batches as its good samples fill, whatever K is.
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

// The task to load one sample into one slot of a batch.
struct Ticket {
  uint64_t batch = 0;  // number of its batch; this process counts batches from 0
  uint64_t epoch = 0;
  uint64_t index = 0;  // index of the sample in the manifest
  uint32_t slot = 0;
  size_t pool_index = 0;  // index of its batch in the pool
};

// Where this run starts, if it continues a run that earlier processes began.
struct PlanStart {
  uint64_t batches = 0;       // batches that earlier runs handed over
  uint64_t epoch = 0;         // the epoch to continue
  uint64_t used_samples = 0;  // number of samples of that epoch that were used, the sum over all ranks
  // How many samples this rank has used in addition to its equal share of `used_samples`. 0 if all ranks used
  // the same number of samples.
  uint64_t own_extra_samples = 0;

  friend bool operator==(const PlanStart&, const PlanStart&) = default;
};

// The limits of a run. It ends as soon as it reaches one of them. 0: no limit. `batches` and `epochs` count
// from the start of the whole run, including earlier processes.
struct PlanLimits {
  uint64_t batches = 0;  // batches to hand over
  uint64_t epochs = 0;
  PlanStart start{};

  bool reached(uint64_t made) const { return batches != 0 && start.batches + made >= batches; }
};

// Plans the batches. Only one thread at a time may use it: the loader calls every function but the
// constructor with its mutex_ held. The plan does not test for a stop or a signal.
// Memory: the constructor, request(), record_filled(), record_failed() and hand_over() may allocate and throw
// std::bad_alloc. take() and can_take() do not allocate.
class BatchPlan {
 public:
  enum class Head : uint8_t {
    pending,      // the next batch is not complete
    ready,        // it may be handed over
    ended,        // the limits are reached
    empty_epoch,  // an epoch produced no batch: the run cannot continue
  };

  // A function that moves a loaded sample from a slot of one batch to a hole in another batch. Of both
  // tickets only `pool_index` and `slot` are set. No other thread uses these two slots during the call.
  using MoveSample = std::function<void(const Ticket& from, const Ticket& to)>;

  // Needs batch > 0 and sampler.per_epoch() >= batch. The pool has prefetch + 1 batches.
  // record_filled(), record_failed() and hand_over() call `move`, which must have moved the sample when it
  // returns.
  // `spans` is borrowed and may be null. It gets one PENSTOCK_SHUFFLE span for each epoch whose order is
  // made.
  BatchPlan(Sampler sampler, uint32_t batch, uint64_t prefetch, PlanLimits limits, MoveSample move,
            SpanBuffer* spans = nullptr);

  // Frees the batch that the consumer got last and requests the next one. Called when the consumer calls
  // next().
  void request();
  // Returns the next sample to load, or nothing if none may be started now. Called by a worker. Samples for
  // holes come first, the others in the order of their batches, then of their slots.
  std::optional<Ticket> take();
  bool can_take() const;
  uint64_t startable_samples() const;  // how many samples take() would return now
  // Records that a sample was loaded into the ticket's slot (record_filled()), or that it failed, so that the
  // slot is still empty (record_failed()). Called by a worker. True: head() may have changed, or more samples
  // can be taken.
  bool record_filled(const Ticket& ticket);
  bool record_failed(const Ticket& ticket);

  Head head() const { return head_; }
  uint64_t head_epoch() const { return open_batches_.front().epoch; }  // needs head() == ready
  // Hands the next batch, the first of open_batches_, to the consumer, which keeps it until it calls
  // request() again. Returns the batch's index in the pool. Needs head() == ready.
  size_t hand_over();

  uint64_t skipped() const { return skipped_; }  // samples that failed
  // Good or untried samples that filled no batch, at the ends of epochs.
  uint64_t dropped_tail() const { return dropped_tail_; }

 private:
  struct Epoch {
    uint64_t number = 0;
    EpochOrder order;           // its remaining positions are in no batch and filled no hole
    uint64_t open_batches = 0;  // how many of its batches are in open_batches_
    bool had_batch = false;     // a batch of this epoch was handed over, perhaps by an earlier run
    bool closed = false;        // true: no further batch of this epoch will open
  };
  struct OpenBatch {
    uint64_t epoch = 0;
    size_t pool_index = 0;
    std::vector<uint64_t> indices;  // the samples of its slots, as chosen when it opened
    uint32_t taken_slots = 0;       // slots for which take() has returned a sample
    uint32_t untried_slots = 0;     // slots that are neither filled nor holes
    std::vector<uint32_t> holes;
  };

  Epoch& epoch(uint64_t number);
  EpochOrder order_of(uint64_t number) const;
  EpochOrder next_order() const;
  bool begin_epoch();
  void open_more_batches();
  bool open_next();
  void close_if_short(Epoch& source) const;
  bool count_tried(const Ticket& ticket);
  void decide_head();
  void refill(OpenBatch& batch, Epoch& source);
  size_t find_donor_batch(const OpenBatch& to);
  void move_last_sample(OpenBatch& from, OpenBatch& to);
  void retire_head(bool handed_over);

  const Sampler sampler_;
  const uint32_t batch_samples_;
  const uint64_t prefetch_;
  const PlanLimits limits_;
  const MoveSample move_sample_;
  SpanBuffer* const spans_;

  std::deque<Epoch> epochs_;  // epochs with open batches, and the epoch of the next batch to open
  uint64_t next_epoch_ = 0;
  std::deque<OpenBatch> open_batches_;  // the open batches, in order; the first is the head
  uint64_t head_number_ = 0;            // number of the head: batches handed over or given up
  uint64_t given_up_batches_ = 0;
  std::vector<size_t> free_batches_;      // indices of free batches in the pool
  std::optional<size_t> consumer_batch_;  // index in the pool of the batch that the consumer has
  std::deque<Ticket> refills_;            // samples that fill holes; take() returns them first
  uint64_t first_untaken_batch_ = 0;      // number of the first batch with untaken samples
  bool batch_requested_ = false;
  Head head_ = Head::pending;
  uint64_t skipped_ = 0;
  uint64_t dropped_tail_ = 0;
};

}  // namespace penstock
