// Chooses the clock of a session. This happens once, before any call is counted: when the library is loaded,
// or when recording begins later.
//
// Threads: the thread that loads the library, or the holder of Control.
// Locks: none is needed, because no other thread reads `uses_tsc` and `read_clock` yet.
#include "profiling/interpose/writer/session.hpp"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "profiling/interpose/writer/system.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace penstock::interpose {

constinit Session session;

namespace {

long read_clock_by_system_call(clockid_t clock, timespec* time) noexcept {
  return system_call(SYS_clock_gettime, clock, as_argument(time));
}

}  // namespace

constinit ClockFunction* read_clock = &read_clock_by_system_call;

namespace {

// Finds the kernel's clock_gettime() in the vDSO, which the kernel maps into each process. Its symbols are
// directly before its strings. Null if there is no vDSO (valgrind hides it), or if it looks different.
ClockFunction* clock_of_vdso() noexcept {
#if defined(__x86_64__)
  constexpr char kName[] = "__vdso_clock_gettime";
#else
  constexpr char kName[] = "__kernel_clock_gettime";
#endif
  const uintptr_t begin = getauxval(AT_SYSINFO_EHDR);
  if (begin == 0) {
    return nullptr;
  }
  const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(begin);
  const auto* program_headers = reinterpret_cast<const ElfW(Phdr)*>(begin + header.e_phoff);
  uintptr_t base = begin;
  const ElfW(Dyn)* dynamic = nullptr;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    if (program_headers[i].p_type == PT_LOAD) {
      base = begin + program_headers[i].p_offset - program_headers[i].p_vaddr;
    } else if (program_headers[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin + program_headers[i].p_offset);
    }
  }
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t value = dynamic->d_un.d_ptr < base ? dynamic->d_un.d_ptr + base : dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) {
      symbols = reinterpret_cast<const ElfW(Sym)*>(value);
    } else if (dynamic->d_tag == DT_STRTAB) {
      strings = reinterpret_cast<const char*>(value);
    }
  }
  constexpr size_t kMostSymbols = 64;
  for (size_t i = 1;
       symbols != nullptr && i < kMostSymbols && reinterpret_cast<const char*>(symbols + i + 1) <= strings;
       ++i) {
    if (symbols[i].st_shndx != SHN_UNDEF && strcmp(strings + symbols[i].st_name, kName) == 0) {
      return reinterpret_cast<ClockFunction*>(base + symbols[i].st_value);
    }
  }
  return nullptr;
}

#if defined(__x86_64__)
bool tsc_is_invariant() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0 || (d & (1U << 8U)) == 0) {
    return false;
  }
  // The kernel may have found that the counter differs between processors. In that case its clock source is
  // hpet, acpi_pm or jiffies, and the result is false.
  char source[32] = {};
  const long fd = system_call(
      SYS_openat, -100, as_argument("/sys/devices/system/clocksource/clocksource0/current_clocksource"), 0);
  if (fd < 0) {
    return true;
  }
  system_call(SYS_read, fd, as_argument(source), sizeof(source) - 1);
  system_call(SYS_close, fd);
  return strncmp(source, "hpet", 4) != 0 && strncmp(source, "acpi_pm", 7) != 0 &&
         strncmp(source, "jiffies", 7) != 0;
}

// Returns 0 if the kernel's clock stands still.
uint64_t measure_ticks_per_s() noexcept {
  constexpr unsigned kMostReads = 1'000'000;
  const int64_t begin_ns = nanoseconds(CLOCK_MONOTONIC);
  const uint64_t begin_ticks = __rdtsc();
  int64_t end_ns = begin_ns;
  uint64_t end_ticks = begin_ticks;
  for (unsigned reads = 0; end_ns - begin_ns < 100'000 && reads < kMostReads; ++reads) {
    end_ns = nanoseconds(CLOCK_MONOTONIC);
    end_ticks = __rdtsc();
  }
  return end_ns == begin_ns ? 0 : uint64_t(double(end_ticks - begin_ticks) * 1e9 / double(end_ns - begin_ns));
}
#endif

}  // namespace

uint64_t start_ticks() noexcept {
  if (const auto found = clock_of_vdso(); found != nullptr) {
    read_clock = found;
  }
#if defined(__x86_64__)
  // PENSTOCK_PROFILE_CLOCK overrides the choice. A user may know better than the processor: an emulator
  // (valgrind), for example, says that the counter is not invariant. A test may want the clock that would not
  // be chosen.
  const char* clock_name = getenv("PENSTOCK_PROFILE_CLOCK");
  if (clock_name == nullptr ? tsc_is_invariant() : strcmp(clock_name, "tsc") == 0) {
    const uint64_t ticks_per_s = measure_ticks_per_s();
    session.uses_tsc = ticks_per_s != 0;
    return ticks_per_s != 0 ? ticks_per_s : 1'000'000'000;
  }
#endif
  return 1'000'000'000;
}

}  // namespace penstock::interpose
