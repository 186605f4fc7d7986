// Reads the dynamic section of a loaded object, and changes one slot of it while the program runs.
//
// Threads: the thread that walks over the loaded objects. Usually it holds Control, the lock for changing
// what is recorded (recording.hpp). Other threads may meanwhile call functions through the slots that are
// being changed.
// Locks: the members of SlotObject run under the loader's lock (slot_objects.hpp). Slots are changed only
// with Control held. If these functions waited, or called malloc, dlsym() or any counted function, they could
// deadlock with a thread that waits for the loader's lock. So they only read mapped memory, store to slots
// and make direct system calls.
// Memory: nothing is allocated.
// Signals: while slots are changed, Control has blocked all signals of this thread.
#include "profiling/interpose/hooks/slot_objects.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/hooks/wrap.hpp"
#include "profiling/interpose/writer/session.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kCallRelocation = R_X86_64_JUMP_SLOT;
constexpr uint32_t kAddressRelocation = R_X86_64_GLOB_DAT;
constexpr uint32_t kDataRelocation = R_X86_64_64;
#else
constexpr uint32_t kCallRelocation = R_AARCH64_JUMP_SLOT;
constexpr uint32_t kAddressRelocation = R_AARCH64_GLOB_DAT;
constexpr uint32_t kDataRelocation = R_AARCH64_ABS64;
#endif

// The size of a page. Safe under the loader's lock and in signal handlers, because sysconf() only reads
// memory to find it. If two threads make the first call at once, they store the same value. The first call is
// usually made in this library's constructor (is_preloaded()).
uintptr_t page_bytes() noexcept {
  static const auto bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
uintptr_t page_begin(uintptr_t at) noexcept {
  return at & ~(page_bytes() - 1);
}

}  // namespace

uintptr_t SlotObject::to_address(uintptr_t pointer) const noexcept {
  // `pointer` is an address if glibc has replaced the offsets in the dynamic section by addresses. In an
  // object that is read-only (the kernel's vdso) it is still an offset.
  return pointer < info_.dlpi_addr ? pointer + info_.dlpi_addr : pointer;
}

// Finds the parts of the object by its program headers and its dynamic section. The object cannot be unloaded
// meanwhile, because the loader's lock is held during a walk.
SlotObject::SlotObject(const dl_phdr_info& info) noexcept : info_(info) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (unsigned i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& program_header = info.dlpi_phdr[i];
    const uintptr_t at = info.dlpi_addr + program_header.p_vaddr;
    if (program_header.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(at);
    } else if (program_header.p_type == PT_GNU_RELRO) {
      protected_begin_ = page_begin(at);
      protected_end_ = page_begin(at + program_header.p_memsz);
    } else if (program_header.p_type == PT_LOAD && at + program_header.p_memsz > end_) {
      end_ = at + program_header.p_memsz;
    }
  }
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t value = dynamic->d_un.d_val;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        symbols_ = to_address(value);
        break;
      case DT_STRTAB:
        strings_ = to_address(value);
        break;
      case DT_RELA:
        relocations_ = to_address(value);
        break;
      case DT_RELASZ:
        relocation_bytes_ = value;
        break;
      case DT_JMPREL:
        call_slots_ = to_address(value);
        break;
      case DT_PLTRELSZ:
        call_slot_bytes_ = value;
        break;
      default:
        break;
    }
  }
}

void SlotObject::each_slot(void (*visit)(const FoundSlot& found, void* context),
                           void* context) const noexcept {
  if (symbols_ == 0 || strings_ == 0) {
    return;
  }
  if (relocations_ != 0) {
    each_slot_in(relocations_, relocation_bytes_, visit, context);
  }
  // Some linkers put the relocations of DT_JMPREL into DT_RELA as well. Those must not be visited twice.
  if (call_slots_ != 0 && !(call_slots_ >= relocations_ && call_slots_ < relocations_ + relocation_bytes_)) {
    each_slot_in(call_slots_, call_slot_bytes_, visit, context);
  }
}

void SlotObject::each_slot_in(uintptr_t relocations, uintptr_t bytes, void (*visit)(const FoundSlot&, void*),
                              void* context) const noexcept {
  const auto* entries = reinterpret_cast<const ElfW(Rela)*>(relocations);
  const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(symbols_);
  for (size_t i = 0; i < bytes / sizeof(ElfW(Rela)); ++i) {
    const auto type = uint32_t(ELF64_R_TYPE(entries[i].r_info));
    const uint64_t index = ELF64_R_SYM(entries[i].r_info);
    if ((type != kCallRelocation && type != kAddressRelocation && type != kDataRelocation) || index == 0 ||
        (type == kDataRelocation && entries[i].r_addend != 0)) {
      continue;
    }
    const ElfW(Sym)& symbol = symbols[index];
    const uintptr_t at = info_.dlpi_addr + entries[i].r_offset;
    if (at % sizeof(uintptr_t) != 0) {
      continue;
    }
    visit({.address = reinterpret_cast<uintptr_t*>(at),
           .name = reinterpret_cast<const char*>(strings_ + symbol.st_name),
           .is_call_slot = type == kCallRelocation,
           .is_undefined = symbol.st_shndx == SHN_UNDEF},
          context);
  }
}

// Whether the address is in code of this object, as its program headers say. Takes no lock.
bool SlotObject::has_code_at(uintptr_t at) const noexcept {
  for (unsigned i = 0; i < info_.dlpi_phnum; ++i) {
    const ElfW(Phdr)& program_header = info_.dlpi_phdr[i];
    const uintptr_t begin = info_.dlpi_addr + program_header.p_vaddr;
    if (program_header.p_type == PT_LOAD && (program_header.p_flags & PF_X) != 0 && at >= begin &&
        at < begin + program_header.p_memsz) {
      return true;
    }
  }
  return false;
}

bool SlotObject::is_protected(const void* at) const noexcept {
  const auto address = reinterpret_cast<uintptr_t>(at);
  return address >= protected_begin_ && address < protected_end_;
}

// Whether the word at `at` is writable. Control and the loader's lock are held. The word must not be read and
// written back as a test, because that could undo another thread's write.
bool is_writable(void* at) noexcept {
  // The kernel adds 0 to the word atomically (FUTEX_WAKE_OP). That changes nothing, and fails with EFAULT if
  // the memory is not writable.
  uint32_t unused_word = 0;
  auto* word = reinterpret_cast<uint32_t*>(reinterpret_cast<uintptr_t>(at) & ~uintptr_t{3});
  const long add_zero = long(FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0));
  return system_call(SYS_futex, as_argument(&unused_word), FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
                     as_argument(word), add_zero) >= 0;
}

// True if the protected part (RELRO) is still writable. The loader makes it read-only as its last step, so
// until then the object's slots may change. Another thread may be loading the object during this walk:
// dlopen() does not always hold the lock of dl_iterate_phdr(), which this walk holds.
bool SlotObject::is_being_loaded() const noexcept {
  return protected_end_ > protected_begin_ && is_writable(reinterpret_cast<void*>(protected_begin_));
}

// Other threads may be calling a function through the slot. They get either the old or the new function,
// because one instruction stores the whole aligned word, and the page stays readable all the time.
// No other thread changes the protection of this page meanwhile: other threads of this library would need
// Control, and the loader does so only for objects that are being loaded.
void SlotObject::store(uintptr_t* at, uintptr_t value) const noexcept {
  const auto page = long(page_begin(reinterpret_cast<uintptr_t>(at)));
  const auto bytes = long(page_bytes());
  const bool made_writable =
      is_protected(at) && system_call(SYS_mprotect, page, bytes, PROT_READ | PROT_WRITE) == 0;
  if (is_protected(at) && !made_writable) {
    return;
  }
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
  if (made_writable) {
    system_call(SYS_mprotect, page, bytes, PROT_READ);
  }
}

// --- The wrappers of dlopen() and similar functions. These functions find out by the return address which
// object calls them. The calling object decides which search paths are used, and which object is the next one
// for RTLD_NEXT. So a wrapper must jump to them as if the program had called them directly, and can do
// nothing after they return. Therefore the objects that they loaded are looked for later: when the program
// calls dlsym() to get functions of these objects, or opens a file.
#if defined(__x86_64__)
extern "C" {
// Notes that an object is about to be loaded. Called by the wrappers below in the program's thread, before
// dlopen(), with no lock held. It must not load, wait or allocate: it only reads the clock and stores to
// atomics. It does not change errno.
__attribute__((used, visibility("hidden"))) void penstock_will_load() noexcept {
  will_load();
}
// Redirects the calls of objects that were loaded since the last search. Called before dlsym(), with no lock
// of this library held. rewrite_new_objects() may take Control and walk over the objects. The walk does not
// hang if the program calls dlsym() inside a dl_iterate_phdr() of its own: its thread already holds the
// loader's lock then, but that lock is recursive.
__attribute__((used, visibility("hidden"))) void penstock_has_loaded() noexcept {
  if (session.may_have_new_objects.load(std::memory_order_relaxed)) {
    rewrite_new_objects();
  }
}

// Defines a wrapper that saves the three argument registers, calls `before`, restores them and jumps to
// `function`. At the jump the program's return address is on top of the stack, as if the program had called
// `function`. The three pushes also align the stack for the call of `before`. The jump reads the function's
// address without a lock; that is safe, because it was stored before any slot led to this wrapper.
#define PENSTOCK_TAIL_CALL(function, before)                                                         \
  __attribute__((used, visibility("hidden"))) constinit std::atomic<void*> penstock_real_##function{ \
      nullptr};                                                                                      \
  __attribute__((visibility("hidden"), naked)) void penstock_wrap_##function() {                     \
    __asm__(                                                                                         \
        "pushq %rdi\n"                                                                               \
        "pushq %rsi\n"                                                                               \
        "pushq %rdx\n"                                                                               \
        "call " before                                                                               \
        "\n"                                                                                         \
        "popq %rdx\n"                                                                                \
        "popq %rsi\n"                                                                                \
        "popq %rdi\n"                                                                                \
        "jmp *penstock_real_" #function "(%rip)\n");                                                 \
  }                                                                                                  \
  static constinit WrappedFunction wrapped_##function{.name = #function, .real = &penstock_real_##function};
PENSTOCK_TAIL_CALL(dlopen, "penstock_will_load")
PENSTOCK_TAIL_CALL(dlmopen, "penstock_will_load")
PENSTOCK_TAIL_CALL(dlsym, "penstock_has_loaded")
PENSTOCK_TAIL_CALL(dlvsym, "penstock_has_loaded")
}

void add_loader_wrappers(void (*add)(WrappedFunction& wrapped, uintptr_t wrapper)) noexcept {
  add(wrapped_dlopen, reinterpret_cast<uintptr_t>(&penstock_wrap_dlopen));
  add(wrapped_dlmopen, reinterpret_cast<uintptr_t>(&penstock_wrap_dlmopen));
  add(wrapped_dlsym, reinterpret_cast<uintptr_t>(&penstock_wrap_dlsym));
  add(wrapped_dlvsym, reinterpret_cast<uintptr_t>(&penstock_wrap_dlvsym));
}
#else
void add_loader_wrappers(void (*)(WrappedFunction&, uintptr_t)) noexcept {}
#endif

}  // namespace penstock::interpose
