// Asynchronous I/O, whose operations run outside of wrapped calls: POSIX aio, the kernel's aio and io_uring.
//
// Threads: the thread that ends the process, executes another program, or begins or ends recording; in a
// fork's child its only thread.
// Memory: nothing is allocated on the program's heap.
#pragma once

namespace penstock::interpose {

// Count operations that have ended but whose results the program has not asked for. Called before the process
// ends or executes another program, and before recording ends. No lock is held on entry, except Control
// (recording.hpp) when recording ends. The lock of each table of operations is taken, and counting may wait
// in Update (counting.hpp) while another thread changes the session.
void count_finished_aio() noexcept;
void count_finished_kernel_aio() noexcept;
void count_finished_rings() noexcept;
inline void count_finished_async_io() noexcept {
  count_finished_aio();
  count_finished_kernel_aio();
  count_finished_rings();
}
// Forget all operations. Called in a fork's child, because its parent's operations do not belong to it, and
// when recording begins. The locks of the tables are reset without being taken, because waiting for one could
// block for ever. Its owner may not exist in the child, or may itself wait for this thread.
void forget_aio() noexcept;
void forget_kernel_aio() noexcept;
void forget_rings() noexcept;
inline void forget_async_io() noexcept {
  forget_aio();
  forget_kernel_aio();
  forget_rings();
}

}  // namespace penstock::interpose
