// POSIX asynchronous I/O: threads of libc read and write, past all wrappers. An operation is counted once,
// when the program learns that it has ended, or when the program ends.
#include <aio.h>

#include "profiling/interpose/counting/asynchronous.hpp"
#include "profiling/interpose/counting/blocks.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like what they replace

namespace {

constinit Blocks blocks(PENSTOCK_POSIX);

template <typename Block, typename Call>
int started(Block* block, penstock_call call, Call start) noexcept {
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return start();
  }
  blocks.begin(*log, block, call, block->aio_fildes, block->aio_offset,
               static_cast<std::int64_t>(block->aio_nbytes));
  const int result = start();
  if (result != 0) {
    const int saved = errno;
    blocks.end(*log, block, -saved);
    errno = saved;
  }
  return result;
}

void learned(const void* block, std::int64_t result) noexcept {
  if (ThreadLog* log = thread_log()) {
    blocks.end(*log, block, result);
  }
}

// 0 or an errno are an end; what came of it is in the block, which is the program's no longer.
template <typename Block, typename Ask>
int asked(const Block* block, Ask ask) noexcept {
  const int error = ask();
  if (error == 0) {
    learned(block, block->__return_value);
  } else if (error != EINPROGRESS && error != -1) {
    learned(block, -error);
  }
  return error;
}

template <typename Block, typename Ask>
ssize_t returned(Block* block, Ask ask) noexcept {
  const ssize_t result = ask();
  const int saved = errno;
  learned(block, result < 0 ? -saved : result);
  errno = saved;
  return result;
}

template <typename Block, typename Call>
int listed(Block* const list[], int count, Call start) noexcept {
  ThreadLog* log = thread_log();
  for (int i = 0; log != nullptr && i < count; ++i) {
    if (Block* block = list[i]; block != nullptr && block->aio_lio_opcode != LIO_NOP) {
      blocks.begin(*log, block, block->aio_lio_opcode == LIO_READ ? PENSTOCK_CALL_READ : PENSTOCK_CALL_WRITE,
                   block->aio_fildes, block->aio_offset, static_cast<std::int64_t>(block->aio_nbytes));
    }
  }
  return start();
}

// At the process's end: what libc wrote into the block, if that is still there.
bool has_ended(const Pending& one, std::int64_t& result) noexcept {
  aiocb block;
  if (!copy_memory(reinterpret_cast<const void*>(one.key), &block, sizeof(block)) ||
      block.aio_fildes != one.fd || block.__error_code == EINPROGRESS) {
    return false;
  }
  result = block.__error_code != 0 ? -block.__error_code : block.__return_value;
  return true;
}

}  // namespace

namespace penstock::interpose {

void settle_aio() noexcept {
  if (ThreadLog* log = thread_log()) {
    blocks.settle(*log, &has_ended);
  }
}
void forget_aio() noexcept {
  blocks.forget_all();
}

}  // namespace penstock::interpose

PENSTOCK_WRAP(int, aio_read, (aiocb * block)) {
  return started(block, PENSTOCK_CALL_READ, [&] { return real_aio_read(block); });
}
PENSTOCK_WRAP(int, aio_read64, (aiocb64 * block)) {
  return started(block, PENSTOCK_CALL_READ, [&] { return real_aio_read64(block); });
}
PENSTOCK_WRAP(int, aio_write, (aiocb * block)) {
  return started(block, PENSTOCK_CALL_WRITE, [&] { return real_aio_write(block); });
}
PENSTOCK_WRAP(int, aio_write64, (aiocb64 * block)) {
  return started(block, PENSTOCK_CALL_WRITE, [&] { return real_aio_write64(block); });
}
PENSTOCK_WRAP(int, aio_fsync, (int how, aiocb* block)) {
  return started(block, PENSTOCK_CALL_SYNC, [&] { return real_aio_fsync(how, block); });
}
PENSTOCK_WRAP(int, aio_fsync64, (int how, aiocb64* block)) {
  return started(block, PENSTOCK_CALL_SYNC, [&] { return real_aio_fsync64(how, block); });
}
PENSTOCK_WRAP(int, lio_listio, (int mode, aiocb* const list[], int count, sigevent* event)) {
  return listed(list, count, [&] { return real_lio_listio(mode, list, count, event); });
}
PENSTOCK_WRAP(int, lio_listio64, (int mode, aiocb64* const list[], int count, sigevent* event)) {
  return listed(list, count, [&] { return real_lio_listio64(mode, list, count, event); });
}
PENSTOCK_WRAP(int, aio_error, (const aiocb* block)) {
  return asked(block, [&] { return real_aio_error(block); });
}
PENSTOCK_WRAP(int, aio_error64, (const aiocb64* block)) {
  return asked(block, [&] { return real_aio_error64(block); });
}
PENSTOCK_WRAP(ssize_t, aio_return, (aiocb * block)) {
  return returned(block, [&] { return real_aio_return(block); });
}
PENSTOCK_WRAP(ssize_t, aio_return64, (aiocb64 * block)) {
  return returned(block, [&] { return real_aio_return64(block); });
}
