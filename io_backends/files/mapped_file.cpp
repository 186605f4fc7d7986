// Threads: any thread makes, reads and destroys a MappedFile. on_sigbus() runs on the thread whose access
// failed, or on any thread if a process sent the signal.
// Lock: the spin lock of Mappings guards its map. add(), remove() and the handler take it. No holder of the
// lock reads mapped memory.
// Memory: add() allocates before it takes the lock, and remove() frees after it. The handler allocates
// nothing.
// Signals: SIGBUS only. Its handler replaces lost pages by zeros. It passes any other SIGBUS to the earlier
// handler, or to the system, which ends the process.
// Ctrl-C: this file does not check for a signal, because nothing waits except for the lock.
// Crash: files are only read.
#include "io_backends/files/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <map>
#include <mutex>

namespace penstock {

// All current mappings, by their end address. Any thread may call add() and remove(). Only on_sigbus() calls
// replace_lost_pages(), which does not allocate.
// Lock: a spin lock that on_sigbus() may take in the signal handler. It takes the lock only for a SIGBUS with
// the code BUS_ADRERR, which an access to lost bytes raises. A thread that holds the lock never gets this
// signal, because it never reads mapped memory.
struct Mappings {
  void lock() {
    while (locked_.test_and_set(std::memory_order_acquire)) continue;
  }
  void unlock() { locked_.clear(std::memory_order_release); }

  static Mappings& of_process() {
    static Mappings& mappings = *new Mappings;  // never destroyed, so it outlives every mapping
    return mappings;
  }

  void add(MappedFile& file) {
    std::map<const std::byte*, MappedFile*>::node_type node = node_for(file);
    const std::lock_guard guard(*this);
    files_.insert(std::move(node));
  }
  void remove(const MappedFile& file) {
    // Declared before the guard, so that the node is freed after the lock is released.
    std::map<const std::byte*, MappedFile*>::node_type node;
    const std::lock_guard guard(*this);
    node = files_.extract(end_of(file));
  }

  // If `address` is in a mapping, replaces the page of that address and all later pages of the mapping by
  // zeros. Returns whether this succeeded; false if the address is in no mapping.
  bool replace_lost_pages(const std::byte* address) {
    const std::lock_guard guard(*this);
    const auto found = files_.upper_bound(address);
    if (found == files_.end() || address < found->second->bytes_.data()) return false;
    MappedFile& file = *found->second;
    const auto page_size = size_t(::getpagesize());
    const size_t lost_offset = size_t(address - file.bytes_.data()) / page_size * page_size;
    std::byte* const lost_begin =
        const_cast<std::byte*>(file.bytes_.data()) + lost_offset;  // NOLINT(*-const-cast)
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    file.lost_.store(true, std::memory_order_release);  // stored before the zeros appear
    return ::mmap(lost_begin, file.bytes_.size() - lost_offset, PROT_READ, kFlags, -1, 0) != MAP_FAILED;
  }

 private:
  static const std::byte* end_of(const MappedFile& file) { return file.bytes_.data() + file.bytes_.size(); }
  // Makes the map node for a file. This allocates, so add() calls it before it takes the spin lock, which may
  // be held only briefly.
  static std::map<const std::byte*, MappedFile*>::node_type node_for(MappedFile& file) {
    std::map<const std::byte*, MappedFile*> single_entry{{end_of(file), &file}};
    return single_entry.extract(single_entry.begin());
  }

  std::atomic_flag locked_;
  std::map<const std::byte*, MappedFile*> files_;
};

namespace {

// The handler that the program had before the first mapping. Written once, by install_sigbus_handler().
struct sigaction earlier_action {};

// The handler of SIGBUS. Runs on the thread whose access failed, or on any thread if a process sent the
// signal. It allocates nothing, takes only the lock of Mappings, and preserves errno.
void on_sigbus(int signal, siginfo_t* info, void* context) {
  const int sys_errno = errno;
  const bool handled = info->si_code == BUS_ADRERR && Mappings::of_process().replace_lost_pages(
                                                          static_cast<const std::byte*>(info->si_addr));
  errno = sys_errno;
  if (handled) return;
  if ((earlier_action.sa_flags & SA_SIGINFO) != 0) return earlier_action.sa_sigaction(signal, info, context);
  if (earlier_action.sa_handler != SIG_DFL && earlier_action.sa_handler != SIG_IGN)
    return earlier_action.sa_handler(signal);
  // If si_code <= 0, a process has sent the signal, and no access to memory failed. So the signal can be
  // ignored, as the earlier action demands.
  if (earlier_action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  // Restores the default action, which ends the process. If an access failed, it is repeated after the return
  // and raises the signal again. If a process sent the signal, raise() raises it again.
  std::signal(SIGBUS, SIG_DFL);
  if (info->si_code <= 0) ::raise(signal);
}

void install_sigbus_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    Mappings::of_process();
    struct sigaction action {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &earlier_action);
  });
}

}  // namespace

int MappedFile::map(int fd, size_t bytes, int advice, bool populate) {
  install_sigbus_handler();
  const int flags = MAP_SHARED | (populate ? MAP_POPULATE : 0);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, flags, fd, 0);
  if (memory == MAP_FAILED) return errno;
  if (advice != 0) ::madvise(memory, bytes, advice);
  bytes_ = {static_cast<const std::byte*>(memory), bytes};
  Mappings::of_process().add(*this);
  return 0;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  // This mapping is removed from the list before munmap(), because after that another mapping may get its
  // address.
  Mappings::of_process().remove(*this);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());  // NOLINT(*-const-cast)
}

}  // namespace penstock
