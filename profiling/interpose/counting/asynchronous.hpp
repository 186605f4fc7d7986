// Asynchronous I/O, whose operations run outside of wrapped calls: POSIX aio, the kernel's aio and io_uring.
//
// Threads: these functions run in the thread that ends the process, executes another program, or begins or
// ends recording. In a fork's child they run in its only thread.
// Memory: nothing is allocated on the program's heap.
#pragma once

namespace penstock::interpose {

// These functions count operations that have ended but whose results the program has not asked for. They are
// called before the process ends or executes another program, and before recording ends. The caller holds no
// lock, except Control (recording.hpp) when recording ends. They take the lock of each table of operations.
// They may wait in Update (counting.hpp) while another thread changes the session.
void count_finished_aio() noexcept;
void count_finished_kernel_aio() noexcept;
void count_finished_rings() noexcept;
inline void count_finished_async_io() noexcept {
  count_finished_aio();
  count_finished_kernel_aio();
  count_finished_rings();
}
// These functions empty the tables of operations. They are called in a fork's child, because its parent's
// operations do not belong to it, and when recording begins. They reset the locks of the tables without
// taking them, because waiting for a lock could block for ever: its owner may not exist in the child, or may
// itself wait for the thread that begins recording.
void forget_aio() noexcept;
void forget_kernel_aio() noexcept;
void forget_rings() noexcept;
inline void forget_async_io() noexcept {
  forget_aio();
  forget_kernel_aio();
  forget_rings();
}

}  // namespace penstock::interpose
