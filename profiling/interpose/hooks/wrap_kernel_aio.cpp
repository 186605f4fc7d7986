// Wrappers of libaio, and the counting of the kernel's asynchronous I/O (kernel_aio.hpp).
//
// Threads: any thread, in a wrapper.
// Locks: none is held on entry. The table `kernel_blocks` (blocks.hpp) takes a lock of its own, which is not
// held during the program's call.
// Memory: from the kernel.
// Signals: a handler may call these functions. If it has interrupted io_submit() in its own thread, the
// handler's operations are made but not counted.
// Forks: a child forgets its parent's operations.
// End of the process: it is not known whether the operations still in flight have ended, so they count as
// dropped.
#include <signal.h>
#include <time.h>

#include "profiling/interpose/counting/asynchronous.hpp"
#include "profiling/interpose/hooks/kernel_aio.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {
constinit AsyncOperations kernel_blocks(PENSTOCK_RING);
}  // namespace

namespace penstock::interpose {

thread_local bool inside_io_submit __attribute__((tls_model("initial-exec"))) = false;

void add_kernel_operation(ThreadLog& log, const KernelAioBlock& block) noexcept {
  penstock_call call = PENSTOCK_CALL_OTHER;
  switch (block.opcode) {
    case KernelAioBlock::kRead:
    case KernelAioBlock::kReadVector:
      call = PENSTOCK_CALL_READ;
      break;
    case KernelAioBlock::kWrite:
    case KernelAioBlock::kWriteVector:
      call = PENSTOCK_CALL_WRITE;
      break;
    case KernelAioBlock::kSync:
    case KernelAioBlock::kDataSync:
      call = PENSTOCK_CALL_SYNC;
      break;
    default:
      return;
  }
  kernel_blocks.begin(log, &block, call, int(block.fd), block.offset, int64_t(block.bytes));
}

void remove_kernel_operation(const KernelAioBlock& block) noexcept {
  kernel_blocks.drop(&block);
}

void count_kernel_events(const KernelAioEvent* events, long count) noexcept {
  ThreadLog* log = count <= 0 ? nullptr : thread_log();
  for (long i = 0; log != nullptr && i < count; ++i) {
    kernel_blocks.end(*log, events[i].block, events[i].result);
  }
}

void count_finished_kernel_aio() noexcept {
  if (ThreadLog* log = thread_log()) {
    kernel_blocks.count_ended(*log, [](const Pending&, int64_t&) { return false; });
  }
}
void forget_kernel_aio() noexcept {
  kernel_blocks.forget_all();
}

}  // namespace penstock::interpose

// libaio makes its system calls inline, without libc's syscall(). So its functions must be wrapped.
PENSTOCK_WRAP_OF_LIBRARY(int, io_submit, (void* context, long count, KernelAioBlock** blocks)) {
  return submit_blocks(count, blocks, [&] { return real_io_submit<kCopy>(context, count, blocks); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_getevents,
                         (void* context, long at_least, long at_most, KernelAioEvent* events,
                          timespec* timeout)) {
  const int event_count = real_io_getevents<kCopy>(context, at_least, at_most, events, timeout);
  count_kernel_events(events, event_count);
  return event_count;
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_pgetevents,
                         (void* context, long at_least, long at_most, KernelAioEvent* events,
                          timespec* timeout, sigset_t* signals)) {
  const int event_count = real_io_pgetevents<kCopy>(context, at_least, at_most, events, timeout, signals);
  count_kernel_events(events, event_count);
  return event_count;
}
