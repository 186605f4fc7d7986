// Asynchronous I/O, whose operations run outside of wrapped calls: POSIX aio, the kernel's aio and io_uring.
//
// Threads: the thread that ends the process, forks or changes the recording.
// Memory: nothing is allocated on the program's heap.
#pragma once

namespace penstock::interpose {

// Called before the process ends or executes another program, and before recording ends: counts operations
// that have ended but whose results the program has not asked for. No lock is held on entry; each table's
// lock is taken, and the counting may wait in Update.
void count_finished_aio() noexcept;
void count_finished_kernel_aio() noexcept;
void count_finished_rings() noexcept;
inline void count_finished_async_io() noexcept {
  count_finished_aio();
  count_finished_kernel_aio();
  count_finished_rings();
}
// Called in a fork's child, and when recording begins: forgets all operations. Those of a parent do not
// belong to its child. The tables' locks are reset, not taken: their owners may not exist, or may wait for
// this thread.
void forget_aio() noexcept;
void forget_kernel_aio() noexcept;
void forget_rings() noexcept;
inline void forget_async_io() noexcept {
  forget_aio();
  forget_kernel_aio();
  forget_rings();
}

}  // namespace penstock::interpose
