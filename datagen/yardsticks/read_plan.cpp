// Threads: one thread calls LoopControl::run(), which starts the threads of the loop and joins them. Only the
// threads of the loop call next() and fail().
// Lock: LoopControl::mutex_ guards first_error_. It is not held during a read. next() takes no lock.
// Memory: run() allocates before the loop. next() and read_whole() allocate only for errors.
// Ctrl-C: next() returns false after a signal. Reads in flight are finished, and repeated after EINTR.
// Crash: nothing is written.
#include "datagen/yardsticks/read_plan.hpp"

#include <fcntl.h>

#include <algorithm>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {

Result<OpenObjects> open_objects(const ReadPlan& plan) {
  OpenObjects objects;
  const uint64_t held_count = plan.whole_objects ? 0 : max_open_objects(plan.samples.objects());
  for (uint64_t i = 0; i < held_count; ++i) {
    PENSTOCK_ASSIGN(auto reader, plan.backend.open(plan.samples.name(uint32_t(i))));
    objects.push_back(std::move(reader));
  }
  return objects;
}

Result<Reader*> reader_of(const ReadPlan& plan, const OpenObjects& held, uint32_t object,
                          std::unique_ptr<Reader>& own_reader) {
  if (object < held.size()) return held[object].get();
  own_reader.reset();
  PENSTOCK_ASSIGN(own_reader, plan.backend.open(plan.samples.name(object)));
  return own_reader.get();
}

bool can_use_system_calls(const Backend& backend) {
  const Caps& caps = backend.caps();
  return caps.native_path && !caps.emulated && !caps.bypasses_cache;
}

Result<Fd> open_root(const ReadPlan& plan) {
  const auto root = plan.backend.native_path("");
  if (!root) return make_error(Errc::unsupported, "readahead needs a back end with native paths");
  Fd fd(::open(root->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "cannot open folder", root->string());
  return fd;
}

Result<Fd> open_object(int root, const char* name) {
  Fd fd(retry_eintr([&] { return ::openat(root, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC); }));
  if (!fd) return errno_error(errno, "cannot open", name);
  return fd;
}

Result<void> read_whole(int fd, const SampleList::Sample& sample, std::byte* out, const char* name) {
  for (uint64_t done = 0; done < sample.length;) {
    const ssize_t bytes_read = ::pread(fd, out + done, sample.length - done, off_t(sample.offset + done));
    if (bytes_read == 0) return truncated_error(name, sample.offset, sample.length);
    if (bytes_read < 0 && errno != EINTR) return errno_error(errno, "cannot read", name);
    if (bytes_read > 0) done += uint64_t(bytes_read);
  }
  return success();
}

bool LoopControl::next(SampleList::Sample& sample, uint64_t* index) {
  const uint64_t n = next_read_.fetch_add(1, std::memory_order_relaxed);
  if (n >= end_.samples || plan_.samples.size() == 0 || ended_.load(std::memory_order_relaxed)) return false;
  // How often the clock is read: once in this many reads. One call takes about 25 ns.
  constexpr uint64_t kReadsPerClockCheck = 8;
  const bool time_is_up = n % kReadsPerClockCheck == 0 &&
                          end_.deadline != std::chrono::steady_clock::time_point::max() &&
                          std::chrono::steady_clock::now() >= end_.deadline;
  if (time_is_up || interrupted()) {
    ended_.store(true, std::memory_order_relaxed);
    return false;
  }
  const uint64_t read_number = (end_.first_read + n) % plan_.samples.size();
  const uint64_t number = plan_.order ? plan_.order(read_number) : read_number;
  sample = plan_.samples[number];
  if (index != nullptr) *index = number;
  return true;
}

void LoopControl::fail(Error error) {
  const std::lock_guard lock(mutex_);
  // An error caused by SIGINT (Ctrl-C) ends the loop, but is not a failure.
  if (first_error_ && !(error.code == Errc::interrupted && interrupted())) first_error_ = std::move(error);
  ended_.store(true, std::memory_order_relaxed);
}

Result<LoopDone> LoopControl::run(unsigned threads,
                                  const std::function<Result<void>(LoopDone&, unsigned)>& body) {
  threads = std::max(threads, 1U);
  std::vector<LoopDone> done(threads);
  const auto work = [&](unsigned thread) {
    LoopDone thread_result;
    if (auto result = body(thread_result, thread); !result) fail(std::move(result).error());
    done[thread] = thread_result;
    return success();
  };
  PENSTOCK_TRY(
      on_threads(threads, work, IfFewer::fail, [&] { ended_.store(true, std::memory_order_relaxed); }));
  PENSTOCK_TRY(std::move(first_error_));
  LoopDone sum;
  for (const LoopDone& one : done) {
    sum.samples += one.samples;
    sum.bytes += one.bytes;
  }
  return sum;
}

}  // namespace penstock
