// Wrapper of libc's syscall(): a system call that the program makes by its number is counted like a call of
// libc's function for it.
//
// Each call goes directly to the kernel, not to libc's function: another library may have replaced that
// function by one that calls syscall(), as tcmalloc does with mmap(). If the wrapper called that function,
// the two would call each other for ever.
// Threads: any thread of the program makes the call, also inside malloc.
// Locks: none of this library is held on entry.
// Memory: nothing here allocates from the program's heap or uses stdio or the locale.
// Signals: may be called in handlers. A handler's call is always made at once. If the handler interrupted its
// thread inside an update (Update, counting.hpp), the call is counted after that update, or counts as
// dropped. Requests of asynchronous I/O are not counted in some handlers (call_on_queue()).
// Forks: a fork by syscall() runs no handlers of pthread_atfork(); call_on_process() does the work of these
// handlers. Calls that make a thread, or a child in the same memory, go to the kernel without running any C++
// code (wrap_syscall() below).
// errno: set as libc's syscall() sets it, and not changed by the counting after the call.
#include <dirent.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/counting/rings.hpp"
#include "profiling/interpose/hooks/descriptor_calls.hpp"
#include "profiling/interpose/hooks/kernel_aio.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/mapping_calls.hpp"
#include "profiling/interpose/hooks/processes.hpp"
#include "profiling/interpose/hooks/stat_calls.hpp"
#include "profiling/interpose/hooks/wrap_transfers.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

template <typename T>
T* pointer(long argument) noexcept {
  return reinterpret_cast<T*>(argument);
}

long with_errno(long result) noexcept {
  if (result < 0 && result > -4096) {
    errno = int(-result);
    return -1;
  }
  return result;
}

// One system call of the program: its number and its arguments. Calling the object makes the system call.
struct Arguments {
  long number, a, b, c, d, e, f;
  long operator()() const noexcept { return with_errno(kernel_call(number, a, b, c, d, e, f)); }
  int fd() const noexcept { return int(a); }
};

constexpr long kLandlockRestrictSelf = 446;  // older headers lack its name

// Makes and records exit_group, execve, forks, and calls that give up rights. In a fork's child,
// after_fork_in_child() is called first: locks must be reset and the parent's session must be left before
// anything is counted.
long call_on_process(const Arguments& arguments) noexcept {
  switch (arguments.number) {
    case SYS_exit_group:
      if (!log_suspended()) {
        count_unseen_transfers();
        end_session(PENSTOCK_ENDED);
      }
      return arguments();
    case SYS_execve:
      return execute(arguments.number, AT_FDCWD, pointer<const char>(arguments.a),
                     pointer<char*>(arguments.b), pointer<char*>(arguments.c), 0);
    case SYS_execveat:
      return execute(arguments.number, int(arguments.a), pointer<const char>(arguments.b),
                     pointer<char*>(arguments.c), pointer<char*>(arguments.d), int(arguments.e));
#ifdef SYS_fork
    case SYS_fork:
#endif
    case SYS_clone:  // without CLONE_VM; wrap_syscall() handles the others
    case SYS_clone3: {
      // Waits, at most 5 s, until no thread is in a walk over the loaded objects (loader_walk.hpp). Otherwise
      // the loader's lock could be held for ever in the child.
      before_fork();
      const long pid = arguments();
      if (pid == 0) {
        InOtherLibrary::forget();
        after_fork_in_child();
        return 0;
      }
      after_fork_in_parent();
      if (pid > 0 && !InOtherLibrary::is_active()) {
        const int saved_errno = errno;
        add_event(PENSTOCK_EVENT_FORK, uint32_t(pid), nullptr);
        errno = saved_errno;
      }
      return pid;
    }
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setfsuid:
    case SYS_setfsgid:
    case SYS_setgroups:
    case SYS_capset:
    case SYS_chroot:
    case SYS_pivot_root:
    case SYS_unshare:
    case SYS_setns:
    case kLandlockRestrictSelf:
      before_rights_change(false);
      return arguments();
    case SYS_prctl:
    case SYS_seccomp: {
      // The first two operations of seccomp() restrict calls; its others only ask.
      const bool seals = arguments.number == SYS_prctl ? arguments.a == PR_SET_SECCOMP : arguments.a < 2;
      if (seals) {
        before_rights_change(true);
      }
      const long mode = arguments.number == SYS_prctl ? arguments.b : arguments.a + 1;
      const uint64_t begin = seals ? ticks() : 0;
      const long result = arguments();
      if (seals && result >= 0) {
        note_restricted_calls(mode == SECCOMP_MODE_STRICT, begin);
      }
      return result;
    }
    default:
      return arguments();
  }
}

// Makes and counts calls of asynchronous I/O. Requests are read before the call, and completions before and
// after it. errno stays that of the call. A handler's requests are not counted if it interrupted its own
// thread inside io_submit(), or while that thread held the ring's lock.
long call_on_queue(const Arguments& arguments) noexcept {
  switch (arguments.number) {
    case SYS_io_submit:
      return submit_blocks(pointer<const void>(arguments.a), arguments.b,
                           pointer<const KernelAioBlock*>(arguments.c), arguments);
    case SYS_io_destroy:
      count_ring_of_context(pointer<const void>(arguments.a), 0, true);
      return arguments();
    case SYS_io_uring_setup: {
      const long fd = arguments();
      if (fd >= 0) {
        add_program_ring(int(fd), *pointer<const RingParameters>(arguments.b));
      }
      return fd;
    }
    case SYS_io_uring_enter: {
      constexpr long kRingIndexFlag = 1 << 4;
      const int ring_fd = (arguments.d & kRingIndexFlag) != 0 ? -1 : arguments.fd();
      read_program_ring(ring_fd);
      const long result = arguments();
      const int saved_errno = errno;
      read_program_ring(ring_fd);
      errno = saved_errno;
      return result;
    }
    case SYS_io_uring_register: {
      const long result = arguments();
      if (result >= 0) {
        note_ring_registration(arguments.fd(), unsigned(arguments.b), pointer<const void>(arguments.c),
                               unsigned(arguments.d));
      }
      return result;
    }
    case SYS_io_getevents:
    case SYS_io_pgetevents: {
      const long event_count = arguments();
      count_kernel_events(pointer<const KernelAioEvent>(arguments.d), event_count);
      return event_count;
    }
    default:
      return call_on_process(arguments);
  }
}

int as_int(auto call) noexcept {
  return int(call());
}

// Makes and counts a call on a name, which is relative to the directory `at`. `path` points to the program's
// memory and may be invalid, so it is read only after the call, in which the kernel has read it.
long count_call_on_name(int at, long path, penstock_file_kind kind, auto call) noexcept {
  return call_on_path_and_count(at, pointer<const char>(path), kind, call);
}

// Makes the calls of the stat family and calls on names, and counts them afterwards.
long call_on_name(const Arguments& arguments) noexcept {
  const auto call = [&] { return as_int(arguments); };
  switch (arguments.number) {
#ifdef SYS_stat
    case SYS_stat:
    case SYS_lstat:
      return stat_of_name(AT_FDCWD, pointer<const char>(arguments.a), pointer<const struct stat>(arguments.b),
                          call);
    case SYS_access:
    case SYS_unlink:
    case SYS_rename:
    case SYS_link:
    case SYS_readlink:
    case SYS_chmod:
      return count_call_on_name(AT_FDCWD, arguments.a, PENSTOCK_REGULAR, arguments);
    case SYS_symlink:
      return count_call_on_name(AT_FDCWD, arguments.b, PENSTOCK_REGULAR, arguments);
    case SYS_mkdir:
    case SYS_rmdir:
      return count_call_on_name(AT_FDCWD, arguments.a, PENSTOCK_DIRECTORY, arguments);
#endif
    case SYS_fstat:
      return stat_of_descriptor(arguments.fd(), pointer<const struct stat>(arguments.b), call);
#ifdef SYS_newfstatat
    case SYS_newfstatat:
      return stat_of_name(arguments.fd(), pointer<const char>(arguments.b),
                          pointer<const struct stat>(arguments.c), call);
#endif
    case SYS_statx:
      return stat_of_name(arguments.fd(), pointer<const char>(arguments.b),
                          pointer<const struct statx>(arguments.e), call);
    case SYS_mkdirat:
      return count_call_on_name(arguments.fd(), arguments.b, PENSTOCK_DIRECTORY, arguments);
    case SYS_truncate:
      return count_call_on_name(AT_FDCWD, arguments.a, PENSTOCK_REGULAR, arguments);
    case SYS_chdir:
    case SYS_fchdir:
      return note_directory_change(call());
    case SYS_unlinkat:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat:
    case SYS_readlinkat:
    case SYS_faccessat:
    case SYS_fchmodat:
    case SYS_utimensat:
      return count_call_on_name(arguments.fd(), arguments.b, PENSTOCK_REGULAR, arguments);
    case SYS_symlinkat:
      return count_call_on_name(int(arguments.b), arguments.c, PENSTOCK_REGULAR, arguments);
    default:
      return call_on_queue(arguments);
  }
}

// Makes and counts calls on descriptors that read and write no data: they open, copy, map, move or close a
// descriptor, or sync or change its file. A descriptor is forgotten before the call that closes it, because
// after the call another thread may get the same number. A new descriptor is noted after the call.
long call_on_descriptor(const Arguments& arguments) noexcept {
  const auto call = [&] { return as_int(arguments); };
  switch (arguments.number) {
#ifdef SYS_open
    case SYS_open:
      return open_and_count(AT_FDCWD, pointer<const char>(arguments.a), int(arguments.b), call);
    case SYS_creat:
      return open_and_count(AT_FDCWD, pointer<const char>(arguments.a), O_CREAT | O_WRONLY | O_TRUNC, call);
    case SYS_dup2:
      return note_duplicate(arguments.fd(), call());
    case SYS_pipe:
#endif
    case SYS_pipe2:
      return note_pair_without_files(call(), pointer<const int>(arguments.a));
    case SYS_openat:
      return open_and_count(arguments.fd(), pointer<const char>(arguments.b), int(arguments.c), call);
#ifdef SYS_openat2
    case SYS_openat2:
      return open_and_count(arguments.fd(), pointer<const char>(arguments.b),
                            ReadableMemory{}.has(pointer<void>(arguments.c), sizeof(uint64_t))
                                ? int(*pointer<const uint64_t>(arguments.c))
                                : 0,
                            call);
#endif
    case SYS_open_by_handle_at:
      return open_and_count(AT_FDCWD, "/dev/fd/new", int(arguments.c), call);
#ifdef SYS_close_range
    case SYS_close_range:
      if (!log_suspended() && (arguments.c & 4) == 0) {  // with CLOSE_RANGE_CLOEXEC (4) nothing is closed yet
        forget_range(unsigned(arguments.a), unsigned(arguments.b));
      }
      return call();
#endif
    case SYS_close:
      return close_and_count(arguments.fd(), call);
    case SYS_dup:
    case SYS_dup3:
      return note_duplicate(arguments.fd(), call());
    case SYS_fcntl:
      return after_fcntl(arguments.fd(), int(arguments.b), pointer<void>(arguments.c), call());
    case SYS_lseek:
      return seek_and_count(arguments.fd(), arguments);
    case SYS_mmap:
      return as_argument(map_and_count(int(arguments.e), int(arguments.d), size_t(arguments.b), arguments.f,
                                       [&] { return pointer<void>(arguments()); }));
    case SYS_munmap:
      return unmap_and_end_rings(pointer<void>(arguments.a), size_t(arguments.b), call);
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
    case SYS_sync_file_range:
      return call_and_count(PENSTOCK_CALL_SYNC, arguments.fd(), arguments);
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_fadvise64:
    case SYS_readahead:
    case SYS_getdents64:
      return call_and_count(PENSTOCK_CALL_OTHER, arguments.fd(), arguments);
    default:
      return call_on_name(arguments);
  }
}

// Makes and counts reads and writes, by the same templates as the wrappers (wrap_transfers.hpp).
long call_that_transfers(const Arguments& arguments) noexcept {
  switch (arguments.number) {
    case SYS_read:
    case SYS_readv:
      return transfer_at_position<PENSTOCK_CALL_READ>(arguments.fd(), arguments);
    case SYS_write:
    case SYS_writev:
      return transfer_at_position<PENSTOCK_CALL_WRITE>(arguments.fd(), arguments);
    case SYS_pread64:
    case SYS_preadv:
      return transfer_at<PENSTOCK_CALL_READ>(arguments.fd(), arguments.d, arguments);
    case SYS_pwrite64:
    case SYS_pwritev:
      return transfer_at<PENSTOCK_CALL_WRITE>(arguments.fd(), arguments.d, arguments);
    case SYS_preadv2:
      return transfer_at_if_set<PENSTOCK_CALL_READ>(arguments.fd(), arguments.d, arguments);
    case SYS_pwritev2:
      return transfer_at_if_set<PENSTOCK_CALL_WRITE>(arguments.fd(), arguments.d, arguments);
    case SYS_sendfile:
      return copy_between(int(arguments.b), pointer<off64_t>(arguments.c), arguments.fd(), nullptr, true,
                          arguments);
    case SYS_copy_file_range:
      return copy_between(arguments.fd(), pointer<off64_t>(arguments.b), int(arguments.c),
                          pointer<off64_t>(arguments.d), true, arguments);
    case SYS_splice:
      return copy_between(arguments.fd(), pointer<off64_t>(arguments.b), int(arguments.c),
                          pointer<off64_t>(arguments.d), false, arguments);
    default:
      return call_on_descriptor(arguments);
  }
}

// True for calls that are recorded even inside another library's function (InOtherLibrary).
bool is_fork_or_exit(long number) noexcept {
  switch (number) {
#ifdef SYS_fork
    case SYS_fork:
#endif
    case SYS_clone:  // without CLONE_VM; wrap_syscall() handles the others
    case SYS_clone3:
    case SYS_exit_group:
      return true;
    default:
      return false;
  }
}

}  // namespace

extern "C" {

// Makes a system call and counts it. Called by wrap_syscall() below, in any thread and handler, on the
// program's stack. The functions above form a chain: each one handles the numbers in its switch and passes
// all others to the next function. The last one is call_on_process(). A table of functions is not used,
// because it would have to be filled first, and this function may be called before the library's constructor
// has run.
__attribute__((used)) long penstock_syscall(long number, long a, long b, long c, long d, long e,
                                            long f) noexcept {
  const Arguments arguments{number, a, b, c, d, e, f};
  // Inside another library's function the call is not counted, because the wrapper of that function counts
  // it. Forks and exits are an exception, because call_on_process() must reset locks in a fork's child and
  // end the session at an exit.
  if (InOtherLibrary::is_active() && !is_fork_or_exit(number)) [[unlikely]] {
    return arguments();
  }
  return call_that_transfers(arguments);
}

// Whether clone3() makes a thread or a child that shares this memory. Also true if its arguments cannot be
// read: then the kernel refuses the call.
__attribute__((used)) bool penstock_clone_shares_memory(const uint64_t* clone_arguments) noexcept {
  constexpr uint64_t kSharesMemoryFlag = 0x100;  // the flag CLONE_VM
  return !ReadableMemory{}.has(clone_arguments, sizeof(uint64_t)) ||
         (*clone_arguments & kSharesMemoryFlag) != 0;
}

#if defined(__x86_64__)
__attribute__((used)) long penstock_syscall_failed(long result) noexcept {
  return with_errno(result);
}
constinit std::atomic<void*> penstock_real_syscall{nullptr};
PENSTOCK_WRAPPED(syscall, &penstock_real_syscall)
// The wrapper of syscall(). It uses only registers, and changes no callee-saved register, so a signal may
// come anywhere in it.
//
// Calls that make a thread, or a process that shares this memory, go to the kernel without a frame of ours on
// the stack, as in libc. They return both here and in the child. A child on the same stack would overwrite
// our frame, and a child with a new stack would not find it. Two other calls go the same way: rt_sigreturn,
// which never returns, and clone3() without arguments, with which programs test whether the kernel has
// clone3().
__attribute__((visibility("default"), naked)) long wrap_syscall() __asm__("syscall");
__attribute__((visibility("default"), naked)) long wrap_syscall() {
  __asm__(
      "cmpq $56, %rdi\n"  // SYS_clone: CLONE_VM among its flags
      "je 1f\n"
      "cmpq $435, %rdi\n"  // SYS_clone3: its flags are where rsi points to
      "je 2f\n"
      "cmpq $58, %rdi\n"  // SYS_vfork
      "je 3f\n"
      "cmpq $15, %rdi\n"  // SYS_rt_sigreturn
      "je 3f\n"
      "0: jmp penstock_syscall\n"
      "1: testq $0x100, %rsi\n"
      "jnz 3f\n"
      "jmp 0b\n"
      "2: testq %rsi, %rsi\n"  // no arguments: goes to the kernel directly
      "jz 3f\n"
      "pushq %rdi\n"
      "pushq %rsi\n"
      "pushq %rdx\n"
      "pushq %rcx\n"
      "pushq %r8\n"
      "pushq %r9\n"
      "subq $8, %rsp\n"  // aligns the stack for the call
      "movq %rsi, %rdi\n"
      "call penstock_clone_shares_memory\n"
      "addq $8, %rsp\n"
      "popq %r9\n"
      "popq %r8\n"
      "popq %rcx\n"
      "popq %rdx\n"
      "popq %rsi\n"
      "popq %rdi\n"
      "testb %al, %al\n"
      "jz 0b\n"
      "3: movq %rdi, %rax\n"
      "movq %rsi, %rdi\n"
      "movq %rdx, %rsi\n"
      "movq %rcx, %rdx\n"
      "movq %r8, %r10\n"
      "movq %r9, %r8\n"
      "movq 8(%rsp), %r9\n"
      "syscall\n"
      "cmpq $-4095, %rax\n"
      "jae 4f\n"
      "ret\n"
      "4: movq %rax, %rdi\n"
      "jmp penstock_syscall_failed\n");
}
#endif
}

#if !defined(__x86_64__)
PENSTOCK_WRAP(long, syscall, (long number, long a, long b, long c, long d, long e, long f)) {
  constexpr unsigned long kSharesMemoryFlag = 0x100;  // the flag CLONE_VM
  if ((number == SYS_clone && (static_cast<unsigned long>(a) & kSharesMemoryFlag) != 0) ||
      (number == SYS_clone3 && penstock_clone_shares_memory(pointer<const uint64_t>(a)))) {
    return real_syscall(number, a, b, c, d, e, f);
  }
  return penstock_syscall(number, a, b, c, d, e, f);
}
#endif
