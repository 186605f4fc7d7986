// Threads: the training loop's thread is the consumer. It makes and destroys the loader and calls next() and
// close(). Each worker thread runs work(), serve(), wait_for_slot(), take_tickets(), fill_slot(), transform()
// and record_outcome(). Any thread may call times(), losses(), lost_times() and stalled().
// Lock: one mutex_ for everything, not held during a read, a transform or a step. BatchPlan moves samples
// between batches under it. A SampleLoader belongs to one worker. HeldObjects has a lock of its own.
// Slots of a batch: a slot belongs to one worker from take_tickets() to record_outcome(), then to the plan.
// The batch belongs to the consumer from the return of next() to its next call. Each change of owner takes
// mutex_, which makes the bytes visible to the next owner.
// Memory: workers allocate buffers, names and errors. If memory runs out in SampleLoader::request(), the
// outcome is `exhausted`; SampleLoader::next() throws std::bad_alloc. Both end the run. With mutex_ held the
// code allocates the order of an epoch, names of bad objects, errors and small lists.
// Ctrl-C: the handler only sets a flag. Workers do not test it. next() tests it every 50 ms and returns
// `interrupted`; the consumer then calls close().
// Stop: close() and the destructor ask the workers to stop. A worker that waits for a slot ends at once; a
// worker that loads a sample ends after it. Its reader then waits for the reads in flight or cancels them.
// Crash: this file writes no files.
#include "miniapps/pipeline/loader.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"
#include "miniapps/pipeline/in_place.hpp"

namespace penstock {
namespace {

constexpr std::chrono::milliseconds kInterruptPoll{50};

uint64_t nanoseconds_since(StageTimer::Clock::time_point then) {
  return uint64_t((StageTimer::Clock::now() - then).count());
}

}  // namespace

SampleLoader::SampleLoader(const Manifest& manifest, Backend& backend, HeldObjects& objects, size_t depth,
                           bool in_place)
    : manifest_(manifest),
      whole_objects_(manifest.one_object_per_sample()),
      depth_(depth),
      in_place_(in_place),
      slots_(depth == 1 ? 1 : depth + 1),
      reader_(backend, objects, whole_objects_, slots_.size()) {
  for (size_t i = slots_.size(); i-- > 0;) free_slots_.push_back(uint32_t(i));
  completions_.reserve(slots_.size());
}

Result<std::unique_ptr<SampleLoader>> SampleLoader::make(const Manifest& manifest, Backend& backend,
                                                         HeldObjects& objects, size_t depth, bool in_place) {
  std::unique_ptr<SampleLoader> reader(new SampleLoader(manifest, backend, objects, depth, in_place));
  if (depth > 1) PENSTOCK_TRY(reader->reader_.use_queue(depth));
  return reader;
}

Result<void> SampleLoader::locate(Slot& slot) {
  const SampleEntry& entry = manifest_.sample(slot.ticket.index);
  slot.name.assign(manifest_.object_name(entry.object, slot.name_scratch));
  slot.sample = {.offset = entry.offset, .length = entry.length, .object = entry.object};
  if (manifest_.extent(slot.ticket.index).bytes > 0) return success();
  if (whole_objects_) return make_error(Errc::truncated, "'{}' is empty", slot.name);
  return make_error(Errc::truncated, "the sample at byte {} of '{}' is empty", entry.offset, slot.name);
}

void SampleLoader::grow(Slot& slot) const {
  const auto bytes = size_t(whole_blocks(slot.sample.length));
  slot.stored.memory.grow(bytes);
  slot.target = slot.stored.memory.first(bytes);
}

// Finds the bytes of a sample in the memory of the back end, for next(). Opens an object of one sample anew,
// as a read does. Without such memory it reads the sample: a mapping may lack pages that a read still gets.
Result<uint64_t> SampleLoader::find_in_place(uint32_t index) {
  Slot& slot = slots_[index];
  const SampleList::Sample& sample = slot.sample;
  if (whole_objects_) reader_.close(index);
  PENSTOCK_ASSIGN(Reader* const reader, reader_.reader(index, slot.name, sample.object));
  const Result<std::span<const std::byte>> found = reader->view(sample.offset, sample.length);
  slot.in_place = found.ok();
  if (slot.in_place) {
    slot.stored.bytes = *found;
    return sample.length;
  }
  grow(slot);
  PENSTOCK_TRY(reader->read_at(sample.offset, slot.target.first(size_t(sample.length))));
  return sample.length;
}

// Returns no error: every ticket must come back from next(), so that the loader can record its outcome.
void SampleLoader::request(const Ticket& ticket) {
  // At a depth of 1 there is only one slot, and the caller still has it. This call takes it back.
  if (free_slots_.empty()) set_free(*std::exchange(returned_slot_, std::nullopt));
  const uint32_t index = free_slots_.back();
  Slot& slot = slots_[index];
  free_slots_.pop_back();
  ++in_flight_;
  slot.ticket = ticket;
  slot.in_flight = true;
  try {
    Result<void> started = locate(slot);
    if (started.ok() && !in_place_) grow(slot);
    if (started.ok() && reader_.queued()) started = reader_.add(index, slot.name, slot.sample, slot.target);
    if (!started.ok()) return completions_.push_back({index, std::move(started).error()});
    if (!reader_.queued()) unread_slot_ = index;
  } catch (const std::bad_alloc&) {
    completions_.push_back(
        {index, Error{Errc::exhausted, 0, "no memory left for sample " + std::to_string(ticket.index)}});
  }
}

void SampleLoader::move_to(StoredSample& other) {
  Slot& slot = slots_[*returned_slot_];
  other.bytes = slot.stored.bytes;
  if (!slot.in_place) return std::swap(slot.stored.memory, other.memory);
  other.reader = reader_.take_reader(*returned_slot_);
}

// Closes the slot's object, except at a depth of 1: then the next sample may be in it, too.
void SampleLoader::set_free(uint32_t slot) {
  if (depth_ > 1) reader_.close(slot);
  free_slots_.push_back(slot);
}

// The queue returned nothing although reads are in flight: fails one of these samples and returns its slot,
// which is not used again: the back end may still write to it.
SampleLoader::Slot& SampleLoader::fail_lost_sample() {
  --in_flight_;
  Slot& lost = *std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.in_flight; });
  lost.outcome =
      make_error(Errc::internal, "the queue returned no result while '" + lost.name + "' was in flight");
  return lost;
}

SampleLoader::Slot& SampleLoader::next() {
  // The caller may use the slot that it got last only until this call: free that slot.
  if (returned_slot_) set_free(*std::exchange(returned_slot_, std::nullopt));
  if (unread_slot_) {
    const uint32_t index = *std::exchange(unread_slot_, std::nullopt);
    Slot& slot = slots_[index];
    completions_.push_back(
        {index, in_place_ ? find_in_place(index) : reader_.read(index, slot.name, slot.sample, slot.target)});
  } else if (reader_.queued()) {
    reader_.start(completions_.empty() ? Start::with_reap : Start::now);
  }
  if (completions_.empty()) {
    for (Completion& reaped : reader_.reap()) completions_.push_back(std::move(reaped));
    if (completions_.empty()) return fail_lost_sample();
    std::reverse(completions_.begin(), completions_.end());
  }
  Completion completion = std::move(completions_.back());
  completions_.pop_back();
  --in_flight_;
  returned_slot_ = uint32_t(completion.tag);
  Slot& slot = slots_[*returned_slot_];
  slot.in_flight = false;
  slot.outcome = success();
  if (!completion.bytes.ok()) {
    slot.outcome = std::move(completion.bytes).error();
  } else if (*completion.bytes != slot.sample.length) {
    slot.outcome = truncated_error(slot.name, *completion.bytes, slot.sample.length - *completion.bytes);
  } else if (!slot.in_place) {
    slot.stored.bytes = slot.stored.memory.first(size_t(*completion.bytes));
  }
  return slot;
}

BatchLoader::BatchLoader(const LoaderSettings& settings)
    : settings_(settings),
      objects_(*settings.backend, objects_to_hold(*settings.manifest, *settings.backend)),
      plan_(
          settings.sampler, uint32_t(settings.pool->shape().samples), settings.pool->size() - 1,
          settings.limits,
          [pool = settings.pool](const Ticket& from, const Ticket& to) {
            move_sample((*pool)[from.pool_index], from.slot, (*pool)[to.pool_index], to.slot);
          },
          settings.spans == nullptr ? nullptr : &(*settings.spans)[settings.threads]) {}

Result<std::unique_ptr<BatchLoader>> BatchLoader::make(const LoaderSettings& settings) {
  const uint64_t epoch_samples = settings.sampler.per_epoch();
  const uint64_t batch_samples = settings.pool->shape().samples;
  if (epoch_samples < batch_samples)
    return make_error(Errc::invalid_argument, "an epoch has " + std::to_string(epoch_samples) +
                                                  " samples, fewer than one batch of " +
                                                  std::to_string(batch_samples) + ": choose --batch " +
                                                  std::to_string(epoch_samples) + " or smaller");
  try {
    std::unique_ptr<BatchLoader> loader(new BatchLoader(settings));
    loader->workers_.resize(settings.threads);
    for (Worker& worker : loader->workers_) {
      if (settings.app_transform->make) {
        PENSTOCK_ASSIGN(worker.transform, settings.app_transform->make());
        PENSTOCK_ASSIGN(worker.opener, SampleOpener::make(*settings.manifest));
      }
      if (settings.manifest->forms() > 0) worker.unpacker.emplace(*settings.manifest);
      worker.new_tickets.reserve(settings.depth);
      worker.pending_tickets.reserve(settings.depth);
      worker.timer = StageTimer(kFirstOwnPart + settings.app_transform->stages.size());
      worker.spent_ns = worker.timer.spent_ns();
    }
    // Set before threads start: one may end at once. If one cannot start, ~BatchLoader stops the rest.
    loader->running_workers_ = settings.threads;
    for (Worker& worker : loader->workers_)
      loader->threads_.emplace_back(
          [self = loader.get(), &worker](const std::stop_token& stop) { self->work(stop, worker); });
    return loader;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory left for worker threads: choose fewer --threads");
  } catch (const std::system_error& error) {
    return no_more_threads(error, settings.threads, "fewer --threads");
  }
}

BatchLoader::~BatchLoader() {
  for (std::jthread& thread : threads_) thread.request_stop();  // ask all to stop before joining any
  threads_.clear();
  if (!in_place()) return;
  // A Reader must be destroyed before the back end that made it.
  for (size_t i = 0; i < settings_.pool->size(); ++i)
    for (StoredSample& sample : (*settings_.pool)[i].stored) sample = {};
}

// Called by the consumer. False: a worker is still in the back end. Then the destructor must never run.
bool BatchLoader::close(std::chrono::nanoseconds patience) {
  for (std::jthread& thread : threads_) thread.request_stop();
  std::unique_lock lock(mutex_);
  return head_changed_.wait_for(lock, patience, [this] { return running_workers_ == 0; });
}

bool BatchLoader::stalled() const {
  const std::lock_guard lock(mutex_);
  return stalled_;
}

// Takes tickets for a worker: as many as it can start reads for, but at most its share, so that all workers
// end at about the same time. False: no work. Called with mutex_ held. Uses only reserved memory.
bool BatchLoader::take_tickets(Worker& worker) {
  worker.new_tickets.clear();
  const uint64_t share = (plan_.startable_samples() + settings_.threads - 1) / settings_.threads;
  const size_t free_reads = worker.reader->depth() - worker.reader->in_flight();
  while (worker.new_tickets.size() < std::min<uint64_t>(free_reads, share)) {
    const std::optional<Ticket> ticket = plan_.take();
    if (!ticket) break;
    worker.new_tickets.push_back(*ticket);
    worker.pending_tickets.push_back(*ticket);
  }
  return !worker.new_tickets.empty() || worker.reader->in_flight() > 0;
}

// The life of a worker thread. serve() makes its reader and this function destroys it: a queue must be
// destroyed by the thread that submits to it. An exception is stored in failure_.
void BatchLoader::work(const std::stop_token& stop, Worker& worker) {
  std::optional<Error> failure;
  try {
    if (settings_.spans != nullptr)  // each worker has its own buffer
      worker.timer.record_spans((*settings_.spans)[size_t(&worker - workers_.data())],
                                settings_.app_transform->stages);
    if (const Result<void> served = serve(stop, worker); !served.ok()) failure = served.error();
  } catch (const std::bad_alloc&) {
    failure = Error{Errc::exhausted, 0, "no memory left to read samples into"};
  } catch (const std::exception& error) {
    failure = Error{Errc::internal, 0, std::string("reading samples: ") + error.what()};
  }
  // Destroy the reader first: it waits for its reads, and close() takes running_workers_ == 0 as their end.
  worker.reader.reset();
  const std::lock_guard lock(mutex_);
  --running_workers_;
  if (failure && !failure_) failure_ = std::move(failure);
  head_changed_.notify_one();
  if (failure_) work_available_.notify_all();
}

// Waits until a slot can be taken, a worker failed, or a stop. Called by a worker with mutex_ held, which the
// wait releases. A wait that ends with a stop is not counted: it is not part of the run.
void BatchLoader::wait_for_slot(std::unique_lock<std::mutex>& lock, const std::stop_token& stop,
                                Worker& worker) {
  worker.waiting_since = StageTimer::Clock::now();
  if (work_available_.wait(lock, stop, [this] { return failure_ || plan_.can_take(); })) {
    const StageTimer::Clock::time_point now = StageTimer::Clock::now();
    worker.waited_ns += uint64_t((now - *worker.waiting_since).count());
    worker.timer.span(PENSTOCK_WAIT, PENSTOCK_WAIT_ROOM, *worker.waiting_since, now, false);
  }
  worker.waiting_since.reset();
}

// The loop of a worker. It takes tickets and records outcomes with mutex_ held, and reads and transforms
// without it. It tests for a stop after each sample, so only that sample and reads in flight delay a stop.
Result<void> BatchLoader::serve(const std::stop_token& stop, Worker& worker) {
  PENSTOCK_ASSIGN(worker.reader, SampleLoader::make(*settings_.manifest, *settings_.backend, objects_,
                                                    settings_.depth, in_place()));
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !failure_) {
    if (!take_tickets(worker)) {
      wait_for_slot(lock, stop, worker);
      continue;
    }
    lock.unlock();
    worker.timer.restart();
    const StageTimer::Clock::time_point begin = worker.timer.last();
    for (const Ticket& ticket : worker.new_tickets) {
      // Close this slot's old object before opening another: mappings are limited (kMostMappings).
      if (in_place()) (*settings_.pool)[ticket.pool_index].stored[ticket.slot].reader.reset();
      worker.reader->request(ticket);
    }
    SampleLoader::Slot& sample = worker.reader->next();
    worker.timer.set_sample(sample.ticket.epoch, sample.ticket.index);
    worker.timer.end_part(kPartRead, sample.outcome.ok() ? sample.stored.bytes.size() : 0);
    Result<void> outcome = fill_slot(worker, sample);
    worker.timer.span(PENSTOCK_LOAD, 0, begin, worker.timer.last(), true);
    lock.lock();
    record_outcome(worker, sample.ticket, std::move(outcome));
  }
  return success();
}

Result<void> BatchLoader::transform(Worker& worker, const SampleLoader::Slot& sample,
                                    std::span<std::byte> tensor) {
  const auto opened = worker.opener->open(sample.ticket.index, sample.stored.bytes);
  Result<void> applied = opened.ok() ? worker.transform->apply({sample.ticket.epoch, sample.ticket.index},
                                                               *opened, tensor, worker.timer)
                                     : Result<void>(opened.error());
  if (applied.ok() && worker.transform->warnings().any())
    worker.pictures.add(worker.transform->warnings(), "'" + sample.name + "'");
  if (applied.ok()) return applied;
  worker.timer.end_failed_part();
  Error error = std::move(applied).error();
  error.what = "cannot use '" + sample.name + "': " + error.what;
  return error;
}

// Puts a sample into its slot, which the worker owns. Turns exceptions into errors.
Result<void> BatchLoader::fill_slot(Worker& worker, SampleLoader::Slot& sample) {
  const Ticket& ticket = sample.ticket;
  try {
    PENSTOCK_TRY(sample.outcome);
    Batch& batch = (*settings_.pool)[ticket.pool_index];
    if (worker.transform) {
      PENSTOCK_TRY(transform(worker, sample, batch.slot_memory(ticket.slot)));
    } else {
      StoredSample& stored = batch.stored[ticket.slot];
      worker.reader->move_to(stored);
      if (worker.unpacker) {
        PENSTOCK_TRY(undo_stored_form(*worker.unpacker, ticket.index, sample.name, stored));
        worker.timer.end_part(kPartRead);  // it has no stage of its own
      }
    }
    batch.index[ticket.slot] = ticket.index;
    batch.label[ticket.slot] = settings_.manifest->sample(ticket.index).label;
    batch.length[ticket.slot] = settings_.manifest->sample(ticket.index).length;
    return {};
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory left for sample " + std::to_string(ticket.index));
  } catch (const std::exception& error) {
    return make_error(Errc::internal, "sample " + std::to_string(ticket.index) + ": " + error.what());
  }
}

// Records the outcome of a ticket. mutex_ is held. Sets Batch::filled_at first, as record_filled() may
// complete the batch. It and record_failed() may move samples and throw std::bad_alloc.
void BatchLoader::record_outcome(Worker& worker, const Ticket& ticket, Result<void> outcome) {
  worker.spent_ns = worker.timer.spent_ns();
  last_outcome_time_ = worker.timer.last();
  std::erase_if(worker.pending_tickets, [&](const Ticket& one) {
    return one.batch == ticket.batch && one.slot == ticket.slot && one.index == ticket.index;
  });
  bool head_may_change = true;
  if (outcome.ok()) {
    if (worker.pictures.samples > 0) bad_objects_.pictures.add(std::exchange(worker.pictures, {}));
    Batch& batch = (*settings_.pool)[ticket.pool_index];
    batch.filled_at = std::max(batch.filled_at, worker.timer.last());
    head_may_change = plan_.record_filled(ticket);
  } else if (settings_.bad_sample == BadSample::skip && is_sample_error(outcome.error().code)) {
    // Allocates memory for each bad sample, but keeps it only for the first kMostNamed objects.
    bad_objects_.name(skipped_object(*settings_.manifest, ticket.index, outcome.error()));
    head_may_change = plan_.record_failed(ticket);
  } else if (!failure_) {
    failure_ = std::move(outcome).error();
    if (settings_.advises_skip && is_sample_error(failure_->code))
      failure_ = make_error(failure_->code, failure_->message() + std::string(kSkipAdvice));
  }
  // Only the consumer waits for head_changed_. Any number of workers wait for work_available_.
  if (!head_may_change) return;
  head_changed_.notify_one();
  if (failure_ || plan_.can_take()) work_available_.notify_all();
}

// The workers' time in each part, then in waits for a slot (`so_far`: also unfinished ones). mutex_ is held.
std::vector<uint64_t> BatchLoader::spent_ns(bool so_far) const {
  std::vector<uint64_t> sum(workers_.front().spent_ns.size() + 1, 0);
  for (const Worker& worker : workers_) {
    for (size_t i = 0; i + 1 < sum.size(); ++i) sum[i] += worker.spent_ns[i];
    sum.back() += worker.waited_ns;
    if (so_far && worker.waiting_since) sum.back() += nanoseconds_since(*worker.waiting_since);
  }
  return sum;
}

// Adds a consumer's wait, and the workers' time in it, to the sums for lost_times(). mutex_ is held.
void BatchLoader::account_wait(StageTimer::Clock::time_point since, const std::vector<uint64_t>& spent_before,
                               const Batch* batch) {
  const std::vector<uint64_t> spent_after = spent_ns(true);
  worked_ns_.resize(spent_after.size(), 0);
  for (size_t i = 0; i < spent_after.size(); ++i) worked_ns_[i] += spent_after[i] - spent_before[i];
  const uint64_t waited_ns = nanoseconds_since(since);
  const uint64_t late_ns =
      batch == nullptr ? 0 : std::min(waited_ns, nanoseconds_since(std::max(since, batch->filled_at)));
  woke_late_ns_ += late_ns;
  consumer_waited_ns_ += waited_ns - late_ns;
}

std::vector<LostTime> BatchLoader::lost_times() const {
  const std::lock_guard lock(mutex_);
  return lost_by_stage(settings_.app_transform->stages, worked_ns_, consumer_waited_ns_, woke_late_ns_);
}

Result<const Batch*> BatchLoader::next() try {
  std::unique_lock lock(mutex_);
  plan_.request();
  if (plan_.can_take()) work_available_.notify_all();
  if (failure_ || plan_.head() != BatchPlan::Head::pending) return wait_for_batch(lock);
  const std::vector<uint64_t> spent_before = spent_ns(true);
  const auto since = StageTimer::Clock::now();
  Result<const Batch*> batch = wait_for_batch(lock);
  account_wait(since, spent_before, batch.ok() ? *batch : nullptr);
  return batch;
} catch (const std::bad_alloc&) {
  return make_error(Errc::exhausted, "no memory left for the order of an epoch");
}

// If no sample came for `patience`, sets stalled_, and failure_ to timed_out; allocates only then. Called
// with mutex_ held. A worker that hangs in the back end keeps hanging: see close().
void BatchLoader::fail_if_stalled(StageTimer::Clock::time_point waiting_since) {
  const auto since = std::max(waiting_since, last_outcome_time_);
  if (settings_.patience.count() == 0 || StageTimer::Clock::now() - since < settings_.patience) return;
  std::string what = "no sample arrived for " +
                     format_seconds(std::chrono::duration<double>(settings_.patience).count()) +
                     ": the back end does not respond";
  const auto waiter = std::find_if(workers_.begin(), workers_.end(),
                                   [](const Worker& worker) { return !worker.pending_tickets.empty(); });
  if (waiter != workers_.end()) {
    std::string name;
    const uint64_t object = settings_.manifest->sample(waiter->pending_tickets.front().index).object;
    what += "; one requested object is '" + std::string(settings_.manifest->object_name(object, name)) + "'";
  }
  failure_ = Error{Errc::timed_out, 0, std::move(what)};
  stalled_ = true;
  work_available_.notify_all();
}

// Waits for the next batch and hands it over; after a failure it hands none over. Called with mutex_ held;
// the wait releases it. A signal does not wake a condition variable, so it waits 50 ms at a time.
Result<const Batch*> BatchLoader::wait_for_batch(std::unique_lock<std::mutex>& lock) {
  const auto since = StageTimer::Clock::now();
  while (true) {
    if (failure_) return *failure_;
    switch (plan_.head()) {
      case BatchPlan::Head::ready: {
        const uint64_t epoch = plan_.head_epoch();
        Batch& batch = (*settings_.pool)[plan_.hand_over()];
        batch.epoch = epoch;
        if (plan_.can_take()) work_available_.notify_all();
        return static_cast<const Batch*>(&batch);
      }
      case BatchPlan::Head::ended:
        return static_cast<const Batch*>(nullptr);
      case BatchPlan::Head::empty_epoch:
        return make_error(
            Errc::corrupt,
            "no batch of " + std::to_string(settings_.pool->shape().samples) +
                " samples in a whole epoch of " + std::to_string(settings_.sampler.per_epoch()) + ": " +
                std::to_string(plan_.skipped()) + " cannot be used, the first: " +
                (bad_objects_.named.empty() ? std::string("none") : bad_objects_.named.front().why));
      case BatchPlan::Head::pending:
        break;
    }
    PENSTOCK_TRY(check_interrupt());
    fail_if_stalled(since);
    if (!failure_) head_changed_.wait_for(lock, kInterruptPoll);
  }
}

std::vector<StageTally> BatchLoader::times() const {
  const std::lock_guard lock(mutex_);
  // Leaves out waits that have not ended: after the last sample, a worker waits only for the end of the run.
  return stage_tallies(settings_.app_transform->stages, spent_ns(false));
}

LoaderLosses BatchLoader::losses() const {
  const std::lock_guard lock(mutex_);
  return {plan_.skipped(), plan_.dropped_tail(), bad_objects_.named, bad_objects_.pictures};
}

}  // namespace penstock
