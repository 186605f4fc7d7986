// Micro-benchmark: read_at() of every back end on a warm object, by size and number of threads. The baseline
// is the simplest loop that does the same: pread() of the same file, or a copy if the object is in memory.
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "benchmarks/self/micro/bench_folder.hpp"
#include "benchmarks/self/micro/in_turns.hpp"
#include "benchmarks/self/micro/microbench.hpp"
#include "io_backends/backend/backend_info.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_read_at;

namespace {

constexpr uint64_t kObjectBytes = uint64_t{64} << 20U;
constexpr size_t kSizes[] = {4096, size_t{128} << 10U, size_t{1} << 20U};

constexpr size_t kBatchBytes = size_t{1} << 20U;

// The folder that the threads of one benchmark share. The first thread that enters makes it, and the last
// thread that leaves destroys it.
class SharedFolder {
 public:
  Result<BenchFolder*> enter(const BackendInfo& info, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (users_++ == 0) folder_ = BenchFolder::make(info, bytes);
    if (!folder_.ok()) return folder_.error();
    return folder_->get();
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) folder_ = make_error(Errc::internal, "the folder is not made yet");
  }

 private:
  std::mutex mutex_;
  unsigned users_ = 0;
  Result<std::unique_ptr<BenchFolder>> folder_ = make_error(Errc::internal, "the folder is not made yet");
};

// The offsets of successive reads of `size` bytes. After the last whole read, it begins again at 0.
class ReadOffsets {
 public:
  ReadOffsets(uint64_t bytes, size_t size) : bytes_(bytes), size_(size) {}
  uint64_t next() {
    const uint64_t at = at_;
    at_ = at + 2 * size_ <= bytes_ ? at + size_ : 0;
    return at;
  }

 private:
  const uint64_t bytes_;
  const size_t size_;
  uint64_t at_ = 0;
};

Result<void> measure(benchmark::State& state, BenchFolder& folder, uint64_t bytes, size_t size, bool smoke) {
  Buffer memory(size);
  const std::span<std::byte> out = memory.first(size);
  PENSTOCK_ASSIGN(const auto reader, folder.backend().open(BenchFolder::kObject));
  const Turns turns{.batch = smoke ? 1 : std::max<size_t>(kBatchBytes / size, 1), .bytes = size};
  ReadOffsets offsets(bytes, size);
  ReadOffsets plain_offsets(bytes, size);
  const auto read = [&] { return reader->read_at(offsets.next(), out); };
  const auto file = folder.backend().native_path(BenchFolder::kObject);
  if (!file) {  // the object is in memory
    Buffer all(bytes);
    std::fill_n(all.data(), bytes, std::byte{0x5a});
    return by_turns(state, turns, read, [&] {
      std::memcpy(out.data(), all.data() + plain_offsets.next(), size);
      benchmark::DoNotOptimize(out.data());
      benchmark::ClobberMemory();
    });
  }
  const Fd fd(::open(file->c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, "cannot open", file->string());
  return by_turns(state, turns, read, [&]() -> Result<void> {
    if (::pread(fd.get(), out.data(), size, off_t(plain_offsets.next())) == ssize_t(size)) return success();
    return errno_error(errno, "cannot read", file->string());
  });
}

void add(Microbench& to) {
  for (const BackendInfo* const info : benchable_backends())
    for (const size_t size : kSizes)
      for (const int threads : {1, 2}) {
        const uint64_t bytes = to.smoke() ? size : kObjectBytes;
        const auto shared = std::make_shared<SharedFolder>();
        to.add(std::string(info->name) + "/" + std::to_string(size),
               [info, size, bytes, shared, smoke = to.smoke()](benchmark::State& state) {
                 const Result<BenchFolder*> folder = shared->enter(*info, bytes);
                 Result<void> done =
                     folder.ok() ? measure(state, **folder, bytes, size, smoke) : folder.error();
                 shared->leave();
                 if (!done.ok()) give_up(state, done.error());
               })
            ->Threads(threads)
            ->UseManualTime();
      }
}

}  // namespace

const MicrobenchInfo microbench_read_at{
    .name = "read_at", .summary = "reads of every back end, warm, against the plain loop", .add = add};

}  // namespace penstock
