// Micro-benchmark: opens and closes an object with every back end. The baseline is openat() and close() on
// the same file.
#include <fcntl.h>

#include <string>

#include "benchmarks/self/micro/bench_folder.hpp"
#include "benchmarks/self/micro/in_turns.hpp"
#include "benchmarks/self/micro/microbench.hpp"
#include "io_backends/backend/backend_info.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_open_close;

namespace {

constexpr size_t kBatch = 32;

Result<void> measure(benchmark::State& state, const BackendInfo& info, bool smoke) {
  PENSTOCK_ASSIGN(const auto folder, BenchFolder::make(info, 4096));
  const auto file = folder->backend().native_path(BenchFolder::kObject);
  // The baseline opens the file relative to an open folder, as back ends do.
  Fd root;
  if (file) root = Fd(::open(file->parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (file && !root) return errno_error(errno, "cannot open", file->parent_path().string());
  const std::string name(BenchFolder::kObject);
  return by_turns(
      state, {.batch = smoke ? 1 : kBatch, .has_baseline = file.has_value()},
      [&]() -> Result<void> {
        PENSTOCK_TRY(folder->backend().open(BenchFolder::kObject));
        return success();
      },
      [&]() -> Result<void> {
        const int fd = ::openat(root.get(), name.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && ::close(fd) == 0) return success();
        return errno_error(errno, "cannot open", file->string());
      });
}

void add(Microbench& to) {
  for (const BackendInfo* const info : benchable_backends())
    to.add(info->name, [info, smoke = to.smoke()](benchmark::State& state) {
        const Result<void> done = measure(state, *info, smoke);
        if (!done.ok()) give_up(state, done.error());
      })->UseManualTime();
}

}  // namespace

const MicrobenchInfo microbench_open_close{
    .name = "open_close", .summary = "an object opened and closed, by every back end", .add = add};

}  // namespace penstock
