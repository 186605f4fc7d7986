// Threads: the training loop's thread makes and destroys the burner and calls its public functions. It does
// the work of workers_[0] itself. Each further worker has a thread, which runs serve().
// Lock: mutex_ guards job_, job_number_ and busy_threads_. No thread holds it during the work. The words,
// rounds and time of a worker belong to its thread from begin() until wait_for_all() returns, then to the
// caller's thread. Each of these two threads takes mutex_ before it uses them, and so sees what the other
// thread wrote.
// Memory: after make() only calibrate() allocates.
// Ctrl-C: the signal handler only sets a flag. Workers test that flag after some rounds of work and then end
// their job early.
// Crash: this file writes no files.
#include "miniapps/pipeline/burner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <string>
#include <system_error>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kSlice = std::chrono::milliseconds(1);
// Work before the measurements, so that the processors reach their full clock rate.
constexpr nanoseconds kWarmUp = std::chrono::milliseconds(100);
constexpr nanoseconds kMeasuringTime = std::chrono::milliseconds(20);
constexpr size_t kMeasurements = 9;
constexpr size_t kWords = 512;  // 4 KiB: fits in the first-level cache of a processor

double seconds(nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

// The words that one thread computes on, and how many rounds of the current job that thread has done.
struct Burner::Worker {
  alignas(64) std::array<uint64_t, kWords> words{};
  uint64_t rounds = 0;
  nanoseconds work_time{0};

  // One round of multiplications and additions, which takes some microseconds. The compiler cannot omit a
  // round, because the next one starts from its results.
  void round() {
    constexpr int kPasses = 8;
    for (int pass = 0; pass < kPasses; ++pass)
      for (uint64_t& word : words) word = word * 6364136223846793005U + 1442695040888963407U;
  }

  void run_job(const Job& job, const std::stop_token& stop) {
    // A worker tests the clock, a request to stop and Ctrl-C once every 16 rounds.
    constexpr uint64_t kRoundsBetweenTests = 16;
    const Clock::time_point begin = Clock::now();
    for (rounds = 0; rounds < job.rounds;) {
      if (stop.stop_requested() || interrupted() || Clock::now() >= job.until) break;
      for (const uint64_t end = std::min(job.rounds, rounds + kRoundsBetweenTests); rounds < end; ++rounds)
        round();
    }
    work_time = Clock::now() - begin;
  }
};

Burner::Burner(double caller_share) : caller_share_(caller_share) {}

Result<std::unique_ptr<Burner>> Burner::make(double cores) {
  const double thread_count = std::ceil(cores);
  try {
    std::unique_ptr<Burner> burner(new Burner(cores - (thread_count - 1)));
    for (double i = 0; i < thread_count; ++i) burner->workers_.push_back(std::make_unique<Worker>());
    for (size_t i = 1; i < burner->workers_.size(); ++i)
      burner->threads_.emplace_back([self = burner.get(), worker = burner->workers_[i].get()](
                                        const std::stop_token& stop) { self->serve(*worker, stop); });
    return burner;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted,
                      "no memory left for threads that keep CPUs busy: choose a smaller burn=cpu:N");
  } catch (const std::system_error& error) {
    return no_more_threads(error, size_t(thread_count), "fewer busy CPUs (--burn, burn=cpu:N)");
  }
}

Burner::~Burner() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

// The whole life of a worker thread: it waits for job_number_ to change and does the new job. It compares
// numbers instead of jobs, since a job may be equal to the one before. It holds mutex_ except while it waits
// or does a job.
void Burner::serve(Worker& worker, const std::stop_token& stop) {
  uint64_t seen_number = 0;
  std::unique_lock lock(mutex_);
  while (job_changed_.wait(lock, stop, [&] { return job_number_ != seen_number; })) {
    seen_number = job_number_;
    const Job job = job_;
    lock.unlock();
    worker.run_job(job, stop);
    lock.lock();
    if (--busy_threads_ == 0) job_done_.notify_all();
  }
}

// Gives a job to the worker threads. Takes mutex_ itself. No worker may be working: the last call of
// wait_for_all() has returned.
void Burner::begin(const Job& job) {
  if (threads_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    job_ = job;
    busy_threads_ = threads_.size();
    ++job_number_;
  }
  job_changed_.notify_all();
}

// Waits until the worker threads have done the job. Takes mutex_ itself. After Ctrl-C it returns soon: the
// workers test for it and end the job.
void Burner::wait_for_all() {
  std::unique_lock lock(mutex_);
  job_done_.wait(lock, [&] { return busy_threads_ == 0; });
}

// Lets all threads work for `length`, and returns the rounds per second of one thread, as the mean of all
// threads. Divides by the longest work time of any thread. If there are more threads than processors, some
// threads may not run at all in so short a time. Such a thread has no rate of its own.
double Burner::measure_rate(nanoseconds length) {
  const Job job{.rounds = UINT64_MAX, .until = Clock::now() + length};
  begin(job);
  workers_.front()->run_job(job, {});
  wait_for_all();
  double rounds = 0;
  double longest_s = 1e-9;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    rounds += double(worker->rounds);
    longest_s = std::max(longest_s, seconds(worker->work_time));
  }
  return rounds / longest_s / double(workers_.size());
}

Result<void> Burner::calibrate() {
  measure_rate(kWarmUp);
  std::vector<double> rates;
  for (size_t i = 0; i < kMeasurements; ++i) {
    PENSTOCK_TRY(check_interrupt());
    rates.push_back(measure_rate(kMeasuringTime));
  }
  PENSTOCK_TRY(check_interrupt());
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  rounds_per_s_ = *most;
  spread_ = (*most - *least) / *most;
  return success();
}

// Occupies a fraction of a processor with the caller's thread: in each millisecond it works for
// `caller_share_` of it and sleeps for the rest. If a sleep was too long, the next sleeps are shorter. If the
// work took too long, the next sleeps are not shortened: the whole step takes longer.
void Burner::work_in_slices(nanoseconds duration) {
  while (duration.count() > 0 && !interrupted()) {
    const nanoseconds slice = std::min(kSlice, duration);
    duration -= slice;
    const double busy_s = seconds(slice) * caller_share_;
    workers_.front()->run_job({.rounds = uint64_t(std::llround(busy_s * rounds_per_s_))}, {});
    total_rounds_ += workers_.front()->rounds;
    const nanoseconds sleep_time(int64_t(seconds(slice) * (1 - caller_share_) * 1e9));
    const nanoseconds sleep_left = sleep_time - overslept_;
    if (sleep_left.count() <= 0) {
      overslept_ -= sleep_time;
      continue;
    }
    const Clock::time_point since = Clock::now();
    std::this_thread::sleep_until(since + sleep_left);
    overslept_ = Clock::now() - since - sleep_left;
  }
}

Result<void> Burner::work(nanoseconds duration) {
  const auto rounds = uint64_t(std::llround(seconds(duration) * rounds_per_s_));
  begin({.rounds = rounds});
  if (caller_share_ < 1) {
    work_in_slices(duration);
  } else {
    workers_.front()->run_job({.rounds = rounds}, {});
    total_rounds_ += workers_.front()->rounds;
  }
  wait_for_all();
  for (size_t i = 1; i < workers_.size(); ++i) total_rounds_ += workers_[i]->rounds;
  return check_interrupt();
}

}  // namespace penstock
