#include "profiling/interpose/thread_log.hpp"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiling/interpose/counting.hpp"
#include "profiling/interpose/log_parts.hpp"
#include "profiling/interpose/paths.hpp"
#include "profiling/interpose/private_memory.hpp"
#include "profiling/interpose/segment_blocks.hpp"
#include "profiling/interpose/ticks.hpp"

namespace penstock::interpose {

namespace {

constexpr std::uint64_t kMostBlock = 256U << 10U;
constexpr std::uint64_t kFirstSlots = 512;
constexpr std::uint64_t kManySlots = 1U << 20U;
constexpr std::uint64_t kUsualName = 128;  // bytes
constexpr unsigned kPlaceBits = 43;        // an address in units of 32 bytes
constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << kPlaceBits) - 1;
constexpr std::uint64_t kTagMask = (std::uint64_t{1} << (64U - kPlaceBits)) - 1;
constexpr std::uint64_t kPlaceUnit = 32;
static_assert(sizeof(penstock_counters) % kPlaceUnit == 0 && sizeof(penstock_block) % kPlaceUnit == 0);

// A new block with room for `bytes`, twice as large as the last. Null without room.
[[gnu::cold]] penstock_block* another_block(const ThreadLog& log, penstock_block*& block,
                                            std::uint64_t& last_bytes, penstock_block_kind kind,
                                            std::uint16_t entry_bytes, std::uint64_t bytes) noexcept {
  if (log.retired) {
    return nullptr;
  }
  std::uint64_t want = last_bytes == 0 ? PENSTOCK_BLOCK_GRANULE : last_bytes * 2;
  want = want > kMostBlock ? kMostBlock : want;
  penstock_block* fresh = new_block(
      kind, entry_bytes, (want > bytes + sizeof(penstock_block) ? want - sizeof(penstock_block) : bytes));
  if (fresh != nullptr) {
    block = fresh;
    last_bytes = fresh->bytes;
  }
  return fresh;
}
// The one that there is, or another.
[[gnu::always_inline]] inline penstock_block* with_room(const ThreadLog& log, penstock_block*& block,
                                                        std::uint64_t& last_bytes, penstock_block_kind kind,
                                                        std::uint16_t entry_bytes,
                                                        std::uint64_t bytes) noexcept {
  return room_left(block) >= bytes ? block : another_block(log, block, last_bytes, kind, entry_bytes, bytes);
}

std::uint64_t mixed(std::uint64_t file, penstock_layer layer) noexcept {
  const std::uint64_t h = (file + static_cast<std::uint64_t>(layer)) * 0x9e3779b97f4a7c15U;
  return h ^ (h >> 32U);
}
std::uint64_t tag_of(std::uint64_t hash) noexcept {
  return hash & kTagMask;
}
penstock_counters* at_place(std::uint64_t slot) noexcept {
  return reinterpret_cast<penstock_counters*>((slot & kPlaceMask) * kPlaceUnit);
}

std::uint8_t mark_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint8_t>(hash >> 56U | 1U);
}

// The number of the slot of (file, layer), or of the free one where it belongs.
std::uint64_t slot_of(const ThreadLog& log, std::uint64_t file, penstock_layer layer) noexcept {
  const std::uint64_t hash = mixed(file, layer);
  for (std::uint64_t i = hash & (log.slot_count - 1);; i = (i + 1) & (log.slot_count - 1)) {
    if (log.marks[i] == 0) {
      return i;
    }
    if (log.marks[i] == mark_of(hash) && log.slots[i] >> kPlaceBits == tag_of(hash)) {
      const penstock_counters* c = at_place(log.slots[i]);
      if (c->file == file && c->layer == layer) {
        return i;
      }
    }
  }
}

std::uint64_t table_bytes(std::uint64_t slots) noexcept {
  return slots * (sizeof(std::uint64_t) + sizeof(std::uint8_t));
}
std::uint8_t* marks_behind(std::uint64_t* slots, std::uint64_t count) noexcept {
  return reinterpret_cast<std::uint8_t*>(slots + count);
}
}  // namespace

void empty_table(ThreadLog& log) noexcept {
  memset(log.marks, 0, log.slot_count);
  log.filled = 0;
}

void take_table(ThreadLog& log, std::uint64_t* slots, std::uint64_t slot_count) noexcept {
  log.slots = slots;
  log.marks = marks_behind(slots, slot_count);
  log.slot_count = slot_count;
  empty_table(log);
}

bool grow_slots(ThreadLog& log) noexcept {
  // All pages at once, and seldom: a program may open its files faster than pages come one by one.
  const bool many = log.slot_count >= kManySlots;
  const std::uint64_t count = log.slot_count == 0 ? kFirstSlots : log.slot_count * (many ? 2 : 4);
  auto* fresh = static_cast<std::uint64_t*>(
      private_memory(table_bytes(count), many ? Pages::when_touched : Pages::at_once));
  if (fresh == nullptr) {
    return false;
  }
  std::uint8_t* marks = marks_behind(fresh, count);
  for (std::uint64_t i = 0; i < log.slot_count; ++i) {
    if (log.marks[i] == 0) {
      continue;
    }
    // The tag holds as much of the hash as all but the largest tables need.
    const std::uint64_t slot = log.slots[i];
    std::uint64_t hash = slot >> kPlaceBits;
    if (count > kTagMask + 1) {
      const penstock_counters* c = at_place(slot);
      hash = mixed(c->file, static_cast<penstock_layer>(c->layer));
    }
    std::uint64_t at = hash & (count - 1);
    while (marks[at] != 0) {
      at = (at + 1) & (count - 1);
    }
    fresh[at] = slot;
    marks[at] = log.marks[i];
  }
  if (log.slots != nullptr) {
    give_back_private_memory(log.slots, table_bytes(log.slot_count));
  }
  log.slots = fresh;
  log.marks = marks;
  log.slot_count = count;
  return true;
}

namespace {

// Where the next entry will stand, while there is time: its memory is as cold as its file is new.
void fetch_for_writing(const char* at, std::uint64_t bytes, std::uint64_t room) noexcept {
  constexpr std::uint64_t kLine = 64;
  for (std::uint64_t i = 0; i < bytes && i < room; i += kLine) {
    __builtin_prefetch(at + i, 1);
  }
}

}  // namespace

std::uint64_t add_name(ThreadLog& log, std::uint64_t file, const char* text, std::uint32_t length,
                       penstock_file_kind kind) noexcept {
  const std::uint64_t bytes = sizeof(penstock_name) + (length + 7) / 8 * 8;
  penstock_block* block = with_room(log, log.names, log.names_bytes, PENSTOCK_BLOCK_NAMES, 0, bytes);
  if (block == nullptr) {
    return 0;
  }
  char* at = free_part(block);
  const penstock_name name{
      .file = file, .length = length, .kind = static_cast<std::uint16_t>(kind), .reserved = 0};
  memcpy(at, &name, sizeof(name));
  memcpy(at + sizeof(name), text, length);
  use(block, bytes);
  fetch_for_writing(at + bytes, kUsualName, room_left(block));
  return static_cast<std::uint64_t>(at - log.base);
}

namespace {

penstock_counters* add_counters(ThreadLog& log, std::uint64_t file, std::uint64_t name, penstock_layer layer,
                                penstock_form form, std::uint64_t begin) noexcept {
  const std::uint16_t bytes = form == PENSTOCK_WHOLE ? sizeof(penstock_counters) : PENSTOCK_READ_PART_BYTES;
  penstock_block* block =
      form == PENSTOCK_WHOLE
          ? with_room(log, log.counters, log.counters_bytes, PENSTOCK_BLOCK_COUNTERS, bytes, bytes)
          : with_room(log, log.read_parts, log.read_parts_bytes, PENSTOCK_BLOCK_COUNTERS, bytes, bytes);
  if (block == nullptr) {
    count_drop(session.header->dropped_records);
    return nullptr;
  }
  char* at = free_part(block);
  auto* c = reinterpret_cast<penstock_counters*>(at);
  c->file = file;
  c->name = name;
  c->thread = log.thread;
  c->layer = static_cast<std::uint16_t>(layer);
  c->form = static_cast<std::uint8_t>(form);
  c->first_ticks = begin;
  use(block, bytes);
  fetch_for_writing(at + bytes, bytes, room_left(block));
  return c;
}

// What comes later is counted in `c`: it knows what the last operations were.
void go_on(penstock_counters& before, penstock_counters& c) noexcept {
  c.last_was = before.last_was;
  c.last_read = before.last_read;
  if (before.form == PENSTOCK_WHOLE) {
    c.last_written = before.last_written;
  } else {
    before.form = PENSTOCK_CONTINUED;
  }
}

}  // namespace

void expect_file(const ThreadLog& log, std::uint64_t file, penstock_layer layer) noexcept {
  const std::uint64_t at = mixed(file, layer) & (log.slot_count - 1);
  __builtin_prefetch(log.marks + at, 1);
  __builtin_prefetch(log.slots + at, 1);
}

penstock_counters* counters_of(ThreadLog& log, const FileRecord& file, penstock_layer layer,
                               penstock_call call, std::uint64_t begin) noexcept {
  std::uint64_t slot = slot_of(log, file.file, layer);
  penstock_counters* before = log.marks[slot] == 0 ? nullptr : at_place(log.slots[slot]);
  if (before != nullptr && fits(*before, call)) {
    return before;
  }
  if (before == nullptr && (log.filled + 1) * 4 > log.slot_count * 3) {
    if (!grow_slots(log)) {
      count_drop(session.header->dropped_records);
      return nullptr;
    }
    slot = slot_of(log, file.file, layer);
  }
  std::uint64_t name = before != nullptr ? before->name : file.name;
  if (name == 0 && file.text != nullptr) {
    name = add_name(log, file.file, file.text, file.length, file.kind);
  }
  const bool whole = call == PENSTOCK_CALL_WRITE || (before != nullptr && before->form == PENSTOCK_WHOLE);
  penstock_counters* c =
      add_counters(log, file.file, name, layer, whole ? PENSTOCK_WHOLE : PENSTOCK_READ_PART, begin);
  if (c == nullptr) {
    return nullptr;
  }
  if (before == nullptr) {
    log.filled += 1;
  } else {
    go_on(*before, *c);
  }
  const std::uint64_t hash = mixed(file.file, layer);
  log.slots[slot] = tag_of(hash) << kPlaceBits | reinterpret_cast<std::uint64_t>(c) / kPlaceUnit;
  log.marks[slot] = mark_of(hash);
  return c;
}

penstock_counters* existing_counters(ThreadLog& log, std::uint64_t file, penstock_layer layer) noexcept {
  const std::uint64_t slot = slot_of(log, file, layer);
  return log.marks[slot] == 0 ? nullptr : at_place(log.slots[slot]);
}

namespace {

// A descriptor that nobody has seen opened.
Description* learn(ThreadLog& log, int fd) noexcept {
  AbsoluteName& name = log.name;
  if (!name_of_descriptor(fd, name)) {
    count_drop(session.header->unnamed);
    return nullptr;
  }
  Description* description = make_description();
  if (description == nullptr) {
    return nullptr;
  }
  struct stat about {};
#if defined(SYS_newfstatat)
  const bool known = system_call(SYS_newfstatat, fd, word(""), word(&about), 0x1000 /* AT_EMPTY_PATH */) == 0;
#else
  const bool known = system_call(SYS_fstatat, fd, word(""), word(&about), 0x1000) == 0;
#endif
  const std::uint64_t now = ticks();
  note_moment(now);
  description->kind = known && S_ISDIR(about.st_mode)   ? PENSTOCK_DIRECTORY
                      : known && S_ISREG(about.st_mode) ? PENSTOCK_REGULAR
                                                        : PENSTOCK_OTHER_FILE;
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
      c->descriptors += 1;
      const auto size = static_cast<std::uint64_t>(about.st_size);
      c->size = description->kind == PENSTOCK_REGULAR && size > c->size ? size : c->size;
    }
  }
  const long at = system_call(SYS_lseek, fd, 0, SEEK_CUR);
  description->position.store(at > 0 ? at : 0, std::memory_order_relaxed);
  describe(fd, description);
  return description;
}

}  // namespace

penstock_counters* find_counters(ThreadLog& log, int fd, penstock_layer layer, penstock_call call) noexcept {
  Description* description = described(fd);
  if (description == nullptr) {
    description = learn(log, fd);
    if (description == nullptr) {
      return nullptr;
    }
  }
  ThreadLog::Cached& known = cached(log, fd, layer);
  const std::uint64_t tag = cache_tag(description->serial.load(std::memory_order_relaxed), layer);
  if (known.tag == tag && (known.counters == nullptr || fits(*known.counters, call))) {
    return known.counters;
  }
  penstock_counters* c = nullptr;
  if (description->file != 0) {
    c = counters_of(log,
                    {.file = description->file,
                     .name = description->name,
                     .kind = static_cast<penstock_file_kind>(description->kind)},
                    layer, call, ticks());
    if (c == nullptr) {
      return nullptr;  // there was no room; there may be again
    }
  }
  known.counters = c;
  known.tag = tag;
  return c;
}

namespace {

[[gnu::cold]] penstock_block* another_segment_block(ThreadLog& log) noexcept {
  penstock_block* block = log.retired ? nullptr : next_segment_block(log.segments, log.segments_bytes);
  if (block != nullptr) {
    log.segments = block;
    log.segments_bytes = block->bytes;
  }
  return block;
}

}  // namespace

void add_segment(ThreadLog& log, std::uint64_t file, const Operation& operation) noexcept {
  penstock_block* block = log.segments;
  if (room_left(block) < sizeof(penstock_segment)) {
    block = another_segment_block(log);
    if (block == nullptr) {
      count_drop(session.header->dropped_segments);
      return;
    }
    note_moment(operation.end);
  }
  auto* segment = reinterpret_cast<penstock_segment*>(free_part(block));
  *segment = penstock_segment{.file = file,
                              .offset = static_cast<std::uint64_t>(operation.offset),
                              .length = static_cast<std::uint64_t>(operation.length),
                              .begin_ticks = operation.begin,
                              .end_ticks = operation.end,
                              .thread = log.thread,
                              .call = static_cast<std::uint8_t>(operation.call),
                              .layer = static_cast<std::uint8_t>(operation.layer),
                              .failed = static_cast<std::uint16_t>(operation.failed)};
  use(block, sizeof(penstock_segment));
}

void add_span(ThreadLog& log, const penstock_span& span) noexcept {
  penstock_block* block = with_room(log, log.spans, log.spans_bytes, PENSTOCK_BLOCK_SPANS,
                                    sizeof(penstock_span), sizeof(penstock_span));
  if (block == nullptr) {
    count_drop(session.header->dropped_spans);
    return;
  }
  memcpy(free_part(block), &span, sizeof(span));
  use(block, sizeof(span));
}

}  // namespace penstock::interpose
