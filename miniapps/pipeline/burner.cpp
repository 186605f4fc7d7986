#include "miniapps/pipeline/burner.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <string>
#include <system_error>

#include "io_backends/base/interrupt.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(1);

// Busy for its share of each slice, from the slice's beginning.
void burn(Clock::time_point deadline, double share, const std::stop_token& stop) {
  const auto busy = std::chrono::duration_cast<Clock::duration>(kSlice * share);
  for (Clock::time_point begin = Clock::now(); begin < deadline && !interrupted() && !stop.stop_requested();
       begin = Clock::now()) {
    const Clock::time_point end = std::min(deadline, begin + kSlice);
    const Clock::time_point rest = std::min(deadline, begin + busy);
    while (Clock::now() < rest) {
    }
    if (share < 1) std::this_thread::sleep_until(end);
  }
}

}  // namespace

Result<std::unique_ptr<Burner>> Burner::make(double cores) {
  const double whole = std::ceil(cores);
  std::unique_ptr<Burner> burner(new Burner(cores - (whole - 1)));
  try {
    for (double i = 1; i < whole; ++i)
      burner->threads_.emplace_back([self = burner.get()](const std::stop_token& stop) { self->work(stop); });
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory left for threads that occupy processors");
  } catch (const std::system_error& error) {
    return make_error(Errc::exhausted, "cannot start threads to occupy " + std::to_string(cores) +
                                           " processors: " + error.what());
  }
  return burner;
}

Burner::~Burner() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void Burner::work(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (told_.wait(lock, stop, [&] { return round_ != seen; })) {
    seen = round_;
    const Clock::time_point deadline = deadline_;
    lock.unlock();
    burn(deadline, 1.0, stop);
    lock.lock();
  }
}

Result<void> Burner::until(Clock::time_point deadline) {
  if (!threads_.empty()) {
    {
      const std::lock_guard lock(mutex_);
      deadline_ = deadline;
      ++round_;
    }
    told_.notify_all();
  }
  burn(deadline, caller_share_, {});
  return check_interrupt();
}

}  // namespace penstock
