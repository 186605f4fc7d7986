// Counts the kernel's asynchronous I/O (io_submit(), io_getevents()). The program may use it through libaio
// or by syscall(). The structs here have the layouts that the kernel defines.
//
// Threads: any thread, in a wrapper.
// Locks: none is held on entry. The table of operations has a lock of its own (blocks.hpp).
// Memory: from the kernel.
// Signals: if a handler interrupts io_submit() and calls io_submit() itself, the handler's call is made but
// not counted.
#pragma once

#include "profiling/interpose/counting/blocks.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

namespace penstock::interpose {

struct KernelAioBlock {
  enum : uint16_t { kRead, kWrite, kSync, kDataSync, kReadVector = 7, kWriteVector = 8 };
  uint64_t data;
  uint32_t key[2];
  uint16_t opcode;
  int16_t priority;
  uint32_t fd;
  uint64_t buffer;
  uint64_t bytes;
  int64_t offset;
  uint64_t reserved[2];
};
struct KernelAioEvent {
  uint64_t data;
  const KernelAioBlock* block;
  int64_t result;
  int64_t result2;
};
static_assert(sizeof(KernelAioBlock) == 64 && sizeof(KernelAioEvent) == 32);

// Remembers an operation that the program submits. Called before the kernel gets its block.
void add_kernel_operation(ThreadLog& log, const KernelAioBlock& block) noexcept;
// Forgets an operation whose block the kernel did not accept.
void remove_kernel_operation(const KernelAioBlock& block) noexcept;
// Counts the operations that have ended according to these `count` events. Called when the program has
// received the events.
void count_kernel_events(const KernelAioEvent* events, long count) noexcept;

// True while this thread is inside io_submit(). libaio may make its system call by syscall(), which is
// wrapped too. That inner call is not counted while the flag is set; otherwise the blocks would be counted
// twice. If a handler calls io_submit() while the flag is set, its blocks are not counted either.
extern thread_local bool inside_io_submit __attribute__((tls_model("initial-exec")));

// Counts the operations whose results are in the ring of `context`, also if the program takes them out of the
// ring's memory itself (as libaio's header shows) and calls nothing. Called before io_submit(), with
// `accepted` 0; after it, with the number of accepted blocks; and before io_destroy(), with `ends` true.
// `context` is the ring's address.
void count_ring_of_context(const void* context, long accepted, bool ends = false) noexcept;

// Makes `call`, which submits the first `count` of `blocks` and returns how many the kernel accepted. All
// operations are remembered before the call, because another thread may receive their results before the call
// returns. Operations that the kernel did not accept are forgotten after the call.
auto submit_blocks(const void* context, long count, const KernelAioBlock* const* blocks, auto call) noexcept {
  ThreadLog* log = inside_io_submit ? nullptr : thread_log();
  if (log == nullptr) {
    return call();
  }
  count_ring_of_context(context, 0);
  inside_io_submit = true;
  ReadableMemory pointers;
  ReadableMemory memory;
  long readable_count = 0;  // the kernel accepts no block from the first unreadable one on
  while (readable_count < count && pointers.has(&blocks[readable_count], sizeof(blocks[0])) &&
         memory.has(blocks[readable_count], sizeof(KernelAioBlock))) {
    add_kernel_operation(*log, *blocks[readable_count++]);
  }
  const auto accepted_count = call();
  inside_io_submit = false;
  if (accepted_count > 0) {
    count_ring_of_context(context, accepted_count);
  }
  for (long i = accepted_count < 0 ? 0 : accepted_count; i < readable_count; ++i) {
    remove_kernel_operation(*blocks[i]);
  }
  return accepted_count;
}

}  // namespace penstock::interpose
