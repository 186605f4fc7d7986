// Wrappers of POSIX asynchronous I/O, whose reads and writes are made by threads of libc, without any
// wrapper. An operation is counted once: when the program learns that it has ended, or when the program ends.
//
// Threads: any thread that calls these functions.
// Locks: none is held on entry. The table `aio_blocks` takes a lock of its own, which is not held during the
// program's call (blocks.hpp).
// Memory: from the kernel. errno stays that of the program's call.
// Signals: aio_error() and aio_return() are allowed in handlers. If a handler interrupts its own thread while
// that thread holds the lock of `aio_blocks`, the handler's operation is not counted.
// Forks: a child forgets its parent's operations (forget_aio()).
#include <aio.h>

#include "profiling/interpose/counting/asynchronous.hpp"
#include "profiling/interpose/counting/blocks.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

constinit AsyncOperations aio_blocks(PENSTOCK_POSIX);

template <typename Block, typename Call>
int start_operation(Block* block, penstock_call call, Call start) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return start();
  }
  aio_blocks.begin(*log, block, call, block->aio_fildes, block->aio_offset, int64_t(block->aio_nbytes));
  const int result = start();
  if (result != 0) {
    const int saved_errno = errno;
    aio_blocks.end(*log, block, -saved_errno);
    errno = saved_errno;
  }
  return result;
}

void count_result(const void* block, int64_t result) noexcept {
  if (ThreadLog* log = thread_log()) {
    aio_blocks.end(*log, block, result);
  }
}

// Makes `call`, which is aio_error(). If it returns 0 or an errno value other than EINPROGRESS, the operation
// has ended, and is counted. The operation's result is then in the block.
template <typename Block, typename Call>
int get_status(const Block* block, Call call) noexcept {
  const int error = call();
  if (error == 0) {
    count_result(block, block->__return_value);
  } else if (error != EINPROGRESS && error != -1) {
    count_result(block, -error);
  }
  return error;
}

template <typename Block, typename Call>
ssize_t get_result(Block* block, Call call) noexcept {
  const ssize_t result = call();
  const int saved_errno = errno;
  count_result(block, result < 0 ? -saved_errno : result);
  errno = saved_errno;
  return result;
}

template <typename Block, typename Call>
int start_list(int mode, Block* const list[], int count, Call start) noexcept {
  ThreadLog* log = thread_log();
  const auto each_block = [&](auto visit) {
    for (int i = 0; log != nullptr && i < count; ++i) {
      if (Block* block = list[i]; block != nullptr && block->aio_lio_opcode != LIO_NOP) {
        visit(block);
      }
    }
  };
  each_block([&](Block* block) {
    aio_blocks.begin(*log, block,
                     block->aio_lio_opcode == LIO_READ ? PENSTOCK_CALL_READ : PENSTOCK_CALL_WRITE,
                     block->aio_fildes, block->aio_offset, int64_t(block->aio_nbytes));
  });
  const int result = start();
  // With EINVAL the list was refused, and libc has not written to the blocks. After other errors, some of the
  // operations may have started, and each block says how its operation ended. With LIO_WAIT all have ended,
  // and the blocks may soon be gone.
  if (const int saved_errno = errno; result != 0 && saved_errno == EINVAL) {
    each_block([&](Block* block) { aio_blocks.end(*log, block, -saved_errno); });
    errno = saved_errno;
  } else if (mode == LIO_WAIT) {
    each_block([&](Block* block) {
      if (block->__error_code != EINPROGRESS) {
        aio_blocks.end(*log, block, block->__error_code != 0 ? -block->__error_code : block->__return_value);
      }
    });
    errno = saved_errno;
  }
  return result;
}

// Returns whether a pending operation has ended. If it has, stores its result in `result`. Called when the
// process ends or executes another program, and when recording ends. Reads what libc has written into the
// program's block. If the block's memory does not exist any more, copy_memory() fails, where a plain read
// would crash. If the program uses the memory for something else by now (a stack, most often), what is there
// is no result of this operation.
bool has_ended(const Pending& pending, int64_t& result) noexcept {
  aiocb block;
  if (!copy_memory(reinterpret_cast<const void*>(pending.key), &block, sizeof(block)) ||
      block.aio_fildes != pending.fd || block.aio_offset != pending.offset ||
      int64_t(block.aio_nbytes) != pending.length || block.__error_code == EINPROGRESS) {
    return false;
  }
  result = block.__error_code != 0 ? -block.__error_code : block.__return_value;
  return block.__error_code >= 0 && result <= pending.length;
}

}  // namespace

namespace penstock::interpose {

void count_finished_aio() noexcept {
  if (ThreadLog* log = thread_log()) {
    aio_blocks.count_ended(*log, &has_ended);
  }
}
void forget_aio() noexcept {
  aio_blocks.forget_all();
}

}  // namespace penstock::interpose

// The wrappers of the functions that use aiocb and, if `bits` is 64, aiocb64.
#define PENSTOCK_AIO(bits)                                                                                  \
  PENSTOCK_WRAP(int, aio_read##bits, (aiocb##bits * block)) {                                               \
    return start_operation(block, PENSTOCK_CALL_READ, [&] { return real_aio_read##bits(block); });          \
  }                                                                                                         \
  PENSTOCK_WRAP(int, aio_write##bits, (aiocb##bits * block)) {                                              \
    return start_operation(block, PENSTOCK_CALL_WRITE, [&] { return real_aio_write##bits(block); });        \
  }                                                                                                         \
  PENSTOCK_WRAP(int, aio_fsync##bits, (int how, aiocb##bits* block)) {                                      \
    return start_operation(block, PENSTOCK_CALL_SYNC, [&] { return real_aio_fsync##bits(how, block); });    \
  }                                                                                                         \
  PENSTOCK_WRAP(int, lio_listio##bits, (int mode, aiocb##bits* const list[], int count, sigevent* event)) { \
    return start_list(mode, list, count, [&] { return real_lio_listio##bits(mode, list, count, event); });  \
  }                                                                                                         \
  PENSTOCK_WRAP(int, aio_error##bits, (const aiocb##bits* block)) {                                         \
    return get_status(block, [&] { return real_aio_error##bits(block); });                                  \
  }                                                                                                         \
  PENSTOCK_WRAP(ssize_t, aio_return##bits, (aiocb##bits * block)) {                                         \
    return get_result(block, [&] { return real_aio_return##bits(block); });                                 \
  }
PENSTOCK_AIO()
PENSTOCK_AIO(64)
