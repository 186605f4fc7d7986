// The memory layout of io_uring and liburing, which the interfaces of the kernel and of the library
// guarantee. It is written out here so that the profiler supports rings whatever headers it was built with.
#pragma once

#include <cstdint>

namespace penstock::interpose {

// A request (io_uring_sqe).
struct RingEntry {
  std::uint8_t opcode;
  std::uint8_t flags;
  std::uint16_t priority;
  std::int32_t fd;
  std::uint64_t offset;
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t call_flags;
  std::uint64_t user_data;
  std::uint16_t buffer;
  std::uint16_t personality;
  std::uint32_t file_index;  // for an open into the ring's table of registered files: the entry, from 1
  std::uint64_t more[2];
};
static_assert(sizeof(RingEntry) == 64);

struct RingCompletion {
  std::uint64_t user_data;
  std::int32_t result;
  std::uint32_t flags;
};

struct RingParameters {
  std::uint32_t sq_entries;
  std::uint32_t cq_entries;
  std::uint32_t flags;
  std::uint32_t thread_cpu;
  std::uint32_t thread_idle;
  std::uint32_t features;
  std::uint32_t workers_fd;
  std::uint32_t reserved[3];
  struct {
    std::uint32_t head, tail, mask, entries, flags, dropped, array, reserved;
    std::uint64_t address;  // address of the entries, if the program provides the memory
  } sq;
  struct {
    std::uint32_t head, tail, mask, entries, overflow, completions, flags, reserved;
    std::uint64_t address;  // address of both rings, if the program provides the memory
  } cq;
};
static_assert(sizeof(RingParameters) == 120);

// liburing's struct io_uring.
struct LibraryRing {
  struct {
    std::uint32_t *head, *tail, *mask, *entries, *flags, *dropped, *array;
    const RingEntry* requests;
    std::uint32_t prepared_head, prepared_tail;  // requests that are prepared but not submitted
    std::uint64_t bytes;
    void* memory;
    std::uint32_t more[4];
  } sq;
  struct {
    std::uint32_t *head, *tail, *mask, *entries, *flags, *overflow;
    const RingCompletion* completions;
    std::uint64_t bytes;
    void* memory;
    std::uint32_t more[4];
  } cq;
  std::uint32_t flags;
  std::int32_t fd;
};

enum RingOpcode : std::uint8_t {
  kRingReadv = 1,
  kRingWritev = 2,
  kRingFsync = 3,
  kRingReadFixed = 4,
  kRingWriteFixed = 5,
  kRingSyncRange = 8,
  kRingFallocate = 17,
  kRingOpenat = 18,
  kRingClose = 19,
  kRingStatx = 21,
  kRingRead = 22,
  kRingWrite = 23,
  kRingFadvise = 24,
  kRingOpenat2 = 28,
  kRingSplice = 30,
  kRingTee = 33,
  kRingRenameat = 35,
  kRingUnlinkat = 36,
  kRingMkdirat = 37,
  kRingReadMultishot = 49,
  kRingFtruncate = 55,
  kRingReadvFixed = 58,
  kRingWritevFixed = 59,
};

constexpr std::uint32_t kSetupWideEntries = 1U << 10U;
constexpr std::uint32_t kSetupWideCompletions = 1U << 11U;
constexpr std::uint32_t kSetupOwnMemory = 1U << 14U;
constexpr std::uint32_t kSetupNoArray = 1U << 16U;
constexpr std::uint8_t kEntryFixedFile = 1U << 0U;
constexpr std::uint8_t kEntryLink = 1U << 2U;
constexpr std::uint8_t kEntryHardLink = 1U << 3U;
constexpr std::uint8_t kEntrySkipSuccess = 1U << 6U;
constexpr std::uint32_t kCompletionMore = 1U << 1U;
constexpr std::uint32_t kCompletionNotice = 1U << 3U;
constexpr std::uint32_t kAnyFileIndex = ~0U;
constexpr std::int64_t kRingMapCompletions = 0x8000000;
constexpr std::int64_t kRingMapEntries = 0x10000000;
constexpr int kSkipFile = -2;  // in an update of registered files: this entry does not change
// Operations of io_uring_register().
constexpr unsigned kRegisterFiles = 2;
constexpr unsigned kUnregisterFiles = 3;
constexpr unsigned kRegisterFilesUpdate = 6;
constexpr unsigned kRegisterFiles2 = 13;
constexpr unsigned kRegisterFilesUpdate2 = 14;
constexpr std::uint32_t kRegisterSparse = 1U << 0U;
// The argument of kRegisterFilesUpdate2. That of kRegisterFilesUpdate has only its first 16 bytes.
struct RingFilesUpdate {
  std::uint32_t offset;
  std::uint32_t reserved;
  std::uint64_t data;
  std::uint64_t tags;
  std::uint32_t count;
  std::uint32_t reserved2;
};
// The argument of kRegisterFiles2.
struct RingFilesRegister {
  std::uint32_t count;
  std::uint32_t flags;
  std::uint64_t reserved;
  std::uint64_t data;
  std::uint64_t tags;
};

}  // namespace penstock::interpose
