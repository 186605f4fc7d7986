// Wrappers of calls that make, replace, end and wait for processes.
//
// Threads: each wrapper runs in the program's thread that makes the call.
// Locks: none of this library is held on entry. Events take the session's file_lock briefly.
// Memory: nothing is allocated on the program's heap, and stdio's streams are not used, because programs make
// these calls between fork and exec, and call _exit() in handlers.
// Signals: a handler may call all of these. If it interrupted its own thread inside an update (Update,
// counting.hpp) or while that thread held file_lock, what the handler adds is deferred or counts as dropped.
// Forks: the child first resets the locks and leaves the parent's session. Only then does it count. vfork's
// child runs in its parent's memory and is not recorded (log_suspended()).
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiling/interpose/counting/asynchronous.hpp"
#include "profiling/interpose/counting/handles.hpp"
#include "profiling/interpose/counting/thread_log.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/processes.hpp"
#include "profiling/interpose/hooks/program_check.hpp"
#include "profiling/interpose/hooks/recording.hpp"
#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/hooks/wrap.hpp"
#include "profiling/interpose/writer/environment.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"
#include "profiling/interpose/writer/system.hpp"
#include "profiling/interpose/writer/windows.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace penstock::interpose {

// Counts the bytes that streams and asynchronous I/O have moved without a wrapped call. Called before the
// process ends or executes another program, perhaps in a handler. Other threads are still running.
void count_unseen_transfers() noexcept {
  if (session.state.load(std::memory_order_acquire) == SessionState::running) {
    count_macro_bytes_of_all();
    count_finished_async_io();
    label_with_steps();
  }
}

namespace {
// Records that `program` is executed, and before that why it cannot load this library, if it cannot.
void add_program(penstock_event_kind kind, uint32_t pid, const char* program,
                 penstock_not_loaded not_loaded) noexcept {
  if (not_loaded != PENSTOCK_LOADED) {
    add_event(PENSTOCK_EVENT_NOT_LOADED, not_loaded, program);
  }
  add_event(kind, pid, program);
}
}  // namespace

void watch_forks() noexcept {
  static constinit std::atomic<bool> is_registered{false};
  if (!is_registered.exchange(true)) {
    pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
  }
}

// Makes the child leave the session of its parent. Called in the child, which has only one thread: as a
// handler of pthread_atfork() if libc's fork() made it, otherwise right after the fork.
//
// Locks: none is held. Waiting for a lock could block for ever, because its owner may not exist in the child.
// So each function here resets its own lock and waits for nothing. This is done also if the parent was not
// recording: another thread of it may have been about to begin.
// Order: forget_parents_walks() comes first, so that find_real() does not call the loader.
// leave_session_of_parent() comes before forget_parents_logs(). Once the session is left, a counted call
// begins a session of the child's own. A handler that runs before that moment adds to the parent's counters.
void after_fork_in_child() noexcept {
  forget_parents_walks();
  forget_parents_control();
  leave_session_of_parent();
  forget_parents_logs();
  reset_handles_lock_after_fork();
  stream_generation += 1;
  forget_async_io();
}

}  // namespace penstock::interpose

// libc's fork() runs the handlers of watch_forks(). So the wrapper only adds the event of the fork, in the
// parent and after fork(). The child's session may begin before this event.
PENSTOCK_WRAP(pid_t, fork, ()) {
  const pid_t pid = real_fork();  // runs after_fork_in_child() in the child
  if (pid > 0) {
    const int saved_errno = errno;
    add_event(PENSTOCK_EVENT_FORK, uint32_t(pid), nullptr);
    errno = saved_errno;
  }
  return pid;
}
PENSTOCK_WRAP(pid_t, _Fork, ()) {
  before_fork();
  const pid_t pid = real__Fork();
  if (pid == 0) {
    InOtherLibrary::forget();
    after_fork_in_child();
  } else {
    after_fork_in_parent();
  }
  return pid;
}

// clone() without CLONE_VM is a fork. With CLONE_VM and CLONE_VFORK it works like vfork(). All other calls
// usually make threads; they are passed on and not recorded.
// A fork's child calls begin_clone() first, on the stack that the program gave. `context` points into the
// parent's stack; the child may read it, because it has a copy of that stack.
namespace {
struct CloneStart {
  int (*function)(void*);
  void* argument;
};
int begin_clone(void* context) noexcept {
  const CloneStart clone_start = *static_cast<CloneStart*>(context);
  InOtherLibrary::forget();
  after_fork_in_child();
  return clone_start.function(clone_start.argument);
}
}  // namespace
// NOLINTBEGIN(cert-dcl50-cpp): clone() is variadic
PENSTOCK_WRAP(int, clone, (int (*function)(void*), void* stack, int flags, void* argument, ...)) {
  va_list values;
  va_start(values, argument);
  void* parent_tid = va_arg(values, void*);
  void* tls = va_arg(values, void*);
  void* child_tid = va_arg(values, void*);
  va_end(values);
  if ((flags & CLONE_VM) == 0) {
    CloneStart clone_start{.function = function, .argument = argument};
    before_fork();
    const int pid = real_clone(&begin_clone, stack, flags, &clone_start, parent_tid, tls, child_tid);
    after_fork_in_parent();
    if (pid > 0 && !log_suspended()) {
      const int saved_errno = errno;
      add_event(PENSTOCK_EVENT_FORK, uint32_t(pid), nullptr);
      errno = saved_errno;
    }
    return pid;
  }
  const bool waits_for_child = (flags & CLONE_VFORK) != 0 && (flags & CLONE_THREAD) == 0;
  if (waits_for_child) {
    suspend_log();
  }
  const int pid = real_clone(function, stack, flags, argument, parent_tid, tls, child_tid);
  if (waits_for_child) {
    restore_log();
  }
  return pid;
}
// NOLINTEND(cert-dcl50-cpp)

// vfork() returns first in the child and then in the parent, on the same stack. So the child overwrites what
// a wrapper leaves on the stack. Therefore the wrapper stores its return address in thread-local memory.
// Parent and child share that memory too, but the child writes to it only if it calls vfork() itself. There
// is room for kMostNestedVforks such nested calls.
//
// No function of this library may have a frame on the stack while the child runs, so the wrapper is written
// in assembler. While the child runs, penstock_before_vfork() has returned and penstock_after_vfork() has not
// been called yet.
#if defined(__x86_64__)
extern "C" {
struct VforkEnd {
  long result;
  void* return_address;
};
constexpr unsigned kMostNestedVforks = 16;
thread_local void* penstock_vfork_back[kMostNestedVforks] __attribute__((tls_model("initial-exec"))) = {};
thread_local unsigned penstock_vforks __attribute__((tls_model("initial-exec"))) = 0;
// The program that vfork's child executes; "" before that. The child writes it in before_exec(). Its parent,
// which shares the memory, reads it, and also why the program cannot load this library.
thread_local char penstock_vfork_program[512] __attribute__((tls_model("initial-exec"))) = {};
thread_local penstock_not_loaded penstock_vfork_not_loaded __attribute__((tls_model("initial-exec"))) =
    PENSTOCK_LOADED;
// Stores the return address, and suspends the log of the thread so that nothing of the child is counted.
// Called in the parent's thread, before the system call. Allocates nothing and does not change errno.
__attribute__((used)) void penstock_before_vfork(void* return_address) noexcept {
  penstock_vfork_back[penstock_vforks++ % kMostNestedVforks] = return_address;
  penstock_vfork_program[0] = 0;
  suspend_log();
}
// Resumes the log, and adds an event for the child. Returns vfork()'s result and the stored return address.
// Called in the parent's thread, when the child has called exec() or ended, or when vfork() has failed.
// restore_log() comes first, because add_event() and log_suspended() need the parent's state.
__attribute__((used)) VforkEnd penstock_after_vfork(long result) noexcept {
  restore_log();
  void* return_address = penstock_vfork_back[--penstock_vforks % kMostNestedVforks];
  if (result < 0) {
    errno = int(-result);
    result = -1;
  } else if (!log_suspended()) {
    if (penstock_vfork_program[0] == 0) {
      add_event(PENSTOCK_EVENT_FORK, uint32_t(result), nullptr);
    } else {
      add_program(PENSTOCK_EVENT_SPAWN, uint32_t(result), penstock_vfork_program, penstock_vfork_not_loaded);
    }
  }
  return {.result = result, .return_address = return_address};
}
constinit std::atomic<void*> penstock_real_vfork{nullptr};
PENSTOCK_WRAPPED(vfork, &penstock_real_vfork)
__attribute__((visibility("default"), naked, returns_twice)) pid_t wrap_vfork() __asm__("vfork");
__attribute__((visibility("default"), naked, returns_twice)) pid_t wrap_vfork() {
  __asm__(
      "movq (%rsp), %rdi\n"
      "subq $8, %rsp\n"
      "call penstock_before_vfork\n"
      "addq $8, %rsp\n"
      "movl $58, %eax\n"  // SYS_vfork
      "syscall\n"
      "testq %rax, %rax\n"
      "jz 1f\n"
      "movq %rax, %rdi\n"
      "subq $8, %rsp\n"
      "call penstock_after_vfork\n"
      "addq $8, %rsp\n"
      "movq %rdx, (%rsp)\n"
      "1: ret\n");
}
}
#else
PENSTOCK_WRAP(pid_t, vfork, ()) {
  return wrap_fork();
}
#endif

namespace {

// Ends the session of a process that is about to execute another program. Called before the call, in the
// thread that makes it; other threads run until the kernel ends them. In a vfork's child the session is the
// parent's, and is not ended: the child only stores the program's name for its parent.
// Order: the event and count_unseen_transfers() add to the session, so end_session() is last.
void before_exec(const ExecutedProgram& program) noexcept {
  const char* const path = program.path();
#if defined(__x86_64__)
  if (ReadableMemory memory; log_suspended() && path != nullptr && memory.has_text(path)) {
    strncpy(penstock_vfork_program, path, sizeof(penstock_vfork_program) - 1);
    penstock_vfork_not_loaded = program.not_loaded();
  }
#endif
  // A fork's child that has counted nothing has no file, and neither will a program that cannot load this
  // library or may not write to the session. The first process of a PID namespace needs a file because only a
  // forked child knows its parent's pid there. So the child begins a session now. Otherwise the program's
  // name would not be recorded.
  if (!log_suspended() && session.state.load(std::memory_order_acquire) == SessionState::forked &&
      path != nullptr &&
      (program.not_loaded() != PENSTOCK_LOADED || system_call(SYS_getppid) == 0 || may_lose_program())) {
    begin_log();
  }
  if (!log_suspended()) {
    ReadableMemory memory;
    add_program(PENSTOCK_EVENT_EXEC, 0, path != nullptr && memory.has_text(path) ? path : nullptr,
                program.not_loaded());
    count_unseen_transfers();
    end_session(PENSTOCK_EXECUTED);
  }
}
// Continues the session that before_exec() has ended. Called only if the exec has failed; returns `result`,
// which the exec returned. Other threads have continued to add to the session. errno does not change.
int after_failed_exec(int result) noexcept {
  if (!log_suspended()) {
    resume_session();
  }
#if defined(__x86_64__)
  if (log_suspended()) {
    penstock_vfork_program[0] = 0;
  }
#endif
  return result;
}

}  // namespace

// The new environment is built on this thread's stack (alloca), because this may run between fork and exec,
// where malloc is not allowed.
PENSTOCK_WRAP(int, execve, (const char* path, char* const arguments[], char* const environment[])) {
  const ExecutedProgram program(AT_FDCWD, path);
  PENSTOCK_WATCHED_ENVIRONMENT(watched, environment, program.keeps_preload());
  before_exec(program);
  return after_failed_exec(real_execve(path, arguments, watched.get()));
}
long penstock::interpose::execute(long number, int at, const char* path, char* const* arguments,
                                  char* const* environment, int flags) noexcept {
  const ExecutedProgram program(at, path);
  PENSTOCK_WATCHED_ENVIRONMENT(watched, environment, program.keeps_preload());
  before_exec(program);
  const long failed =
      number == SYS_execveat
          ? kernel_call(SYS_execveat, at, as_argument(path), as_argument(arguments),
                        as_argument(watched.get()), flags)
          : kernel_call(SYS_execve, as_argument(path), as_argument(arguments), as_argument(watched.get()));
  errno = int(-failed);
  return after_failed_exec(-1);
}
PENSTOCK_WRAP(int, execvpe, (const char* file, char* const arguments[], char* const environment[])) {
  const ExecutedProgram program(file);
  PENSTOCK_WATCHED_ENVIRONMENT(watched, environment, program.keeps_preload());
  before_exec(program);
  return after_failed_exec(real_execvpe(file, arguments, watched.get()));
}
PENSTOCK_WRAP(int, execv, (const char* path, char* const arguments[])) {
  return wrap_execve(path, arguments, environ);
}
PENSTOCK_WRAP(int, execvp, (const char* file, char* const arguments[])) {
  return wrap_execvpe(file, arguments, environ);
}
PENSTOCK_WRAP(int, fexecve, (int fd, char* const arguments[], char* const environment[])) {
  const ExecutedProgram program(fd, "");
  PENSTOCK_WATCHED_ENVIRONMENT(watched, environment, program.keeps_preload());
  before_exec(program);
  return after_failed_exec(real_fexecve(fd, arguments, watched.get()));
}
PENSTOCK_WRAP(int, execveat,
              (int at, const char* path, char* const arguments[], char* const environment[], int flags)) {
  const ExecutedProgram program(at, path);
  PENSTOCK_WATCHED_ENVIRONMENT(watched, environment, program.keeps_preload());
  before_exec(program);
  return after_failed_exec(real_execveat(at, path, arguments, watched.get(), flags));
}

// For execl() and its variants: copies the list of arguments to an array on the stack. This may run between
// fork and exec, where malloc is not allowed.
// NOLINTBEGIN(cert-dcl50-cpp): execl() and its variants are variadic
#define PENSTOCK_ARGUMENTS(first)                                                        \
  va_list values;                                                                        \
  va_start(values, first);                                                               \
  size_t count = 1;                                                                      \
  while (va_arg(values, char*) != nullptr) {                                             \
    ++count;                                                                             \
  }                                                                                      \
  va_end(values);                                                                        \
  char** arguments = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  va_start(values, first);                                                               \
  arguments[0] = const_cast<char*>(first);                                               \
  for (size_t i = 1; i <= count; ++i) {                                                  \
    arguments[i] = va_arg(values, char*);                                                \
  }

PENSTOCK_WRAP(int, execl, (const char* path, const char* first, ...)) {
  PENSTOCK_ARGUMENTS(first)
  va_end(values);
  return wrap_execve(path, arguments, environ);
}
PENSTOCK_WRAP(int, execlp, (const char* file, const char* first, ...)) {
  PENSTOCK_ARGUMENTS(first)
  va_end(values);
  return wrap_execvpe(file, arguments, environ);
}
PENSTOCK_WRAP(int, execle, (const char* path, const char* first, ...)) {
  PENSTOCK_ARGUMENTS(first)
  char* const* environment = va_arg(values, char* const*);
  va_end(values);
  return wrap_execve(path, arguments, environment);
}
// NOLINTEND(cert-dcl50-cpp)

namespace {
// Makes and records posix_spawn(). libc makes the child in the parent's memory, by a clone() of its own,
// which no wrapper sees. So only an event is recorded, if the call succeeds.
template <typename Spawn>
int spawn_and_record(pid_t* pid, const ExecutedProgram& program, Spawn spawn) noexcept {
  pid_t child = 0;
  const int result = spawn(&child);
  if (result == 0 && !log_suspended()) {
    add_program(PENSTOCK_EVENT_SPAWN, uint32_t(child), program.path(), program.not_loaded());
  }
  if (result == 0 && pid != nullptr) {
    *pid = child;
  }
  return result;
}
}  // namespace
#define PENSTOCK_SPAWN(name, ...)                                                                            \
  PENSTOCK_WRAP(int, name,                                                                                   \
                (pid_t * pid, const char* path, const posix_spawn_file_actions_t* actions,                   \
                 const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[])) { \
    const ExecutedProgram program(__VA_ARGS__);                                                              \
    PENSTOCK_WATCHED_ENVIRONMENT(watched, environment, program.keeps_preload());                             \
    return spawn_and_record(pid, program, [&](pid_t* child) {                                                \
      return real_##name(child, path, actions, attributes, arguments, watched.get());                        \
    });                                                                                                      \
  }
PENSTOCK_SPAWN(posix_spawn, AT_FDCWD, path)
PENSTOCK_SPAWN(posix_spawnp, path)

// system() and popen() begin a shell by a clone() of libc's own, with the present environment. If the program
// has removed this library from it, that shell is not watched. Its pid is not known. A fork's child that has
// counted nothing begins its session, as in before_exec().
void penstock::interpose::note_shell() noexcept {
  PENSTOCK_WATCHED_ENVIRONMENT(watched, environ, true);
  if (watched.get() != environ && !log_suspended()) {
    if (session.state.load(std::memory_order_acquire) == SessionState::forked) {
      begin_log();
    }
    add_event(PENSTOCK_EVENT_SPAWN, 0, "/bin/sh");
  }
}
PENSTOCK_WRAP(int, system, (const char* command)) {
  if (command != nullptr) {
    note_shell();
  }
  return real_system(command);
}

// Adds an event for a child that was waited for. From the wait on, the kernel's counters of this process
// include the child's. Readers need the event to compare these counters with what was counted. The event is
// added after the wait, so no lock is held while the wait blocks. errno does not change.
namespace {
void note_reaped(pid_t pid) noexcept {
  if (pid > 0 && !log_suspended()) {
    add_event(PENSTOCK_EVENT_REAP, uint32_t(pid), nullptr);
  }
}
bool has_ended(int status) noexcept {
  return WIFEXITED(status) || WIFSIGNALED(status);
}

template <typename Wait>
pid_t wait_and_record(int* status, Wait wait) noexcept {
  int own_status = 0;
  int* wait_status = status != nullptr ? status : &own_status;
  const pid_t pid = wait(wait_status);
  if (pid > 0) {
    const int saved_errno = errno;
    if (has_ended(*wait_status)) {
      note_reaped(pid);
    }
    errno = saved_errno;
  }
  return pid;
}
}  // namespace
PENSTOCK_WRAP(pid_t, wait, (int* status)) {
  return wait_and_record(status, [&](int* wait_status) { return real_wait(wait_status); });
}
PENSTOCK_WRAP(pid_t, waitpid, (pid_t which, int* status, int flags)) {
  return wait_and_record(status, [&](int* wait_status) { return real_waitpid(which, wait_status, flags); });
}
PENSTOCK_WRAP(pid_t, wait3, (int* status, int flags, rusage* usage)) {
  return wait_and_record(status, [&](int* wait_status) { return real_wait3(wait_status, flags, usage); });
}
PENSTOCK_WRAP(pid_t, wait4, (pid_t which, int* status, int flags, rusage* usage)) {
  return wait_and_record(status,
                         [&](int* wait_status) { return real_wait4(which, wait_status, flags, usage); });
}
PENSTOCK_WRAP(int, waitid, (int kind, unsigned which, siginfo_t* info, int flags)) {
  siginfo_t own_info{};
  siginfo_t* wait_status = info != nullptr ? info : &own_info;
  const int result = real_waitid(kind, which, wait_status, flags);
  if (result == 0 && wait_status->si_pid > 0 && (flags & WNOWAIT) == 0 &&
      (wait_status->si_code == CLD_EXITED || wait_status->si_code == CLD_KILLED ||
       wait_status->si_code == CLD_DUMPED)) {
    note_reaped(wait_status->si_pid);
  }
  return result;
}

namespace {
// Counts the bytes that no wrapper has seen (count_unseen_transfers()), and ends the session. Called in the
// thread that ends the process, perhaps in a handler. At exit() the library's destructor does the same
// (load.cpp).
//
// Locks: if a handler calls this and the interrupted code holds a lock, waiting for it would block for ever.
// So work that needs this lock is skipped (LockGuard::has_lock()).
// Other threads continue. What they add after this call still gets into the mapped file. Operations that
// handlers of this thread have deferred are lost.
void before_exit() noexcept {
  if (!log_suspended()) {
    count_unseen_transfers();
    end_session(PENSTOCK_ENDED);
  }
}
}  // namespace
PENSTOCK_WRAP(void, _exit, (int status)) {
  before_exit();
  real__exit(status);
  __builtin_unreachable();
}
PENSTOCK_WRAP(void, _Exit, (int status)) {
  before_exit();
  real__Exit(status);
  __builtin_unreachable();
}
PENSTOCK_WRAP(void, quick_exit, (int status)) {
  before_exit();
  real_quick_exit(status);
  __builtin_unreachable();
}
