// The memory layout of io_uring and liburing, which the interfaces of the kernel and of liburing guarantee.
// It is declared here, so that the profiler supports rings even if it was built with old headers or without
// them.
#pragma once

#include <cstdint>

namespace penstock::interpose {

// A request (io_uring_sqe).
struct RingEntry {
  uint8_t opcode;
  uint8_t flags;
  uint16_t priority;
  int32_t fd;
  uint64_t offset;
  uint64_t address;
  uint32_t length;
  uint32_t call_flags;
  uint64_t user_data;
  uint16_t buffer;
  uint16_t personality;
  uint32_t file_index;  // for an open into the ring's table of registered files: the entry, from 1
  uint64_t more[2];
};
static_assert(sizeof(RingEntry) == 64);

struct RingCompletion {
  uint64_t user_data;
  int32_t result;
  uint32_t flags;
};

struct RingParameters {
  uint32_t sq_entries;
  uint32_t cq_entries;
  uint32_t flags;
  uint32_t thread_cpu;
  uint32_t thread_idle;
  uint32_t features;
  uint32_t workers_fd;
  uint32_t reserved[3];
  struct {
    uint32_t head, tail, mask, entries, flags, dropped, array, reserved;
    uint64_t address;  // address of the entries, if the program provides the memory
  } sq;
  struct {
    uint32_t head, tail, mask, entries, overflow, completions, flags, reserved;
    uint64_t address;  // address of both rings, if the program provides the memory
  } cq;
};
static_assert(sizeof(RingParameters) == 120);

// liburing's struct io_uring.
struct LibraryRing {
  struct {
    uint32_t *head, *tail, *mask, *entries, *flags, *dropped, *array;
    const RingEntry* requests;
    uint32_t prepared_head, prepared_tail;  // requests that are prepared but not submitted
    uint64_t bytes;
    void* memory;
    uint32_t more[4];
  } sq;
  struct {
    uint32_t *head, *tail, *mask, *entries, *flags, *overflow;
    const RingCompletion* completions;
    uint64_t bytes;
    void* memory;
    uint32_t more[4];
  } cq;
  uint32_t flags;
  int32_t fd;
};

enum RingOpcode : uint8_t {
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

constexpr uint32_t kSetupWideEntries = 1U << 10U;
constexpr uint32_t kSetupWideCompletions = 1U << 11U;
constexpr uint32_t kSetupOwnMemory = 1U << 14U;
constexpr uint32_t kSetupNoArray = 1U << 16U;
constexpr uint8_t kEntryFixedFile = 1U << 0U;
constexpr uint8_t kEntryLink = 1U << 2U;
constexpr uint8_t kEntryHardLink = 1U << 3U;
constexpr uint8_t kEntrySkipSuccess = 1U << 6U;
constexpr uint32_t kCompletionMore = 1U << 1U;
constexpr uint32_t kCompletionNotice = 1U << 3U;
constexpr uint32_t kAnyFileIndex = ~0U;
constexpr int64_t kMapOffsetOfCompletions = 0x8000000;
constexpr int64_t kMapOffsetOfEntries = 0x10000000;
constexpr int kSkipFile = -2;  // in an update of registered files: keep this entry
// Operations of io_uring_register().
constexpr unsigned kRegisterFiles = 2;
constexpr unsigned kUnregisterFiles = 3;
constexpr unsigned kRegisterFilesUpdate = 6;
constexpr unsigned kRegisterFiles2 = 13;
constexpr unsigned kRegisterFilesUpdate2 = 14;
constexpr uint32_t kRegisterSparse = 1U << 0U;
// The argument of kRegisterFilesUpdate2. The argument of kRegisterFilesUpdate has only the first 16 bytes of
// this struct.
struct RingFilesUpdate {
  uint32_t offset;
  uint32_t reserved;
  uint64_t data;
  uint64_t tags;
  uint32_t count;
  uint32_t reserved2;
};
// The argument of kRegisterFiles2.
struct RingFilesRegister {
  uint32_t count;
  uint32_t flags;
  uint64_t reserved;
  uint64_t data;
  uint64_t tags;
};

}  // namespace penstock::interpose
