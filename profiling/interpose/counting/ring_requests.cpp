// Counts the requests of io_uring.
//
// Threads: any thread, in a wrapper, or when it ends the process.
// Locks: the caller holds Ring::lock, and no other lock except Control (recording.hpp) when recording ends.
// Memory: from the kernel, for descriptions and blocks; the program's heap is not used. The paths, iovecs and
// open_how of a request are read here just before the request is submitted, so the kernel has not checked
// their addresses yet. is_readable() checks an address first. So a bad address does not crash here, and the
// program gets its EFAULT.
// Signals: a handler that interrupts this code cannot run it too, because it does not get Ring::lock.
// Forks: a child never uses its parent's requests again (forget_rings()).
#include "profiling/interpose/counting/ring_requests.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

namespace {

// Bits of Pending::flags.
constexpr uint16_t kSkipsCompletion = 1;  // a silent request: if it succeeds, it has no completion
constexpr uint16_t kSoftLink = 2;         // if it fails, the requests linked after it are not started
constexpr uint16_t kOpensDescriptor = 4;  // an open whose result is a descriptor
// an open for which the kernel chooses the entry of the ring's table of registered files
constexpr uint16_t kOpensTableEntry = 8;
constexpr uint16_t kAppends = 16;

// Returns the file that a request names by a path. If the file has no counters yet, they are made now, so
// that the file's name is in the session: when the request completes, the path's memory may be freed.
HandleFile file_of_path(ThreadLog& log, int at, uint64_t path) noexcept {
  Update update(log);
  AbsoluteName& name = log.name;
  const auto* text = reinterpret_cast<const char*>(path);
  if (update.is_nested() || !is_readable_path(text) || !absolute_name(at, text, name)) {
    return {};
  }
  const penstock_counters* c = counters_of(log, {.file = name.file, .text = name.text, .length = name.length},
                                           PENSTOCK_RING, PENSTOCK_CALL_OTHER, ticks());
  return {.file = name.file, .name = c == nullptr ? 0 : c->name};
}

// Returns the file of a request. Called before the request is submitted: at its completion the descriptor may
// refer to another file.
HandleFile file_of_request(ThreadLog& log, const Ring& ring, const RingEntry& entry) noexcept {
  if ((entry.flags & kEntryFixedFile) == 0) {
    return file_of(log, entry.fd);
  }
  const auto index = uint32_t(entry.fd);
  return index < ring.file_count ? ring.table[index] : HandleFile{};
}

int64_t vector_bytes(const RingEntry& entry) noexcept {
  const auto* vectors = reinterpret_cast<const iovec*>(entry.address);
  uint64_t bytes = 0;
  const bool is_valid = is_readable(vectors, entry.length * sizeof(iovec));
  for (uint32_t i = 0; is_valid && i < entry.length; ++i) {
    bytes += vectors[i].iov_len;
  }
  return int64_t(bytes);
}

// Sets an entry of Ring::table, which is this library's copy of the ring's table of registered files.
void set_table_entry(Ring& ring, uint32_t index, HandleFile file) noexcept {
  if (index < ring.file_count) {
    ring.table[index] = file;
  }
}

// Fills `pending` for an operation on an open file. A request without an offset begins at the descriptor's
// position. That position is read here, and moved when the operation completes.
void prepare_operation(ThreadLog& log, const Ring& ring, const RingEntry& entry, Pending& pending,
                       penstock_call call, int64_t length) noexcept {
  pending.call = call;
  pending.is_counted = true;
  pending.file = file_of_request(log, ring, entry);
  pending.offset = int64_t(entry.offset);
  pending.length = length;
  if (entry.offset == ~uint64_t{0} && (entry.flags & kEntryFixedFile) == 0) {
    pending.uses_position = true;
    pending.fd = entry.fd;
    const Description* description = description_of(entry.fd);
    pending.offset = description == nullptr ? 0 : description->position.load(std::memory_order_relaxed);
  }
}

void prepare_name_call(ThreadLog& log, const RingEntry& entry, Pending& pending,
                       penstock_call call) noexcept {
  pending.call = call;
  pending.is_counted = true;
  const auto* text = reinterpret_cast<const char*>(entry.address);
  const bool has_empty_path = call == PENSTOCK_CALL_STAT && is_readable(text, 1) && *text == 0;
  pending.file = has_empty_path ? file_of(log, entry.fd) : file_of_path(log, entry.fd, entry.address);
}

void prepare_open(ThreadLog& log, Ring& ring, const RingEntry& entry, Pending& pending) noexcept {
  prepare_name_call(log, entry, pending, PENSTOCK_CALL_OPEN);
  // openat2: `offset` points to a struct open_how, whose first member is its flags.
  const auto* open_how = reinterpret_cast<const uint64_t*>(entry.offset);
  const uint64_t flags = entry.opcode == kRingOpenat                ? entry.call_flags
                         : is_readable(open_how, sizeof(*open_how)) ? *open_how
                                                                    : 0;
  pending.flags |= (flags & O_APPEND) != 0 ? kAppends : 0;
  if (entry.file_index == 0) {
    pending.flags |= kOpensDescriptor;
  } else if (entry.file_index == kAnyFileIndex) {
    pending.flags |= kOpensTableEntry;
  } else {
    set_table_entry(ring, entry.file_index - 1,
                    pending.file);  // set now, because requests that are linked after this one use the entry
  }
}

// Fills `pending` for a close, and forgets the descriptor. Called before the request is submitted: as soon as
// the kernel has closed the descriptor, another thread may get its number.
void prepare_close(ThreadLog& log, Ring& ring, const RingEntry& entry, Pending& pending) noexcept {
  pending.call = PENSTOCK_CALL_CLOSE;
  pending.is_counted = true;
  if (entry.file_index != 0) {
    const uint32_t index = entry.file_index - 1;
    pending.file = index < ring.file_count ? ring.table[index] : HandleFile{};
    set_table_entry(ring, index, {});
  } else {
    pending.file = file_of(log, entry.fd);
    forget(entry.fd);
  }
}

// Counts a request that succeeded, and adds its bytes to the totals of the calling thread. That is the thread
// in which this library reads the request's completion.
void count_success(ThreadLog& log, Ring& ring, Pending& pending, int64_t result) noexcept {
  Operation operation{.call = pending.call, .layer = PENSTOCK_RING, .begin = pending.begin, .end = ticks()};
  if (pending.call == PENSTOCK_CALL_READ || pending.call == PENSTOCK_CALL_WRITE) {
    operation.offset = pending.offset;
    operation.length = result;
    (pending.call == PENSTOCK_CALL_READ ? log.totals->ring_read : log.totals->ring_written) +=
        uint64_t(result);
    if (pending.offset >= 0) {
      pending.offset += result;  // the next completion of a multishot request begins here
    }
    if (Description* description = pending.uses_position ? description_of(pending.fd) : nullptr) {
      description->advance(result);
    }
  } else if ((pending.flags & kOpensTableEntry) != 0) {
    set_table_entry(ring, uint32_t(result), pending.file);
  } else if ((pending.flags & kOpensDescriptor) != 0) {
    if (Description* description = make_description()) {
      description->file = pending.file.file;
      description->name = pending.file.name;
      description->appends = (pending.flags & kAppends) != 0;
      describe(int(result), description);
    }
  }
  count_handle(log, pending.file, operation);
}

// Counts and removes a request that succeeded without a completion. It has read or written all the requested
// bytes; otherwise it would have a completion. An open is removed but not counted if the kernel chose its
// descriptor or table entry, because only a completion tells this number.
void count_silent_success(ThreadLog& log, Ring& ring, uint32_t index) noexcept {
  Pending& pending = ring.pending.at(index);
  if (pending.is_counted && (pending.flags & (kOpensDescriptor | kOpensTableEntry)) == 0) {
    count_success(log, ring, pending, pending.length);
  }
  ring.pending.remove(index);
}

bool was_short(const Pending& pending, int64_t result) noexcept {
  return pending.call == PENSTOCK_CALL_READ || pending.call == PENSTOCK_CALL_WRITE ? result < pending.length
                                                                                   : result < 0;
}

// Returns the index of the request that a completion belongs to; 0 if there is none. If several requests have
// the same user_data, it chooses the oldest one that is not silent (kSkipsCompletion). If all of them are
// silent, it chooses the oldest one for which the result is a failure or a short transfer, because a silent
// request has a completion only in these cases.
uint32_t request_of(Ring& ring, const RingCompletion& completion) noexcept {
  uint32_t oldest_short = 0;
  for (uint32_t index = ring.pending.find(completion.user_data); index != 0;
       index = ring.pending.find_after(index)) {
    const Pending& pending = ring.pending.at(index);
    if ((pending.flags & kSkipsCompletion) == 0) {
      return index;
    }
    if (oldest_short == 0 && was_short(pending, completion.result)) {
      oldest_short = index;
    }
  }
  return oldest_short;
}

}  // namespace

// Adds a request to ring.pending, before the kernel gets the request. So the request is in the table when its
// completion is read. This also holds if another thread reads the completion, because that thread waits for
// Ring::lock.
void add_request(ThreadLog& log, Ring& ring, const RingEntry& entry) noexcept {
  const uint32_t index = ring.pending.add(entry.user_data);
  if (index == 0) {
    count_drop(session.header->dropped_operations);
    ring.chain_end = 0;
    return;
  }
  // The reference stays valid: the table never moves its nodes.
  Pending& pending = ring.pending.at(index);
  pending.begin = ticks();
  pending.flags = (entry.flags & kEntrySkipSuccess) != 0 ? kSkipsCompletion : 0;
  pending.flags |= (entry.flags & kEntryLink) != 0 ? kSoftLink : 0;
  if (ring.chain_end != 0) {
    pending.previous_in_chain = ring.chain_end;
    ring.pending.at(ring.chain_end).next_in_chain = index;
  }
  ring.chain_end = (entry.flags & (kEntryLink | kEntryHardLink)) != 0 ? index : 0;
  switch (entry.opcode) {
    case kRingRead:
    case kRingReadFixed:
    case kRingReadMultishot:
      prepare_operation(log, ring, entry, pending, PENSTOCK_CALL_READ, entry.length);
      break;
    case kRingWrite:
    case kRingWriteFixed:
      prepare_operation(log, ring, entry, pending, PENSTOCK_CALL_WRITE, entry.length);
      break;
    case kRingReadv:
    case kRingReadvFixed:
      prepare_operation(log, ring, entry, pending, PENSTOCK_CALL_READ, vector_bytes(entry));
      break;
    case kRingWritev:
    case kRingWritevFixed:
      prepare_operation(log, ring, entry, pending, PENSTOCK_CALL_WRITE, vector_bytes(entry));
      break;
    case kRingFsync:
    case kRingSyncRange:
      prepare_operation(log, ring, entry, pending, PENSTOCK_CALL_SYNC, 0);
      pending.uses_position = false;
      break;
    case kRingFallocate:
    case kRingFadvise:
    case kRingFtruncate:
      prepare_operation(log, ring, entry, pending, PENSTOCK_CALL_OTHER, 0);
      pending.uses_position = false;
      break;
    case kRingOpenat:
    case kRingOpenat2:
      prepare_open(log, ring, entry, pending);
      break;
    case kRingClose:
      prepare_close(log, ring, entry, pending);
      break;
    case kRingStatx:
      prepare_name_call(log, entry, pending, PENSTOCK_CALL_STAT);
      break;
    case kRingRenameat:
    case kRingUnlinkat:
    case kRingMkdirat:
      prepare_name_call(log, entry, pending, PENSTOCK_CALL_OTHER);
      break;
    case kRingSplice:
    case kRingTee:
      count_drop(session.header->dropped_operations);
      break;
    default:
      break;
  }
}

// Counts the request that a completion belongs to. A chain of linked requests runs in order, so the silent
// requests (kSkipsCompletion) directly before it in its chain have completed too. These are counted first,
// because each may change a file position or the table of registered files.
void complete_request(ThreadLog& log, Ring& ring, const RingCompletion& completion) noexcept {
  if ((completion.flags & kCompletionNotice) != 0 || completion.user_data == ~uint64_t{0}) {
    return;  // not counted: a request's second completion, and liburing's own timeouts
  }
  const uint32_t index = request_of(ring, completion);
  if (index == 0) {
    count_drop(session.header->dropped_operations);
    return;
  }
  while (ring.pending.at(index).previous_in_chain != 0) {
    const uint32_t previous = ring.pending.at(index).previous_in_chain;
    if ((ring.pending.at(previous).flags & kSkipsCompletion) == 0) {
      break;  // the earlier request has a completion of its own
    }
    count_silent_success(log, ring, previous);
  }
  Pending& pending = ring.pending.at(index);
  if (pending.is_counted && completion.result >= 0) {
    count_success(log, ring, pending, completion.result);
  } else if (pending.is_counted && completion.result != -ECANCELED) {
    count_handle(log, pending.file,
                 {.call = pending.call,
                  .layer = PENSTOCK_RING,
                  .failed = -completion.result,
                  .begin = pending.begin,
                  .end = ticks()});
  }
  if ((completion.flags & kCompletionMore) != 0) {
    return;
  }
  // If a linked request fails, the kernel cancels the requests after it in its chain. If the failed request
  // was silent, the cancelled requests get no completions, so they are removed here.
  if (was_short(pending, completion.result) &&
      (pending.flags & (kSoftLink | kSkipsCompletion)) == (kSoftLink | kSkipsCompletion)) {
    while (ring.pending.at(index).next_in_chain != 0) {
      ring.pending.remove(ring.pending.at(index).next_in_chain);
    }
  }
  ring.pending.remove(index);
}

// Counts the silent requests (kSkipsCompletion) that have no completion, and removes them. Those in a chain
// are not counted, because an earlier request of the chain may have failed.
void count_silent_requests(ThreadLog& log, Ring& ring) noexcept {
  for (uint32_t i = 1; i <= ring.pending.highest_index(); ++i) {
    if (ring.pending.is_used(i) && (ring.pending.at(i).flags & kSkipsCompletion) != 0 &&
        ring.pending.at(i).next_in_chain == 0 && ring.pending.at(i).previous_in_chain == 0) {
      count_silent_success(log, ring, i);
    }
  }
}

}  // namespace penstock::interpose
