// Micro-benchmark: read_at of every back end, warm, by size and thread, beside the simplest loop that does
// the same: pread of the same file.
#include <fcntl.h>

#include <chrono>
#include <mutex>
#include <string>

#include "benchmarks/micro/bench_folder.hpp"
#include "benchmarks/micro/microbench.hpp"
#include "io_backends/base/buffer.hpp"
#include "io_backends/base/fd.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_read_at;

namespace {

constexpr std::uint64_t kObjectBytes = std::uint64_t{64} << 20U;
constexpr std::size_t kSizes[] = {4096, std::size_t{128} << 10U, std::size_t{1} << 20U};

using Clock = std::chrono::steady_clock;

// What the threads of one benchmark share: made by the first that comes, gone with the last.
class Shared {
 public:
  Result<BenchFolder*> enter(const BackendInfo& info, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (inside_++ == 0) made_ = BenchFolder::make(info, bytes);
    if (!made_.ok()) return made_.error();
    return made_->get();
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) made_ = make_error(Errc::internal, "nobody is here");
  }

 private:
  std::mutex mutex_;
  unsigned inside_ = 0;
  Result<std::unique_ptr<BenchFolder>> made_ = make_error(Errc::internal, "nobody is here");
};

// Seconds for so many reads, one behind the other, or what went wrong.
template <class Read>
Result<double> seconds_of(std::int64_t reads, std::uint64_t bytes, std::size_t size, Read read) {
  const Clock::time_point start = Clock::now();
  for (std::int64_t i = 0; i < reads; ++i)
    PENSTOCK_TRY(read(static_cast<std::uint64_t>(i) % (bytes / size) * size));
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<double> baseline_seconds(const std::filesystem::path& file, std::int64_t reads, std::uint64_t bytes,
                                std::span<std::byte> out) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "cannot open", file.string());
  return seconds_of(reads, bytes, out.size(), [&](std::uint64_t at) -> Result<void> {
    if (::pread(fd.get(), out.data(), out.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(out.size()))
      return success();
    return errno_error(errno, "cannot read", file.string());
  });
}

Result<void> measure(benchmark::State& state, BenchFolder& folder, std::uint64_t bytes, std::size_t size) {
  Buffer memory(size);
  const std::span<std::byte> out = memory.first(size);
  PENSTOCK_ASSIGN(const auto reader, folder.backend().open(BenchFolder::kObject));
  double own_s = 0;
  const Clock::time_point start = Clock::now();
  std::uint64_t at = 0;
  for (auto _ : state) {
    PENSTOCK_TRY(reader->read_at(at, out));
    at = at + 2 * size <= bytes ? at + size : 0;
  }
  own_s = std::chrono::duration<double>(Clock::now() - start).count();
  state.SetBytesProcessed(static_cast<std::int64_t>(size) * state.iterations());
  if (const auto file = folder.backend().native_path(BenchFolder::kObject)) {
    PENSTOCK_ASSIGN(const double baseline_s, baseline_seconds(*file, state.iterations(), bytes, out));
    state.counters["of_baseline"] =
        benchmark::Counter(own_s > 0 ? baseline_s / own_s : 0, benchmark::Counter::kAvgThreads);
  }
  return success();
}

void add(Microbench& to) {
  for (const BackendInfo* const info : benchable_backends())
    for (const std::size_t size : kSizes)
      for (const int threads : {1, 2}) {
        const std::uint64_t bytes = to.smoke() ? size : kObjectBytes;
        const auto shared = std::make_shared<Shared>();
        to.add(std::string(info->name) + "/" + std::to_string(size),
               [info, size, bytes, shared](benchmark::State& state) {
                 const Result<BenchFolder*> folder = shared->enter(*info, bytes);
                 Result<void> done = folder.ok() ? measure(state, **folder, bytes, size) : folder.error();
                 shared->leave();
                 if (!done.ok()) give_up(state, done.error());
               })
            ->Threads(threads)
            ->UseRealTime();
      }
}

}  // namespace

const MicrobenchInfo microbench_read_at{
    .name = "read_at", .summary = "reads of every back end, warm, beside the plain loop", .add = add};

}  // namespace penstock
