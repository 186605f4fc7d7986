// Threads: work() and everything that it calls run on one thread per worker. The thread of ReadEngine::run()
// is also the thread of the first worker. Only that thread makes the workers and the ReadRun, calls
// ReadRun::open_gate(), ReadRun::call_off() and the functions in ReadSpec, and calls `watch`. After it has
// joined the other threads, it calls the functions that return results.
// Locks: ReadRun::mutex_ guards the errors. SampleSource and Arrivals have locks of their own. The gate
// (where workers wait for the start of the clock) and the stonewall are latches. No lock is held during a
// read.
// Memory order: a thread writes plain members of ReadRun before it counts a latch down. Other threads read
// them after they waited for that latch. The relaxed atomics are only counters and a stop flag.
// Memory: reading a sample allocates nothing in this file. The back end may allocate, and so may the decoder
// of --decode. Each second of a run appends one number to a vector. An error allocates its text.
// Ctrl-C: workers check interrupted() before each sample. A read in flight is not cut short.
// Crash: nothing is written.
#include "benchmarks/read/read_worker.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kWatchIntervalNs = kSecondNs / 10;

}  // namespace

ReadRun::ReadRun(uint64_t samples, const ReadOptions& options, const RankShare& share,
                 const ReadSpec& run_spec, uint64_t first_pass_number, ReadWorkers all_workers)
    : source(samples, run_spec.threads, run_spec.max_passes,
             time_limit(run_spec.end).count() != 0 ? INT64_MAX
                                                   : (shortest_time(run_spec.end) + run_spec.ramp).count()),
      spec(run_spec),
      workers(all_workers),
      first_pass(first_pass_number),
      deadline_ns(time_limit(run_spec.end).count()),
      skip_errors(options.skip_errors),
      workers_ready_(ptrdiff_t(all_workers.size()) - 1),
      workers_at_stonewall_(ptrdiff_t(all_workers.size())) {
  if (options.open_loop && spec.measured_repeat)
    arrivals.emplace(*options.open_loop, options.seed, share, *spec.measured_repeat);
}

// Blocks a worker until the clock of the run starts. The first worker does not wait: its thread has already
// called open_gate(). Returns false if the run was called off.
bool ReadRun::wait_at_gate(const ReadWorker& caller) {
  if (workers.front().get() == &caller) return true;
  workers_ready_.count_down();
  gate_.wait();
  return !called_off_;
}

void ReadRun::open_gate() {
  workers_ready_.wait();
  // at_gate() waits for the other ranks, so the clock starts after it. start_ is written before the gate
  // opens, because the workers read it.
  if (spec.at_gate) spec.at_gate();
  start_ = std::chrono::steady_clock::now();
  gate_.count_down();
}

// Makes the workers at the gate return without reading. Called instead of open_gate() if a thread could not
// be started.
void ReadRun::call_off() {
  called_off_ = true;
  gate_.count_down();
}

// Blocks until all workers have stopped at the stonewall. Each worker must call this after its loop, also
// after an error or Ctrl-C: without its call the other workers would wait for ever.
void ReadRun::wait_at_stonewall(const ReadWorker& caller) {
  workers_at_stonewall_.count_down();
  if (workers.front().get() != &caller) return stonewall_open_.wait();
  workers_at_stonewall_.wait();
  // All other workers now wait in this function. Each wrote its plain members before its count_down(), so
  // this thread may read them.
  uint64_t samples_taken = 0;
  int64_t last_done_ns = 0;
  for (const std::unique_ptr<ReadWorker>& worker : workers) {
    samples_taken += worker->samples_taken();
    last_done_ns = std::max(last_done_ns, worker->last_done_ns());
    run_figures.stonewall_bytes += worker->bytes_after_ramp();
  }
  run_figures.stonewall_s = seconds_after_ramp(last_done_ns);
  const uint64_t most_taken = spec.at_stonewall ? spec.at_stonewall(samples_taken) : samples_taken;
  missing_samples_ = most_taken > samples_taken ? most_taken - samples_taken : 0;
  stonewall_open_.count_down();
}

// Keeps the error's text. Unless errors are skipped, it also stops the run: the other threads soon see stop_,
// and end before their next sample. Any thread may call this.
void ReadRun::note_error(Error error) {
  std::lock_guard lock(mutex_);
  if (run_figures.first_errors.size() < RunTally::kMostErrorsNamed)
    run_figures.first_errors.push_back(error.message());
  if (skip_errors) return;
  if (!run_figures.failure) run_figures.failure = std::move(error);
  stop_.store(true, std::memory_order_relaxed);
}

ReadWorker::ReadWorker(const ReadWork& work, const ReadOptions& options, HeldObjects& objects)
    : work_(work),
      options_(options),
      objects_(objects),
      whole_objects_(work.manifest->one_object_per_sample()),
      reader_(*work.backend, objects, whole_objects_, options.depth),
      order_(work.order(options)),
      checks_(work_) {}

// Makes the buffers and the queue. ReadEngine::make() calls it on its own thread, and a thread of each later
// run uses them. This is safe: these threads run one after another, and nothing is in flight between runs.
Result<void> ReadWorker::prepare() {
  const size_t depth = options_.depth;
  const size_t slot_bytes = whole_blocks(std::max<uint64_t>(work_.samples->largest_bytes(), 1));
  memory_.grow(whole_huge_pages(depth * slot_bytes));
  slots_ = std::vector<Slot>(depth);
  for (size_t i = 0; i < depth; ++i)
    slots_[i].buffer = memory_.first(depth * slot_bytes).subspan(i * slot_bytes, slot_bytes);
  if (options_.decode) PENSTOCK_TRY(checks_.prepare_decoder());
  if (depth == 1 && (options_.collective || options_.open_loop || !work_.backend->caps().queue_is_cheaper))
    return success();
  free_slots_.reserve(depth);
  return reader_.use_queue(depth, memory_.first(depth * slot_bytes));
}

void ReadWorker::work(ReadRun& run, const Watch& watch) {
  reset();
  watch_ = &watch;
  next_watch_ns_ = watch ? kWatchIntervalNs : INT64_MAX;
  ramp_ns_ = run.spec.ramp.count();
  second_ends_ns_ = ramp_ns_ + kSecondNs - run.spec.time_measured_before.count() % kSecondNs;
  handle_boundary(run, 0);
  if (run.arrivals)
    wait_and_read_in_open_loop(run);
  else
    wait_and_read(run);
  if (run.spec.measured_repeat && spans_are_profiled()) record_span(run);
}

void ReadWorker::wait_and_read(ReadRun& run) {
  if (!run.wait_at_gate(*this)) return;
  read_samples(run);
  if (std::holds_alternative<Stonewall>(run.spec.end)) {
    run.wait_at_stonewall(*this);
    reads_missing_samples_ = true;
    past_deadline_ = false;
    read_samples(run);
  }
  finish(run);
}

void ReadWorker::read_samples(ReadRun& run) {
  if (reader_.queued())
    read_through_queue(run);
  else
    read_one_at_a_time(run);
}

void ReadWorker::reset() {
  tally_ = RunTally{};
  slice_ = Slice{};
  position_ = 0;
  past_deadline_ = reads_missing_samples_ = false;
  samples_taken_ = 0;
  last_done_ns_ = 0;
  bytes_before_second_ = 0;
  ramp_samples_ = 0;
  delivered_samples_.store(0, std::memory_order_relaxed);
  delivered_bytes_.store(0, std::memory_order_relaxed);
  ramp_bytes_.store(0, std::memory_order_relaxed);
}

// Sets `sample` to the next sample, and prefetches the list entry of the sample after it. Returns false when
// there is nothing more to read. That is so at the end of the passes, at the time limit, after an error and
// after Ctrl-C. After the stonewall, it is so when the missing samples are read.
bool ReadWorker::next(ReadRun& run, int64_t now_ns, uint64_t& sample) {
  if (past_deadline_ || run.stopped() || interrupted()) return false;
  if (reads_missing_samples_ && !run.take_missing_sample()) return false;
  while (position_ >= slice_.end) {
    if (!run.source.take(now_ns, slice_)) return false;
    slice_.end = std::min(slice_.end, order_.begin(run.first_pass + slice_.pass));
    position_ = slice_.begin;
    if (position_ < slice_.end) next_sample_ = order_.sample(run.first_pass + slice_.pass, position_);
  }
  sample = next_sample_;
  if (++position_ < slice_.end) {
    next_sample_ = order_.sample(run.first_pass + slice_.pass, position_);
    work_.samples->prefetch(next_sample_);
  }
  ++samples_taken_;
  return true;
}

// The name of the sample's object, or "" if the object is already open. A read from an open object needs no
// name. So the two loads of the name, which could be cache misses, are saved.
inline std::string_view ReadWorker::object_name(const SampleList::Sample& entry) const {
  const bool needed = whole_objects_ || objects_.find(entry.object) == nullptr;
  return needed ? work_.samples->name(entry.object) : std::string_view();
}

// Reads one sample at a time. The clock is read once for each sample: the time at which one sample ends is
// also the time at which the next one starts.
void ReadWorker::read_one_at_a_time(ReadRun& run) {
  Slot& slot = slots_.front();
  const bool inspects = options_.decode || run.spec.verify;
  int64_t now = run.now_ns();
  while (next(run, now, slot.sample)) {
    slot.started_ns = now;
    slot.entry = (*work_.samples)[slot.sample];
    if (run.arrivals && !wait_until_due(run, slot.started_ns, now)) return;
    const Result<uint64_t> bytes = reader_.read(0, object_name(slot.entry), slot.entry, slot.buffer);
    if (bytes.ok() && *bytes == slot.entry.length && !inspects) {
      now = run.now_ns();
      count_read(run, slot.entry.length, slot.started_ns, now);
      continue;
    }
    const Result<void> outcome = bytes.ok() ? inspect(run, slot, *bytes) : Result<void>(bytes.error());
    now = run.now_ns();
    account(run, slot, outcome, now);
  }
}

// Reads samples with several reads in flight. A slot belongs to the back end from add() until reap() has
// returned its completion. This function returns only when nothing is in flight, also after an error or
// Ctrl-C, because the next run uses the same memory.
void ReadWorker::read_through_queue(ReadRun& run) {
  free_slots_.clear();
  for (size_t i = slots_.size(); i-- > 0;) free_slots_.push_back(uint32_t(i));

  bool more_samples = true;
  int64_t now = run.now_ns();
  while (true) {
    while (more_samples && !free_slots_.empty()) {
      Slot& slot = slots_[free_slots_.back()];
      more_samples = next(run, now, slot.sample);
      if (!more_samples) break;
      slot.started_ns = now;
      slot.entry = (*work_.samples)[slot.sample];
      const Result<void> added =
          reader_.add(free_slots_.back(), object_name(slot.entry), slot.entry, slot.buffer);
      if (added.ok())
        free_slots_.pop_back();
      else
        account(run, slot, added.error(), now);
    }
    if (!reader_.added().empty()) {
      // Read the clock before the reads start, so that a latency includes the time of the submit.
      now = run.now_ns();
      for (const Operation& starting : reader_.added()) slots_[starting.tag].started_ns = now;
      reader_.start(Start::with_reap);
    }
    if (reader_.in_flight() == 0) {
      if (reader_.added().empty() && !more_samples) return;
      if (reader_.added().empty()) continue;
      run.note_error(make_error(Errc::internal, "the queue accepts no operation although none is in flight"));
      reader_.forget_added();
      return;
    }
    const std::span<Completion> completions = reader_.reap();
    now = run.now_ns();
    for (Completion& completion : completions) {
      Slot& slot = slots_[completion.tag];
      Result<void> outcome = completion.bytes.ok() ? inspect(run, slot, *completion.bytes)
                                                   : Result<void>(std::move(completion.bytes).error());
      if (options_.decode || run.spec.verify) now = run.now_ns();
      account(run, slot, outcome, now);
      free_slots_.push_back(uint32_t(completion.tag));
    }
  }
}

Result<void> ReadWorker::inspect(const ReadRun& run, Slot& slot, uint64_t bytes) {
  PENSTOCK_TRY(checks_.check_length(slot.entry, bytes));
  const std::span<const std::byte> sample = slot.buffer.first(slot.entry.length);
  if (run.spec.verify) {
    Result<void> matches = checks_.check_checksum(slot.sample, slot.entry, sample);
    slot.wrong_checksum = !matches.ok() && matches.error().code == Errc::corrupt;
    if (!matches.ok()) return matches;
  }
  return options_.decode ? checks_.decode(slot.sample, slot.entry, sample, tally_.picture_warnings)
                         : success();
}

// Counts a finished read as a success or as an error. A read that Ctrl-C ended counts as neither. A sample
// with a wrong checksum is also counted in wrong_samples, even if its error then stops the run.
void ReadWorker::account(ReadRun& run, Slot& slot, const Result<void>& outcome, int64_t end_ns) {
  if (outcome.ok()) return count_read(run, slot.entry.length, slot.started_ns, end_ns);
  // The next call of next() notices Ctrl-C and ends the run.
  if (outcome.error().code == Errc::interrupted && interrupted()) return;
  if (end_ns >= next_boundary_ns_) handle_boundary(run, end_ns);
  ++tally_.errors;
  if (std::exchange(slot.wrong_checksum, false) && tally_.wrong_samples++ == 0)
    tally_.first_wrong_text = outcome.error().message();
  run.note_error(outcome.error());
}

// Counts a sample that was read. If the ramp or a second is over at end_ns, it first calls handle_boundary(),
// which ends the ramp or the second. So this sample counts for the time after the ramp or after that second.
void ReadWorker::count_read(ReadRun& run, uint64_t bytes, int64_t started_ns, int64_t end_ns) {
  if (end_ns >= next_boundary_ns_) handle_boundary(run, end_ns);
  tally_.latency_ns.add(uint64_t(end_ns - started_ns));
  last_done_ns_ = end_ns;
  delivered_samples_.store(delivered_samples() + 1, std::memory_order_relaxed);
  delivered_bytes_.store(delivered_bytes() + bytes, std::memory_order_relaxed);
}

// Does what is due when the clock passes next_boundary_ns_: ends the ramp, ends a second, notes that the
// deadline has passed, or calls `watch`. next_boundary_ns_ is the earliest of these four times, so each
// sample needs one comparison instead of four. Only the first worker calls `watch`, which prints and may take
// long.
void ReadWorker::handle_boundary(ReadRun& run, int64_t now_ns) {
  if (ramp_ns_ > 0 && now_ns >= ramp_ns_) {
    RunTally new_tally;  // Forget what was counted in the ramp, except for samples with wrong bytes.
    new_tally.errors = new_tally.wrong_samples = tally_.wrong_samples;
    new_tally.first_wrong_text = std::move(tally_.first_wrong_text);
    tally_ = std::move(new_tally);
    ramp_samples_ = delivered_samples();
    bytes_before_second_ = delivered_bytes();
    ramp_bytes_.store(bytes_before_second_, std::memory_order_relaxed);
    ramp_ns_ = 0;
  }
  while (ramp_ns_ == 0 && now_ns >= second_ends_ns_) {
    close_second();
    second_ends_ns_ += kSecondNs;
  }
  const int64_t deadline = reads_missing_samples_ ? 0 : run.deadline_ns;
  past_deadline_ = deadline != 0 && now_ns >= deadline;
  next_boundary_ns_ = ramp_ns_ > 0 ? ramp_ns_ : second_ends_ns_;
  if (now_ns >= next_watch_ns_) {
    (*watch_)(now_ns);
    next_watch_ns_ = now_ns + kWatchIntervalNs;
  }
  next_boundary_ns_ = std::min(next_boundary_ns_, next_watch_ns_);
  if (deadline != 0 && !past_deadline_) next_boundary_ns_ = std::min(next_boundary_ns_, deadline);
}

// Completes the tally of this worker. The first worker that ends also writes first_done_s and
// first_done_bytes of the run. first_done_bytes is the sum over all workers at this moment; the other workers
// may still be reading. These two figures are read only after the threads are joined, so they need no lock.
void ReadWorker::finish(ReadRun& run) {
  const int64_t now = run.now_ns();
  if (delivered_bytes() > bytes_before_second_) close_second();
  tally_.samples = delivered_samples() - ramp_samples_;
  tally_.bytes = bytes_after_ramp();
  if (run.any_worker_done.exchange(true)) return;
  run.run_figures.first_done_s = run.seconds_after_ramp(now);
  for (const std::unique_ptr<ReadWorker>& worker : run.workers)
    run.run_figures.first_done_bytes += worker->bytes_after_ramp();
}

void ReadWorker::close_second() {
  const uint64_t bytes = delivered_bytes();
  tally_.bytes_by_second.push_back(bytes - bytes_before_second_);
  bytes_before_second_ = bytes;
}

}  // namespace penstock
