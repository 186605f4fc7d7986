// The worker of `read --collective`, whose reads are collective calls of all ranks. Its loop is used instead
// of the loops of read_worker.cpp.
// Threads: a rank has only one worker, because --collective needs one thread. It runs on the thread of
// ReadEngine::run().
// Ctrl-C: checked before each round. A read in flight is not cut short.
#include "benchmarks/read/read_worker.hpp"
#include "datagen/reading/collective_order.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

class CollectiveWorker final : public ReadWorker {
 public:
  CollectiveWorker(const ReadWork& work, const ReadOptions& options, HeldObjects& objects)
      : ReadWorker(work, options, objects), order_(*work.samples, options.order, options.seed, work.share) {}

  uint64_t positions() const override { return order_.rounds(); }  // the rounds of all ranks

 private:
  void read_samples(ReadRun& run) override;

  CollectiveOrder order_;
};

}  // namespace

Result<void> open_for_collective_reads(const ReadWork& work, HeldObjects& objects) {
  if (work.manifest->one_object_per_sample())
    return make_error(
        Errc::invalid_argument,
        "--collective makes all ranks read each object together, and here every object is one sample: use "
        "objects with many samples, or --block SIZE with large objects, or leave it out");
  const uint64_t object_count = work.manifest->objects();
  const uint64_t most_held = max_open_objects(object_count);
  if (most_held < object_count)
    return make_error(Errc::exhausted, "--collective holds all " + std::to_string(object_count) +
                                           " objects open, and " + std::to_string(most_held) +
                                           " are possible with the descriptor limit: raise it (ulimit -n)");
  for (uint64_t i = 0; i < object_count; ++i) PENSTOCK_TRY(objects.open(i, work.samples->name(uint32_t(i))));
  return success();
}

// Reads the samples of this rank, one in each round. A round is one collective read, which all ranks must
// call. So a rank that has no sample in a round makes an empty read. After a failure or Ctrl-C, a rank makes
// empty reads until the last pass ends, so that the other ranks do not wait for ever.
void CollectiveWorker::read_samples(ReadRun& run) {
  Slot& slot = slots_.front();
  int64_t now = run.now_ns();
  while (run.source.take(now, slice_)) {
    for (position_ = slice_.begin; position_ < slice_.end; ++position_) {
      const bool ended = run.stopped() || interrupted();
      if (ended && work_.share.ranks == 1) return;
      const Round round = order_.round(run.first_pass + slice_.pass, position_);
      Reader& reader = *objects_.find(round.object);
      slot.started_ns = now;
      if (ended || !round.sample) {
        const Result<void> empty_read = reader.read_at_all(0, {});
        now = run.now_ns();
        if (!empty_read.ok() && !ended) run.note_error(empty_read.error());
        continue;
      }
      slot.sample = *round.sample;
      const SampleList::Sample& sample = slot.entry = (*work_.samples)[slot.sample];
      Result<void> outcome = reader.read_at_all(sample.offset, slot.buffer.first(sample.length));
      if (outcome.ok()) outcome = inspect(run, slot, sample.length);
      now = run.now_ns();
      account(run, slot, outcome, now);
    }
  }
}

std::unique_ptr<ReadWorker> collective_worker(const ReadWork& work, const ReadOptions& options,
                                              HeldObjects& objects) {
  return std::make_unique<CollectiveWorker>(work, options, objects);
}

}  // namespace penstock
