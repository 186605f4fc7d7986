// Writes to a thread's log: blocks, names, counters, segments and spans.
//
// Threads: the log's own thread, within an Update (counting.hpp). There is one exception:
// copy_names_to_session() calls add_name() for a log that no thread owns, in the thread that changes the
// session.
// Locks: none is held on entry, with two exceptions: the lock of a Ring or of AsyncOperations if asynchronous
// I/O is counted, and Control (recording.hpp) when recording ends. new_block() takes the session's file_lock.
// Memory: from the kernel and the session's file. No malloc, no stdio, no locale.
// Signals: a handler never runs this code while its own thread is inside it: the handler's operation is
// deferred or dropped (Update).
// Crash: other processes read the file while it is written, and this process may be killed at any
// instruction. So an entry is complete before publish_entries() adds it to its block. If the entry refers to
// a name, that name is added first.
#include "profiling/interpose/counting/thread_log.hpp"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/writer/private_memory.hpp"
#include "profiling/interpose/writer/session.hpp"
#include "profiling/interpose/writer/sixteens.hpp"

namespace penstock::interpose {

namespace {
constexpr uint64_t kFirstSlotCount = 512;
constexpr uint64_t kDoubleFromSlotCount = 1U << 20U;  // smaller tables grow to four times their size
}  // namespace

void FileTable::clear() noexcept {
  memset(marks_, 0, slot_count_);
  filled_slots_ = 0;
}

bool FileTable::grow() noexcept {
  // Unless the table is very large, all its pages are allocated at once (MAP_POPULATE), which is faster than
  // a page fault for each page.
  const bool is_large = slot_count_ >= kDoubleFromSlotCount;
  const uint64_t count = slot_count_ == 0 ? kFirstSlotCount : slot_count_ * (is_large ? 2 : 4);
  auto* new_slots = static_cast<uint64_t*>(private_memory(bytes_of(count), is_large ? 0 : MAP_POPULATE));
  if (new_slots == nullptr) {
    return false;
  }
  auto* new_marks = reinterpret_cast<uint8_t*>(new_slots + count);
  for (uint64_t i = 0; i < slot_count_; ++i) {
    if (marks_[i] == 0) {
      continue;
    }
    // The slot contains some bits of the hash. In the largest tables these bits are too few to find the
    // slot's new index.
    const uint64_t slot = slots_[i];
    uint64_t hash = slot >> kAddressBits;
    if (count > kTagMask + 1) {
      const penstock_counters& c = *counters_at(slot);
      hash = hash_of(c.file, layer_of(c));
    }
    uint64_t index = hash & (count - 1);
    while (new_marks[index] != 0) {
      index = (index + 1) & (count - 1);
    }
    new_slots[index] = slot;
    new_marks[index] = marks_[i];
  }
  // slot_count_ is stored last, because a handler may fork between these stores. Its child clears the first
  // slot_count_ bytes of marks_, so these bytes must exist.
  uint64_t* const old_slots = slots_;
  const uint64_t old_count = slot_count_;
  slots_ = new_slots;
  marks_ = new_marks;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  slot_count_ = count;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (old_slots != nullptr) {
    free_private_memory(old_slots, bytes_of(old_count));
  }
  return true;
}

namespace {

constexpr uint64_t kMostBlockBytes = 256U << 10U;
constexpr uint64_t kUsualNameBytes = 128;  // prefetched for the next name, whose length is not known yet

// Adds a block with room for `bytes` bytes of entries. The block is twice as large as `block`, but at most
// kMostBlockBytes, unless `bytes` needs more. Null if there is no room. Null also for a retired log: its
// session has ended, and a new block would be in the next session's file.
[[gnu::cold]] penstock_block* add_block_of_thread(const ThreadLog& log, penstock_block*& block,
                                                  penstock_block_kind kind, uint16_t entry_bytes,
                                                  uint64_t bytes) noexcept {
  if (log.is_retired) {
    return nullptr;
  }
  uint64_t size = block == nullptr ? PENSTOCK_BLOCK_GRANULE : block->bytes * 2;
  size = size > kMostBlockBytes ? kMostBlockBytes : size;
  penstock_block* added_block = new_block(
      kind, entry_bytes, (size > bytes + sizeof(penstock_block) ? size - sizeof(penstock_block) : bytes));
  if (added_block != nullptr) {
    block = added_block;
  }
  return added_block;
}
// Returns `block` if it has room for `bytes` bytes, otherwise a new block; null if there is no room.
[[gnu::always_inline]] inline penstock_block* block_with_room(const ThreadLog& log, penstock_block*& block,
                                                              penstock_block_kind kind, uint16_t entry_bytes,
                                                              uint64_t bytes) noexcept {
  if (free_bytes(block) >= bytes) [[likely]] {
    return block;
  }
  return add_block_of_thread(log, block, kind, entry_bytes, bytes);
}

// Copies as memcpy() does, but without a function call for names of 16 bytes and more.
void copy_name(char* to, const char* from, size_t length) noexcept {
  if (length < sizeof(SixteenBytes)) [[unlikely]] {
    memcpy(to, from, length);
    return;
  }
  each_group(length, [=](size_t at) {
    const SixteenBytes bytes = sixteen_at(from + at);
    memcpy(to + at, &bytes, sizeof(bytes));
  });
}

// Prefetches the memory of the next entry into the processor's cache. It is loaded while the program does
// other work.
void prefetch_for_writing(const char* at, uint64_t bytes, uint64_t room) noexcept {
  constexpr uint64_t kCacheLineBytes = 64;
  for (uint64_t i = 0; i < bytes && i < room; i += kCacheLineBytes) {
    __builtin_prefetch(at + i, 1);
  }
}

}  // namespace

// Writes a name to the session. Called by the log's own thread, or for a log without an owner
// (copy_names_to_session()). The text is written before publish_entries() makes it visible.
uint64_t add_name(ThreadLog& log, uint64_t file, const char* text, uint32_t length,
                  penstock_file_kind kind) noexcept {
  const uint64_t bytes = sizeof(penstock_name) + (length + 7) / 8 * 8;
  penstock_block* block = block_with_room(log, log.names, PENSTOCK_BLOCK_NAMES, 0, bytes);
  if (block == nullptr) [[unlikely]] {
    return 0;
  }
  char* at = first_free_byte(block);
  const penstock_name name{.file = file, .length = length, .kind = uint16_t(kind), .reserved = 0};
  memcpy(at, &name, sizeof(name));
  copy_name(at + sizeof(name), text, length);
  publish_entries(block, bytes);
  prefetch_for_writing(at + bytes, kUsualNameBytes, free_bytes(block));
  return uint64_t(at - log.base);
}

namespace {

// Adds counters of the form kForm to the log's block; null if there is no room. It writes only the fields
// that differ from 0, because a new block contains only zeros.
template <penstock_form kForm>
[[gnu::always_inline]] inline penstock_counters* add_counters(ThreadLog& log, uint64_t file, uint64_t name,
                                                              penstock_layer layer, uint64_t begin) noexcept {
  constexpr bool kIsWhole = kForm == PENSTOCK_WHOLE;
  constexpr uint16_t kBytes = kIsWhole ? sizeof(penstock_counters) : sizeof(penstock_brief);
  penstock_block* block =
      kIsWhole ? block_with_room(log, log.counters, PENSTOCK_BLOCK_COUNTERS, kBytes, kBytes)
               : block_with_room(log, log.brief_counters, PENSTOCK_BLOCK_COUNTERS, kBytes, kBytes);
  if (block == nullptr) [[unlikely]] {
    count_drop(session.header->dropped_records);
    return nullptr;
  }
  char* at = first_free_byte(block);
  auto* c = reinterpret_cast<penstock_counters*>(at);
  c->file = file;
  c->name = name;
  c->thread = log.thread;
  c->layer = uint16_t(layer);
  c->form = uint8_t(kForm);
  if constexpr (kIsWhole) {
    c->first_ticks = begin;
  } else {
    as_brief(*c).first_ticks = begin;
  }
  publish_entries(block, kBytes);
  prefetch_for_writing(at + kBytes, kBytes, free_bytes(block));
  return c;
}
[[gnu::noinline]] penstock_counters* add_whole(ThreadLog& log, uint64_t file, uint64_t name,
                                               penstock_layer layer, uint64_t begin) noexcept {
  return add_counters<PENSTOCK_WHOLE>(log, file, name, layer, begin);
}

// Makes `c` continue `previous`, the counters of the same file: later operations are counted in `c`, which
// takes over the last positions of `previous`. `c` is in the session's file before `previous` is marked as
// continued. A reader that reads between these two steps misses nothing, because it counts both.
void continue_counters(penstock_counters& previous, penstock_counters& c) noexcept {
  c.last_was = previous.last_was;
  c.last_read = visit_counters(previous, [](const auto& fields) { return fields.last_read; });
  const bool had_reads = visit_counters(previous, [](const auto& fields) { return fields.reads != 0; });
  if (had_reads) {
    c.form = PENSTOCK_WHOLE_CONTINUATION;
  }
  if (is_brief(previous)) {
    previous.form = PENSTOCK_CONTINUED;
  } else {
    c.last_written = previous.last_written;
  }
}

// Adds whole counters for a file whose counters are full, or are brief ones that cannot count the call. The
// log's table is changed last: until then it refers to the old counters, which are still valid.
[[gnu::noinline]] penstock_counters* make_continuation(ThreadLog& log, uint64_t slot,
                                                       penstock_counters& previous, uint64_t begin) noexcept {
  penstock_counters* c =
      add_whole(log, previous.file, previous.name, static_cast<penstock_layer>(previous.layer), begin);
  if (c != nullptr) {
    continue_counters(previous, *c);
    log.files.set(slot, *c);
  }
  return c;
}

}  // namespace

// Finds or makes the counters. Usually the file is new to this thread, so the branches are marked as likely
// for that case. A handler must not run this while its own thread is inside it, because the table may be
// growing. Update prevents that.
penstock_counters* counters_of(ThreadLog& log, const FileRecord& file, penstock_layer layer,
                               penstock_call call, uint64_t begin) noexcept {
  uint64_t slot = log.files.slot_of(file.file, layer);
  if (penstock_counters* existing = log.files.at(slot); existing != nullptr) [[unlikely]] {
    return can_count(*existing, call) ? existing : make_continuation(log, slot, *existing, begin);
  }
  if (log.files.is_full()) [[unlikely]] {
    if (!log.files.grow()) {
      count_drop(session.header->dropped_records);
      return nullptr;
    }
    slot = log.files.slot_of(file.file, layer);
  }
  uint64_t name = file.name;
  if (name == 0 && file.text != nullptr) [[likely]] {
    name = add_name(log, file.file, file.text, file.length, file.kind);
  }
  penstock_counters* c = needs_whole_counters(call)
                             ? add_whole(log, file.file, name, layer, begin)
                             : add_counters<PENSTOCK_BRIEF>(log, file.file, name, layer, begin);
  if (c != nullptr) [[likely]] {
    log.files.set(slot, *c);
  }
  return c;
}

namespace {

// Describes a descriptor whose open was not seen by a wrapper, from /proc and fstat(). Uses log.name, so it
// must not run in a handler that interrupted an update of its own thread. If own_log is null, the log is
// retired or not yet in use, and the name is not stored. The description is complete before describe() shows
// it to other threads.
Description* describe_from_proc(ThreadLog& log, int fd) noexcept {
  AbsoluteName& name = log.name;
  if (!name_of_descriptor(fd, name)) {
    count_drop(session.header->unnamed);
    return nullptr;
  }
  Description* description = make_description();
  if (description == nullptr) {
    return nullptr;
  }
  struct stat status {};
  const bool has_status = inspect(fd, "", status);
  const uint64_t now = ticks();
  note_moment(now);
  description->kind = has_status && S_ISDIR(status.st_mode)   ? PENSTOCK_DIRECTORY
                      : has_status && S_ISREG(status.st_mode) ? PENSTOCK_REGULAR
                                                              : PENSTOCK_OTHER_FILE;
  constexpr char kMemfdPrefix[] = "/memfd:";  // from memfd_create(): a file that is on no mount
  if (strncmp(name.text, kMemfdPrefix, sizeof(kMemfdPrefix) - 1) == 0) {
    description->kind = PENSTOCK_OTHER_FILE;
  }
  if (name.text[0] == '/') {
    description->file = name.file;
    if (penstock_counters* c = own_log == nullptr
                                   ? nullptr
                                   : counters_of(*own_log,
                                                 {.file = name.file,
                                                  .text = name.text,
                                                  .length = name.length,
                                                  .kind = static_cast<penstock_file_kind>(description->kind)},
                                                 PENSTOCK_POSIX, PENSTOCK_CALL_OTHER, now)) {
      description->name = c->name;
      visit_counters(*c, [](auto& fields) { fields.descriptors += 1; });
      if (description->kind == PENSTOCK_REGULAR) {
        note_size(*c, uint64_t(status.st_size));
      }
    }
  }
  const long position = system_call(SYS_lseek, fd, 0, SEEK_CUR);
  description->position.store(position > 0 ? position : 0, std::memory_order_relaxed);
  describe(fd, description);
  return description;
}

}  // namespace

// Finds or makes the counters of a descriptor's file. The caller holds an Update. If two threads describe the
// same descriptor at the same time, the later description replaces the earlier one (describe()). Its serial
// differs, so counters that were cached for the earlier description are not used any more.
penstock_counters* find_counters(ThreadLog& log, int fd, penstock_layer layer, penstock_call call) noexcept {
  Description* description = description_of(fd);
  if (description == nullptr) {
    description = describe_from_proc(log, fd);
    if (description == nullptr) {
      return nullptr;
    }
  }
  ThreadLog::Cached& cached = cache_entry(log, fd, layer);
  const uint64_t tag = cache_tag(description->serial.load(std::memory_order_relaxed), layer);
  if (cached.tag == tag && (cached.counters == nullptr || can_count(*cached.counters, call))) {
    return cached.counters;
  }
  penstock_counters* c = nullptr;
  if (description->file != 0) {
    c = counters_of(log,
                    {.file = description->file,
                     .name = description->name,
                     .kind = static_cast<penstock_file_kind>(description->kind)},
                    layer, call, ticks());
    if (c == nullptr) {
      return nullptr;  // no room; the cache does not change, so the next call tries again
    }
  }
  cached.counters = c;
  cached.tag = tag;
  return c;
}

namespace {

// Gives the log another block for segments, and returns it; null if there is none. At the trace limit it may
// empty the log's present block and return that one. So the caller must not keep pointers into the present
// block. Takes file_lock.
[[gnu::cold]] penstock_block* another_segment_block(ThreadLog& log) noexcept {
  penstock_block* block = log.is_retired ? nullptr : next_segment_block(log.segments);
  if (block != nullptr) {
    log.segments = block;
  }
  return block;
}

}  // namespace

// Records one traced call as a segment. The caller holds an Update, or an OuterUpdate if the block has
// room. The segment is stored before publish_entries() makes it visible.
void add_segment(ThreadLog& log, uint64_t file, const Operation& operation) noexcept {
  penstock_block* block = log.segments;
  if (free_bytes(block) < sizeof(penstock_segment)) {
    block = another_segment_block(log);
    if (block == nullptr) {
      count_drop(session.header->dropped_segments);
      return;
    }
    note_moment(operation.end);
  }
  auto* segment = reinterpret_cast<penstock_segment*>(first_free_byte(block));
  *segment = penstock_segment{.file = file,
                              .offset = uint64_t(operation.offset),
                              .length = uint64_t(operation.length),
                              .begin_ticks = operation.begin,
                              .end_ticks = operation.end,
                              .thread = log.thread,
                              .call = uint8_t(operation.call),
                              .layer = uint8_t(operation.layer),
                              .failed = uint16_t(operation.failed)};
  publish_entries(block, sizeof(penstock_segment));
  __builtin_prefetch(segment + 2, 1);  // the cache line that one of the next two calls writes to
}

// Adds a span that the program reports by penstock_profile_span(), which holds an Update.
void add_span(ThreadLog& log, const penstock_span& span) noexcept {
  penstock_block* block =
      block_with_room(log, log.spans, PENSTOCK_BLOCK_SPANS, sizeof(penstock_span), sizeof(penstock_span));
  if (block == nullptr) {
    count_drop(session.header->dropped_spans);
    return;
  }
  memcpy(first_free_byte(block), &span, sizeof(span));
  publish_entries(block, sizeof(span));
}

}  // namespace penstock::interpose
