// Asynchronous I/O, which runs without a wrapped call: POSIX aio, the kernel's aio and io_uring.
//
// Threads: the thread that ends the process, forks or changes the recording.
// Memory: nothing is allocated on the program's heap.
#pragma once

namespace penstock::interpose {

// Before the process ends or executes another program, and before recording ends: counts operations that have
// ended but whose results the program has not asked for. No lock is held on entry; each table's lock is
// taken, and the counting may wait in Update.
void count_finished_aio() noexcept;
void count_finished_kernel_aio() noexcept;
void count_finished_rings() noexcept;
inline void count_finished_asynchronous() noexcept {
  count_finished_aio();
  count_finished_kernel_aio();
  count_finished_rings();
}
// In a fork's child, and when recording begins: forgets all operations. Those of a parent do not belong to
// its child. The tables' locks are reset, not taken: their owners may not exist, or may wait for this thread.
void forget_aio() noexcept;
void forget_kernel_aio() noexcept;
void forget_rings() noexcept;
inline void forget_asynchronous() noexcept {
  forget_aio();
  forget_kernel_aio();
  forget_rings();
}

}  // namespace penstock::interpose
