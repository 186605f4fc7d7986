// What goes on behind the program's back: POSIX aio, the kernel's aio and io_uring.
#pragma once

namespace penstock::interpose {

// Before a process ends or becomes another program: what has ended, and the program has not asked for.
void settle_aio() noexcept;
void settle_kernel_aio() noexcept;
void settle_rings() noexcept;
inline void settle_asynchronous() noexcept {
  settle_aio();
  settle_kernel_aio();
  settle_rings();
}
// In a fork's child, whose operations they are not.
void forget_aio() noexcept;
void forget_kernel_aio() noexcept;
void forget_rings() noexcept;
inline void forget_asynchronous() noexcept {
  forget_aio();
  forget_kernel_aio();
  forget_rings();
}

}  // namespace penstock::interpose
