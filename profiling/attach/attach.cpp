// Sends the requests of attach and detach to the library in the target. Loads the library into the target
// first, if it is not there yet.
//
// Threads: all C++ code runs in the main thread of the command. The assembler code runs in the target, in a
// thread that was started for it.
// Locks: the command uses none. The new thread in the target holds none when it starts. It may wait for the
// locks that dlopen() takes.
// Memory: the command may allocate. The new thread in the target reads memory that the command filled before
// the thread started. In that thread dlopen() calls the target's malloc.
// Signals: a signal that asks to stop only sets a flag in the command (interrupt.hpp). start_thread_in()
// checks it; wait_for_answer() does not. The thread in the target has all signals blocked. Crash: if the
// command is killed, the thread in the target still finishes its request.
#include "profiling/attach/attach.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "profiling/attach/remote_thread.hpp"

namespace penstock {
namespace {

constexpr auto kAttachTimeout = std::chrono::seconds(10);
constexpr auto kLoadTimeout = std::chrono::seconds(60);  // dlopen() waits while other threads load libraries
constexpr const char* kRequestFunction = "penstock_profile_request";
constexpr const char* kRequestMemory = "penstock_profile_asked";
constexpr size_t kErrorTextBytes = 256;
constexpr size_t kPathBytes = 4096;

// The data of the assembler code below, in the target's memory. The command fills all of it before the new
// thread starts. The code writes only `failed`, `is_loading` and `error_text`; the library writes its answer
// to `request_data`. Each `..._address` is an address in the target.
struct LoaderData {
  uint64_t path_address;
  uint64_t dlopen_mode;
  uint64_t name_address;
  uint64_t dlopen_address;
  uint64_t dlsym_address;
  uint64_t dlerror_address;
  uint64_t pthread_self_address;
  uint64_t pthread_detach_address;
  uint64_t request_address;
  uint64_t error_address;
  uint64_t register_atfork_address;
  uint64_t cxa_finalize_address;
  uint32_t failed;
  uint32_t is_loading;  // forks of the target wait while it is 1
  char path_text[kPathBytes];
  char name_text[64];
  char error_text[kErrorTextBytes];
  penstock_request request_data;
};
static_assert(offsetof(LoaderData, dlopen_address) == 24 && offsetof(LoaderData, dlsym_address) == 32 &&
                  offsetof(LoaderData, dlerror_address) == 40 &&
                  offsetof(LoaderData, pthread_self_address) == 48 &&
                  offsetof(LoaderData, pthread_detach_address) == 56 &&
                  offsetof(LoaderData, request_address) == 64 && offsetof(LoaderData, error_address) == 72 &&
                  offsetof(LoaderData, register_atfork_address) == 80 &&
                  offsetof(LoaderData, cxa_finalize_address) == 88 && offsetof(LoaderData, failed) == 96 &&
                  offsetof(LoaderData, is_loading) == 100,
              "the code below knows them");

#if defined(__x86_64__)
// The function of the new thread. It calls dlopen(path, mode), then dlsym(handle, name), then the function
// that dlsym() found, with the address of `request_data`. That function, penstock_profile_request(), also
// detaches the thread.
//
// Forks: dlopen() holds locks of the loader, and changes the loader's lists. A child that is forked meanwhile
// would have these locks held for ever, and half-changed lists: even its dlopen(NULL) would end it. So this
// code first makes penstock_wait_for_loading() a handler of pthread_atfork(): each fork() waits until
// `is_loading` is 0. It waits for at most 2,000 pauses of 1 ms, because the thread that forks may itself hold
// a lock that dlopen() needs. After that it clears `is_loading`, so that it waits only once, also in the
// child. The handler is removed before the library does anything: __cxa_finalize() removes the handlers that
// were registered with the address of LoaderData.
//
// Errors: if dlopen() or dlsym() fails, this code copies the text of dlerror() and detaches the thread. It
// stores `failed` last, because the command reads the text once it sees `failed`.
// Registers: rbx has the address of LoaderData, r12 the function that was found. The code works at any
// address, because it makes every call through a pointer in LoaderData, which follows one page after it.
__asm__(
    ".pushsection .rodata\n"
    "penstock_loading_begin:\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  subq $8, %rsp\n"
    "  movq %rdi, %rbx\n"
    "  leaq penstock_wait_for_loading(%rip), %rdi\n"
    "  xorl %esi, %esi\n"
    "  xorl %edx, %edx\n"
    "  movq %rbx, %rcx\n"
    "  call *80(%rbx)\n"
    "  xorl %r12d, %r12d\n"
    "  movq (%rbx), %rdi\n"
    "  movl 8(%rbx), %esi\n"
    "  call *24(%rbx)\n"
    "  testq %rax, %rax\n"
    "  jz 1f\n"
    "  movq %rax, %rdi\n"
    "  movq 16(%rbx), %rsi\n"
    "  call *32(%rbx)\n"
    "  movq %rax, %r12\n"
    "1: movl $0, 100(%rbx)\n"
    "  movq %rbx, %rdi\n"
    "  call *88(%rbx)\n"
    "  movq 64(%rbx), %rdi\n"
    "  testq %r12, %r12\n"
    "  jz 5f\n"
    "  call *%r12\n"
    "  jmp 4f\n"
    "5: call *40(%rbx)\n"
    "  testq %rax, %rax\n"
    "  jz 3f\n"
    "  movq 72(%rbx), %rdi\n"
    "  movl $255, %ecx\n"
    "2: movb (%rax), %dl\n"
    "  movb %dl, (%rdi)\n"
    "  testb %dl, %dl\n"
    "  jz 3f\n"
    "  incq %rax\n"
    "  incq %rdi\n"
    "  decl %ecx\n"
    "  jnz 2b\n"
    "3: call *48(%rbx)\n"
    "  movq %rax, %rdi\n"
    "  call *56(%rbx)\n"
    "  movl $1, 96(%rbx)\n"
    "4: xorl %eax, %eax\n"
    "  addq $8, %rsp\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  ret\n"
    "penstock_wait_for_loading:\n"
    "  pushq %rbx\n"
    "  subq $16, %rsp\n"
    "  movl $2000, %ebx\n"
    "6: cmpl $0, penstock_loading_begin+4096+100(%rip)\n"
    "  je 7f\n"
    "  movq $0, (%rsp)\n"
    "  movq $1000000, 8(%rsp)\n"
    "  movq %rsp, %rdi\n"
    "  xorl %esi, %esi\n"
    "  movl $35, %eax\n"  // SYS_nanosleep
    "  syscall\n"
    "  decl %ebx\n"
    "  jnz 6b\n"
    "  movl $0, penstock_loading_begin+4096+100(%rip)\n"
    "7: addq $16, %rsp\n"
    "  popq %rbx\n"
    "  ret\n"
    "penstock_loading_end:\n"
    ".popsection\n");
extern "C" {
extern const char penstock_loading_begin[] __attribute__((visibility("hidden")));
extern const char penstock_loading_end[] __attribute__((visibility("hidden")));
}
std::string_view loading_code() {
  return {penstock_loading_begin, size_t(penstock_loading_end - penstock_loading_begin)};
}
#else
std::string_view loading_code() {
  return "";
}
#endif

// Waits for the target's answer, at most 60 s, by reading the target's memory again and again. The target
// stores `done` last, so the answer is complete once `done` is set. The assembler code above stores `failed`
// last, so the error's text is complete once `failed` is set. A timeout cancels nothing: the new thread in
// the target may still handle the request, because the request's memory stays mapped.
Result<penstock_request> wait_for_answer(const Target& target, uint64_t request_address,
                                         uint64_t loader_address) {
  const auto until = std::chrono::steady_clock::now() + kLoadTimeout;
  while (std::chrono::steady_clock::now() < until) {
    penstock_request request{};
    if (!target.read(request_address, &request, sizeof request)) return ended_meanwhile(target);
    if (request.done != 0) return request;
    LoaderData loader{};
    if (loader_address != 0 && target.read(loader_address, &loader, offsetof(LoaderData, path_text)) &&
        loader.failed != 0) {
      std::string error(kErrorTextBytes, '\0');
      target.read(loader_address + offsetof(LoaderData, error_text), error.data(), error.size());
      return make_error(Errc::unsupported, "process {} cannot load the library: {}", target.pid(),
                        error.c_str());
    }
    if (!target.is_running()) return ended_meanwhile(target);
    ::usleep(200);
  }
  return make_error(
      Errc::timed_out,
      "process {} does not answer: it is stopped, or one of its threads is still loading a library. It may "
      "carry out the request later; 'penstock profile status PID' shows the state",
      target.pid());
}

// Sends a request to a library that the target has loaded already. The request is written before the new
// thread starts in the target, so that thread sees all of it. The library has memory for only one request: if
// two commands send requests at the same time, one of them is lost.
Result<penstock_request> send_request(const Target& target, const penstock_request& request,
                                      std::chrono::nanoseconds& stopped_for) {
  const auto function = target.library_symbol(kRequestFunction);
  const auto request_address = target.library_symbol(kRequestMemory);
  if (!request_address && !target.is_running()) return ended_meanwhile(target);
  if (!function || !request_address || request_address->bytes != sizeof request)
    return make_error(Errc::unsupported,
                      "process {} has loaded the library of another version of Penstock: use that version, "
                      "or restart the process",
                      target.pid());
  if (!target.write(request_address->address, &request, sizeof request)) return ended_meanwhile(target);
  PENSTOCK_ASSIGN(const StartedThread started,
                  start_thread_in(target, {function->address, request_address->address}, kAttachTimeout));
  stopped_for = started.stopped_for;
  return wait_for_answer(target, request_address->address, 0);
}

// Stores in `loader` the addresses of dlopen() and of the other functions of the target's libc that the
// assembler code calls. Before glibc 2.34 these functions may be absent or have other names.
Result<void> find_functions(const Target& target, LoaderData& loader) {
  const auto find = [&](const char* name, const char* older_name, uint64_t& address) {
    auto symbol = target.libc_function(name);
    if (!symbol && older_name != nullptr) symbol = target.libc_function(older_name);
    address = symbol ? symbol->address : 0;
    return symbol.has_value();
  };
  if (find("dlopen", "__libc_dlopen_mode", loader.dlopen_address) &&
      find("dlsym", "__libc_dlsym", loader.dlsym_address) &&
      find("dlerror", nullptr, loader.dlerror_address) &&
      find("pthread_self", nullptr, loader.pthread_self_address) &&
      find("pthread_detach", nullptr, loader.pthread_detach_address) &&
      find("__register_atfork", nullptr, loader.register_atfork_address) &&
      find("__cxa_finalize", nullptr, loader.cxa_finalize_address))
    return success();
  if (!target.is_running()) return ended_meanwhile(target);
  return make_error(Errc::unsupported,
                    "cannot attach to process {}: its libc is older than 2.34 and its dlopen() is not "
                    "loaded; start it with 'penstock profile run -- COMMAND'",
                    target.pid());
}

// Makes the target load the library and handle the request. Used for the first attach to a process.
// Memory: it maps a page of code and then LoaderData in the target. This memory stays mapped until the target
// ends, because a thread that forks may still be in the code. Only the first attach to a process needs it.
// `fill` runs in the helper process (remote_thread.hpp), after the memory is mapped and before the new thread
// starts. It changes only the helper's copies of `loader` and `thread`.
Result<penstock_request> load_library(const Target& target, const std::string& library,
                                      const penstock_request& request,
                                      std::chrono::nanoseconds& stopped_for) {
  constexpr uint64_t kPageSize = 4096;
  constexpr uint64_t kMappedBytes = kPageSize + (sizeof(LoaderData) + kPageSize - 1) / kPageSize * kPageSize;
  LoaderData loader{};
  PENSTOCK_TRY(find_functions(target, loader));
  if (library.size() >= kPathBytes)
    return make_error(Errc::invalid_argument,
                      "the path of the library '{}' is too long: set PENSTOCK_PROFILE_LIBRARY to a link with "
                      "a shorter path",
                      library);
  loader.dlopen_mode = RTLD_NOW;
  loader.is_loading = 1;
  loader.request_data = request;
  library.copy(loader.path_text, library.size());
  std::strncpy(loader.name_text, kRequestFunction, sizeof loader.name_text - 1);
  RemoteThread thread;
  thread.memory_bytes = kMappedBytes;
  thread.code_bytes = kPageSize;
  thread.fill = [&](uint64_t memory, RemoteThread& filled) -> Result<void> {
    const uint64_t data_address = memory + kPageSize;
    loader.path_address = data_address + offsetof(LoaderData, path_text);
    loader.name_address = data_address + offsetof(LoaderData, name_text);
    loader.error_address = data_address + offsetof(LoaderData, error_text);
    loader.request_address = data_address + offsetof(LoaderData, request_data);
    filled.function = memory;
    filled.argument = data_address;
    if (!target.write(memory, loading_code().data(), loading_code().size()) ||
        !target.write(data_address, &loader, sizeof loader))
      return ended_meanwhile(target);
    return success();
  };
  PENSTOCK_ASSIGN(const StartedThread started, start_thread_in(target, thread, kAttachTimeout));
  stopped_for = started.stopped_for;
  const uint64_t data_address = started.memory + kPageSize;
  return wait_for_answer(target, data_address + offsetof(LoaderData, request_data), data_address);
}

}  // namespace

// Sends an attach request. If the target does not have the library yet, this function loads it first. If the
// command is interrupted or killed after it has started the new thread in the target, that thread still
// completes the request.
Result<AttachOutcome> attach_to(const Target& target, const std::string& library,
                                const std::filesystem::path& folder, bool trace,
                                std::optional<uint64_t> trace_limit) {
  penstock_request request{};
  request.kind = PENSTOCK_REQUEST_ATTACH;
  request.trace = trace ? 1 : 0;
  if (trace_limit) request.trace_limit = *trace_limit == 0 ? PENSTOCK_NO_TRACE_LIMIT : *trace_limit;
  if (folder.string().size() >= sizeof request.folder)
    return make_error(Errc::invalid_argument,
                      "the path of the session '{}' is too long: choose a shorter path with -o",
                      folder.string());
  folder.string().copy(request.folder, sizeof request.folder - 1);
  AttachOutcome outcome;
  PENSTOCK_ASSIGN(const penstock_request response,
                  target.has_library() ? send_request(target, request, outcome.stopped_for)
                                       : load_library(target, library, request, outcome.stopped_for));
  if (response.failed == EALREADY)
    return make_error(
        Errc::already_exists, "process {} is already being profiled: {}", target.pid(),
        std::string_view(response.error_text, ::strnlen(response.error_text, sizeof response.error_text)));
  if (response.failed != 0)
    return errno_error(response.failed, fmt::format("process {} cannot write to", target.pid()),
                       folder.string());
  outcome.slots = response.slots;
  outcome.objects = response.objects;
  return outcome;
}

// Sends a detach request. The library stays loaded, because threads of the target may be inside its code.
Result<AttachOutcome> detach_from(const Target& target) {
  const auto not_attached = [&] {
    return make_error(Errc::not_found,
                      "process {} is not attached, so there is nothing to detach from; to list the profiled "
                      "processes: penstock profile top --once",
                      target.pid());
  };
  if (!target.has_library()) return not_attached();
  penstock_request request{};
  request.kind = PENSTOCK_REQUEST_DETACH;
  AttachOutcome outcome;
  PENSTOCK_ASSIGN(const penstock_request response, send_request(target, request, outcome.stopped_for));
  if (response.failed == EINVAL) return not_attached();
  if (response.failed != 0)
    return errno_error(response.failed, "cannot end the session of process", std::to_string(target.pid()));
  outcome.slots = response.slots;
  outcome.objects = response.objects;
  outcome.unrestored = response.unrestored;
  outcome.unloaded = response.unloaded;
  outcome.folder.assign(response.folder, ::strnlen(response.folder, sizeof response.folder));
  return outcome;
}

}  // namespace penstock
