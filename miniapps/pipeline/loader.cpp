// Threads: the training loop's thread makes and destroys the loader and calls its public functions. It is
// the consumer. Each worker thread runs work(), serve(), wait_for_room(), take(), fill(), transform() and
// settle().
// Lock: mutex_, one for all. It is not held during reads, transforms and the consumer's step. Samples that
// are moved to another batch (BatchPlan) are copied with it held.
// Slots of a batch: a slot belongs to its worker from take() to settle(), then to the plan. The batch belongs
// to the consumer from the return of next() to its next call. Each hand-over takes the lock, which makes the
// bytes visible to the next owner. So they need no other lock.
// Memory: workers allocate buffers that grow, and errors. The order of an epoch is allocated under the lock.
// Ctrl-C: workers do not look for it. next() returns `interrupted` within 50 ms, and the consumer ends the
// loader.
// Crash: nothing is written.
#include "miniapps/pipeline/loader.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <numeric>
#include <system_error>
#include <utility>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

constexpr std::chrono::milliseconds kInterruptPoll{50};

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

std::uint64_t nanoseconds_since(StageTimer::Clock::time_point then) {
  return static_cast<std::uint64_t>((StageTimer::Clock::now() - then).count());
}

// Whether another sample may take the slot. Not if memory ran out, on Ctrl-C, or for a bug of ours.
bool blames_sample(Errc code) {
  return code != Errc::exhausted && code != Errc::internal && code != Errc::interrupted;
}

}  // namespace

BatchLoader::BatchLoader(const LoaderInput& input, const LoaderSettings& settings)
    : input_(input),
      settings_(settings),
      objects_(*input.backend, objects_to_hold(*input.manifest, *input.backend)),
      plan_(
          settings.sampler, static_cast<std::uint32_t>(input.pool->shape().samples), input.pool->size() - 1,
          settings.limits,
          [pool = input.pool](const SampleMove& move) {
            move_sample((*pool)[move.from_place], move.from_slot, (*pool)[move.to_place], move.to_slot);
          },
          settings.spans == nullptr ? nullptr : &(*settings.spans)[settings.threads]) {}

Result<std::unique_ptr<BatchLoader>> BatchLoader::make(const LoaderInput& input,
                                                       const LoaderSettings& settings) {
  const std::uint64_t epoch = settings.sampler.per_epoch();
  const std::uint64_t batch = input.pool->shape().samples;
  if (epoch < batch) {
    return make_error(Errc::invalid_argument, "an epoch has " + std::to_string(epoch) +
                                                  " samples, fewer than one batch of " +
                                                  std::to_string(batch) + ": choose --batch " +
                                                  std::to_string(epoch) + " or smaller");
  }
  try {
    std::unique_ptr<BatchLoader> loader(new BatchLoader(input, settings));
    loader->workers_.resize(settings.threads);
    for (Worker& worker : loader->workers_) {
      if (input.app_transform->make) {
        PENSTOCK_ASSIGN(worker.transform, input.app_transform->make());
      }
      worker.taken.reserve(settings.depth);
      worker.asked.reserve(settings.depth);
      if (worker.transform) {
        PENSTOCK_ASSIGN(worker.opener, SampleOpener::make(input.manifest->facts().codec));
      }
      worker.timer = StageTimer(kPartFirstOwn + input.app_transform->stages.size());
      worker.spent_ns = worker.timer.spent_ns();
    }
    // Before the first thread, which may end at once. If one cannot start, the destructor of `loader` stops
    // the others.
    loader->working_ = settings.threads;
    for (Worker& worker : loader->workers_) {
      loader->threads_.emplace_back(
          [self = loader.get(), &worker](const std::stop_token& stop) { self->work(stop, worker); });
    }
    return loader;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory left for the input pipeline's workers");
  } catch (const std::system_error& error) {
    return make_error(Errc::exhausted, "cannot start " + std::to_string(settings.threads) +
                                           " worker threads: " + error.what() + ": choose fewer --threads");
  }
}

// Waits for each worker's current read, whatever its length: close() comes before where that may not return.
BatchLoader::~BatchLoader() {
  for (std::jthread& thread : threads_) thread.request_stop();  // all at once, before the first is joined
  threads_.clear();
  if (!in_place()) return;
  for (std::size_t i = 0; i < input_.pool->size(); ++i)  // readers die before the back end that made them
    for (StoredSample& sample : (*input_.pool)[i].stored) sample = {};
}

// By the consumer. False: a worker is still in the back end, so the process must end without the destructor.
bool BatchLoader::close(std::chrono::nanoseconds patience) {
  for (std::jthread& thread : threads_) thread.request_stop();
  std::unique_lock lock(mutex_);
  return head_moved_.wait_for(lock, patience, [this] { return working_ == 0; });
}

bool BatchLoader::stalled() const {
  const std::lock_guard lock(mutex_);
  return stalled_;
}

// With the lock held, and without allocating (both lists have room). No worker takes more than its share of
// the samples that may be started, so that all end at about the same time.
bool BatchLoader::take(Worker& worker) {
  worker.taken.clear();
  const std::uint64_t share = (plan_.to_take() + settings_.threads - 1) / settings_.threads;
  const std::size_t room = worker.reader->depth() - worker.reader->on_their_way();
  while (worker.taken.size() < std::min<std::uint64_t>(room, share)) {
    const std::optional<Ticket> ticket = plan_.take();
    if (!ticket) break;
    worker.taken.push_back(*ticket);
    worker.asked.push_back(*ticket);
  }
  return !worker.taken.empty() || worker.reader->on_their_way() > 0;
}

// Records each part of the worker's time as a span, if spans are requested. Each worker has its own buffer.
void BatchLoader::follow(Worker& worker) {
  if (settings_.spans == nullptr) return;
  std::vector<std::uint16_t> components{PENSTOCK_READ};
  for (const std::string_view stage : input_.app_transform->stages)
    components.push_back(stage == "decode" ? PENSTOCK_DECODE : PENSTOCK_TRANSFORM);
  worker.timer.follow((*settings_.spans)[static_cast<std::size_t>(&worker - workers_.data())],
                      std::move(components));
}

// The whole life of a worker thread. The reader is made and destroyed here, since its queue belongs to the
// thread that submits. Every exception ends in failure_: one that left the thread would end the process.
void BatchLoader::work(const std::stop_token& stop, Worker& worker) {
  std::optional<Error> failure;
  try {
    follow(worker);
    Result<std::unique_ptr<TicketReader>> reader =
        TicketReader::make(*input_.manifest, *input_.backend, objects_, settings_.depth, in_place());
    if (reader.ok()) {
      worker.reader = *std::move(reader);
      serve(stop, worker);
    } else {
      failure = std::move(reader).error();
    }
  } catch (const std::bad_alloc&) {
    failure = Error{Errc::exhausted, 0, "no memory left to read samples into"};
  } catch (const std::exception& error) {
    failure = Error{Errc::internal, 0, std::string("reading samples: ") + error.what()};
  }
  // The reader first: it may wait for the back end, and close() takes working_ == 0 for the end of all reads.
  worker.reader.reset();
  const std::lock_guard lock(mutex_);
  --working_;
  if (failure && !failure_) failure_ = std::move(failure);
  head_moved_.notify_one();
  if (failure_) work_there_.notify_all();
}

// With the lock held, which the wait releases. Ends by room, a failure or a stop. Only the first two count
// as time: the wait for the end of the run does not.
void BatchLoader::wait_for_room(std::unique_lock<std::mutex>& lock, const std::stop_token& stop,
                                Worker& worker) {
  worker.waiting_since = StageTimer::Clock::now();
  if (work_there_.wait(lock, stop, [this] { return failure_ || plan_.can_take(); })) {
    const StageTimer::Clock::time_point now = StageTimer::Clock::now();
    worker.waited_ns += static_cast<std::uint64_t>((now - *worker.waiting_since).count());
    worker.timer.span(PENSTOCK_WAIT, PENSTOCK_WAIT_ROOM, *worker.waiting_since, now, false);
  }
  worker.waiting_since.reset();
}

// The loop of a worker: take and settle with the lock, read and transform without it. It looks for a stop
// after each sample, so that a stop only waits for the reads in flight.
void BatchLoader::serve(const std::stop_token& stop, Worker& worker) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !failure_) {
    if (!take(worker)) {
      wait_for_room(lock, stop, worker);
      continue;
    }
    lock.unlock();
    worker.timer.restart();
    const StageTimer::Clock::time_point begin = worker.timer.last();
    for (const Ticket& ticket : worker.taken) {
      // The old object is closed before another is opened: there is a limit of mappings (kMostMapped).
      if (in_place()) (*input_.pool)[ticket.place].stored[ticket.slot].reader.reset();
      worker.reader->begin(ticket);
    }
    TicketReader::Arrival arrival = worker.reader->next();
    worker.timer.sample(arrival.ticket.epoch, arrival.ticket.index);
    worker.timer.end_part(kPartRead, arrival.bytes.ok() ? arrival.bytes->size() : 0);
    Result<void> outcome = fill(worker, arrival);
    worker.timer.span(PENSTOCK_LOAD, 0, begin, worker.timer.last(), true);
    lock.lock();
    settle(worker, arrival.ticket, std::move(outcome));
  }
}

Result<void> BatchLoader::transform(Worker& worker, const TicketReader::Arrival& arrival, Batch& batch) {
  // Without the lock: the slot is this worker's.
  const Ticket& ticket = arrival.ticket;
  const auto opened = worker.opener->open(*arrival.bytes);
  Result<void> applied = opened.ok() ? worker.transform->apply({ticket.epoch, ticket.index}, *opened,
                                                               batch.room(ticket.slot), worker.timer)
                                     : Result<void>(opened.error());
  if (applied.ok()) return applied;
  worker.timer.end_failed_part();
  Error error = std::move(applied).error();
  error.what = "cannot use '" + std::string(arrival.name) + "': " + error.what;
  return error;
}

Result<void> BatchLoader::fill(Worker& worker, TicketReader::Arrival& arrival) {
  // Without the lock, as in transform(). No exception leaves: every ticket must be settled, or the consumer
  // waits for its batch for ever.
  const Ticket& ticket = arrival.ticket;
  try {
    if (!arrival.bytes.ok()) return std::move(arrival.bytes).error();
    Batch& batch = (*input_.pool)[ticket.place];
    if (worker.transform) {
      PENSTOCK_TRY(transform(worker, arrival, batch));
    } else {
      worker.reader->give(batch.stored[ticket.slot]);
    }
    const SampleEntry& entry = input_.manifest->sample(ticket.index);
    batch.index[ticket.slot] = ticket.index;
    batch.label[ticket.slot] = entry.label;
    batch.length[ticket.slot] = entry.length;
    return {};
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory left for sample " + std::to_string(ticket.index));
  } catch (const std::exception& error) {
    return make_error(Errc::internal, "sample " + std::to_string(ticket.index) + ": " + error.what());
  }
}

// With the lock held. Allocates the name and the reason, for the first few objects only.
void BatchLoader::name_skipped(std::uint64_t index, const Error& error) {
  const SampleEntry& entry = input_.manifest->sample(index);
  std::string scratch;
  named_.name({.name = std::string(input_.manifest->object_name(entry.object, scratch)),
               .whole = input_.manifest->one_object_a_sample(),
               .offset = entry.offset,
               .why = error.message()});
}

// With the lock held. From here on the slot is no longer this worker's. The batch's time comes before
// done(), which may make it ready. plan_ may move samples between batches in done() and failed().
void BatchLoader::settle(Worker& worker, const Ticket& ticket, Result<void> outcome) {
  worker.spent_ns = worker.timer.spent_ns();
  last_sample_ = worker.timer.last();
  const auto asked = std::find_if(worker.asked.begin(), worker.asked.end(), [&](const Ticket& one) {
    return one.batch == ticket.batch && one.slot == ticket.slot && one.index == ticket.index;
  });
  if (asked != worker.asked.end()) {
    std::swap(*asked, worker.asked.back());
    worker.asked.pop_back();
  }
  bool moved = true;
  if (outcome.ok()) {
    Batch& batch = (*input_.pool)[ticket.place];
    batch.ready = std::max(batch.ready, worker.timer.last());
    moved = plan_.done(ticket);
  } else if (settings_.bad_sample == BadSample::skip && blames_sample(outcome.error().code)) {
    name_skipped(ticket.index, outcome.error());
    moved = plan_.failed(ticket);
  } else if (!failure_) {
    failure_ = std::move(outcome).error();
  }
  // Only one consumer waits for head_moved_, but every worker may wait for work.
  if (!moved) return;
  head_moved_.notify_one();
  if (failure_ || plan_.can_take()) work_there_.notify_all();
}

// With the lock held. Time by stage, then the time that workers waited for a place.
std::vector<std::uint64_t> BatchLoader::spent_ns() const {
  std::vector<std::uint64_t> sum(workers_.front().spent_ns.size() + 1, 0);
  for (const Worker& worker : workers_) {
    for (std::size_t i = 0; i + 1 < sum.size(); ++i) sum[i] += worker.spent_ns[i];
    sum.back() += worker.waited_ns;
    if (worker.waiting_since) sum.back() += nanoseconds_since(*worker.waiting_since);
  }
  return sum;
}

// The consumer's, with the lock held. Divides its wait by what the workers did meanwhile.
void BatchLoader::account_wait(StageTimer::Clock::time_point since, const std::vector<std::uint64_t>& before,
                               const Batch* got) {
  const std::vector<std::uint64_t> after = spent_ns();
  worked_ns_.resize(after.size(), 0);
  for (std::size_t i = 0; i < after.size(); ++i) worked_ns_[i] += after[i] - before[i];
  const std::uint64_t waited = nanoseconds_since(since);
  const std::uint64_t late =
      got == nullptr ? 0 : std::min(waited, nanoseconds_since(std::max(since, got->ready)));
  woke_late_ns_ += late;
  consumer_waited_ns_ += waited - late;
}

std::vector<LostTime> BatchLoader::lost() const {
  std::vector<LostTime> parts{{"read", 0}};
  for (const std::string_view stage : input_.app_transform->stages) parts.push_back({std::string(stage), 0});
  parts.push_back({"collate", 0});
  const std::lock_guard lock(mutex_);
  const auto all =
      static_cast<double>(std::accumulate(worked_ns_.begin(), worked_ns_.end(), std::uint64_t{0}));
  double late = seconds(woke_late_ns_);
  if (all <= 0) late += seconds(consumer_waited_ns_);  // too short: no worker ended a part meanwhile
  for (std::size_t i = 0; all > 0 && i < parts.size(); ++i)
    parts[i].seconds = seconds(consumer_waited_ns_) * static_cast<double>(worked_ns_[i]) / all;
  parts.push_back({"queue", late});
  return parts;
}

// The consumer gives its last batch back by this call: request() frees its place in the pool for the workers.
Result<const Batch*> BatchLoader::next() try {
  std::unique_lock lock(mutex_);
  plan_.request();
  if (plan_.can_take()) work_there_.notify_all();
  if (failure_ || plan_.head() != BatchPlan::Head::pending) return pull(lock);
  const std::vector<std::uint64_t> before = spent_ns();
  const auto since = StageTimer::Clock::now();
  Result<const Batch*> got = pull(lock);
  account_wait(since, before, got.ok() ? *got : nullptr);
  return got;
} catch (const std::bad_alloc&) {
  return make_error(Errc::exhausted, "no memory left for the order of an epoch");
}

// The consumer's, with the lock held. A worker that is stuck in the back end is not ended by it: see close().
void BatchLoader::check_progress(StageTimer::Clock::time_point waiting_since) {
  const auto since = std::max(waiting_since, last_sample_);
  if (settings_.patience.count() == 0 || StageTimer::Clock::now() - since < settings_.patience) return;
  std::string what = "no sample has come for " +
                     format_seconds(std::chrono::duration<double>(settings_.patience).count()) +
                     ": the back end is stuck";
  const auto asked = std::find_if(workers_.begin(), workers_.end(),
                                  [](const Worker& worker) { return !worker.asked.empty(); });
  if (asked != workers_.end()) {
    std::string scratch;
    const std::uint64_t object = input_.manifest->sample(asked->asked.front().index).object;
    what += "; among those asked for is '" + std::string(input_.manifest->object_name(object, scratch)) + "'";
  }
  failure_ = Error{Errc::timed_out, 0, std::move(what)};
  stalled_ = true;
  work_there_.notify_all();
}

// The consumer's, with the lock held, which the wait releases. It waits in slices of 50 ms, because a signal
// wakes no condition variable. failure_ comes first: after it no batch is handed over.
Result<const Batch*> BatchLoader::pull(std::unique_lock<std::mutex>& lock) {
  const auto since = StageTimer::Clock::now();
  while (true) {
    if (failure_) return *failure_;
    switch (plan_.head()) {
      case BatchPlan::Head::ready: {
        const BatchPlan::Handed handed = plan_.hand_over();
        if (plan_.can_take()) work_there_.notify_all();
        Batch& batch = (*input_.pool)[handed.place];
        batch.epoch = handed.epoch;
        return static_cast<const Batch*>(&batch);
      }
      case BatchPlan::Head::ended:
        return static_cast<const Batch*>(nullptr);
      case BatchPlan::Head::empty_epoch:
        return make_error(Errc::corrupt,
                          "no batch of " + std::to_string(input_.pool->shape().samples) +
                              " good samples in a whole epoch of " +
                              std::to_string(settings_.sampler.per_epoch()) + ": " +
                              std::to_string(plan_.counts().skipped) + " are bad, the first: " +
                              (named_.named.empty() ? std::string("none") : named_.named.front().why));
      case BatchPlan::Head::pending:
        break;
    }
    PENSTOCK_TRY(check_interrupt());
    check_progress(since);
    if (!failure_) head_moved_.wait_for(lock, kInterruptPoll);
  }
}

std::vector<StageTally> BatchLoader::times() const {
  std::vector<StageTally> times;
  times.push_back({.stage = "read"});
  for (const std::string_view stage : input_.app_transform->stages)
    times.push_back({.stage = std::string(stage)});
  const std::lock_guard lock(mutex_);
  for (const Worker& worker : workers_) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      times[i].busy_s += seconds(worker.spent_ns[i]);
      times[i].blocked_s += seconds(worker.waited_ns);
      for (std::size_t other = 0; other < times.size(); ++other) {
        if (other < i) times[i].starved_s += seconds(worker.spent_ns[other]);
        if (other > i) times[i].blocked_s += seconds(worker.spent_ns[other]);
      }
    }
  }
  return times;
}

LoaderLosses BatchLoader::losses() const {
  const std::lock_guard lock(mutex_);
  return {plan_.counts().skipped, plan_.counts().dropped_tail, named_.named};
}

}  // namespace penstock
