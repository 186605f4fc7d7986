// Wrappers of libaio, and the counting of the kernel's asynchronous I/O (kernel_aio.hpp).
//
// Threads: any thread, in a wrapper.
// Locks: none is held on entry. The table `kernel_blocks` (blocks.hpp) takes a lock of its own, which is not
// held during the program's call.
// Memory: from the kernel.
// Signals: a handler may call these functions. If it has interrupted io_submit() in its own thread, the
// handler's operations are made but not counted.
// Forks: a child forgets its parent's operations.
//
// Results are found in two ways: in the events that io_getevents() returns, and in the ring where the kernel
// stores them. The program may take events out of the ring itself. The ring is read before each io_submit(),
// and no event can be overwritten between two such calls: the kernel accepts only as many operations as the
// ring has room for. An operation that is found in the ring is removed from the table, so that it is not
// counted again. Its end is the time when it was found.
// End of the process: the ring is read once more. It is not known whether the operations still in flight have
// ended, so they count as dropped.
#include <signal.h>
#include <time.h>

#include "profiling/interpose/counting/asynchronous.hpp"
#include "profiling/interpose/hooks/kernel_aio.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {
constinit AsyncOperations kernel_blocks(PENSTOCK_RING);

// The begin of a context's memory. The kernel writes `tail` and the events, and the program may write `head`.
struct KernelAioRing {
  uint32_t id;
  uint32_t event_count;
  uint32_t head;
  uint32_t tail;
  uint32_t magic;
  uint32_t features[2];
  uint32_t header_bytes;
};
static_assert(sizeof(KernelAioRing) == 32);
constexpr uint32_t kRingMagic = 0xa10a10a1;

struct Context {
  const KernelAioRing* ring = nullptr;
  uint32_t next_event = 0;  // the events before this one have been read
};
constexpr size_t kMostContexts = 256;
Context contexts[kMostContexts];  // guarded by contexts_lock
size_t used_contexts = 0;
constinit OwnedLock contexts_lock;

// Counts the events from `next_event` on. The caller holds contexts_lock.
void count_new_events(ThreadLog& log, Context& context, uint32_t tail) noexcept {
  const KernelAioRing& ring = *context.ring;
  const auto* events = reinterpret_cast<const KernelAioEvent*>(&ring + 1);
  uint32_t at = context.next_event < ring.event_count ? context.next_event : 0;
  for (; at != tail; at = at + 1 < ring.event_count ? at + 1 : 0) {
    kernel_blocks.end(log, events[at].block, events[at].result);
  }
  context.next_event = tail;
}

bool has_ring(const KernelAioRing& ring) noexcept {
  return ring.magic == kRingMagic && ring.header_bytes == sizeof(KernelAioRing) && ring.event_count != 0 &&
         ring.head < ring.event_count && ring.tail < ring.event_count;
}

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

// A context is known from its first successful io_submit() on; before that its address may be wrong. Events
// of a new ring begin at 0. In a ring that was used before recording began, they begin at `head`.
// May wait in Update (counting.hpp) with contexts_lock held, as AsyncOperations::count_ended() does.
void count_ring_of_context(const void* context, long accepted, bool ends) noexcept {
  ThreadLog* log = thread_log();
  const LockGuard guard(contexts_lock);
  if (log == nullptr || !guard.has_lock()) {
    return;
  }
  const auto* ring = static_cast<const KernelAioRing*>(context);
  size_t i = 0;
  while (i < used_contexts && contexts[i].ring != ring) {
    ++i;
  }
  if (i == used_contexts) {
    KernelAioRing copy{};
    if (accepted == 0 || used_contexts == kMostContexts || !copy_memory(ring, &copy, sizeof(copy)) ||
        !has_ring(copy)) {
      return;
    }
    contexts[used_contexts++] = {.ring = ring, .next_event = copy.tail <= uint32_t(accepted) ? 0 : copy.head};
  }
  if (const uint32_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE); tail < ring->event_count) {
    count_new_events(*log, contexts[i], tail);
  }
  if (ends) {
    contexts[i] = contexts[--used_contexts];
  }
}

void count_finished_kernel_aio() noexcept {
  if (ThreadLog* log = thread_log()) {
    {
      const LockGuard guard(contexts_lock);
      for (size_t i = 0; guard.has_lock() && i < used_contexts; ++i) {
        KernelAioRing copy{};  // the ring may be gone, if io_destroy() was not seen
        if (copy_memory(contexts[i].ring, &copy, sizeof(copy)) && has_ring(copy)) {
          count_new_events(*log, contexts[i], copy.tail);
        }
      }
    }
    kernel_blocks.count_ended(*log, [](const Pending&, int64_t&) { return false; });
  }
}
void forget_kernel_aio() noexcept {
  contexts_lock.reset();
  used_contexts = 0;
  kernel_blocks.forget_all();
}

}  // namespace penstock::interpose

// libaio makes its system calls inline, without libc's syscall(). So its functions must be wrapped.
PENSTOCK_WRAP_OF_LIBRARY(int, io_submit, (void* context, long count, KernelAioBlock** blocks)) {
  return submit_blocks(context, count, blocks, [&] { return real_io_submit<kCopy>(context, count, blocks); });
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
PENSTOCK_WRAP_OF_LIBRARY(int, io_destroy, (void* context)) {
  count_ring_of_context(context, 0, true);
  return real_io_destroy<kCopy>(context);
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_queue_release, (void* context)) {
  count_ring_of_context(context, 0, true);
  return real_io_queue_release<kCopy>(context);
}
