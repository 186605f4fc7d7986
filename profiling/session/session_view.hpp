// Reads one file of a session (session_abi.h) directly from its mapping. None of the bytes are trusted: the
// file may be cut off, damaged, half written, written at this moment, or made by an attacker. So every offset
// and length is checked against the file's size, and the size limits every loop. Every entry is copied before
// it is inspected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/session_abi.h"

namespace penstock {

// A block of entries of one kind, without gaps between them.
struct SessionBlock {
  unsigned kind = PENSTOCK_BLOCK_FREE;
  uint64_t offset = 0;     // offset of the block in the file
  uint64_t bytes = 0;      // size of the block; in a cut file, only of the part that exists
  size_t entry_bytes = 0;  // size of an entry, from the block's header; 0 if each entry states its own size
  uint64_t times_emptied = 0;          // result of times_emptied() from before `entries` was read
  std::span<const std::byte> entries;  // the part of the block that has entries (penstock_block::used)
};

// Returns how many times the recorded process has emptied this block to use it again for newer entries. Call
// this before and after reading the block's bytes: if both calls return the same number, the bytes are valid.
uint64_t times_emptied(const std::byte* block);

// Converts the ticks of a process file to CLOCK_MONOTONIC by linear interpolation. Converts CLOCK_MONOTONIC
// to CLOCK_REALTIME by the difference of the two clocks at the begin of the file.
class SessionClock {
 public:
  SessionClock() = default;
  explicit SessionClock(const penstock_session_header& header);

  // Makes the conversion more exact with `moment`, a reading of ticks and CLOCK_MONOTONIC by another process
  // of the same machine. The conversion interpolates between two points: the reading at the begin of this
  // file, and a second one. `moment` replaces the second point if it is further from the begin, because a
  // longer distance is more exact. It is ignored if its ticks per second contradict the known rate.
  void refine(const penstock_moment& moment);

  int64_t monotonic_ns(uint64_t ticks) const;
  int64_t realtime_ns(int64_t monotonic_ns) const;  // since 1970
  int64_t realtime_at(uint64_t ticks) const { return realtime_ns(monotonic_ns(ticks)); }
  // Extends a time span (realtime) so that it contains both ticks; PENSTOCK_NEVER is ignored.
  void extend(int64_t& begin_ns, int64_t& end_ns, uint64_t first, uint64_t last) const;
  double duration_ns(uint64_t ticks) const { return double(ticks) * ns_per_tick_; }
  // false: the rate of the ticks is unknown, and one tick counts as one ns
  bool known() const { return rate_is_known_; }

 private:
  penstock_moment begin_{};
  int64_t begin_realtime_ns_ = 0;
  int64_t reading_distance_ns_ = 0;  // time between the two readings that the interpolation uses
  double ns_per_tick_ = 1;
  bool ticks_are_ns_ = true;
  bool rate_is_known_ = true;
};

// Returns the offset of the first data at or after `offset`, so that a reader can skip the holes of a sparse
// file. Returns the file's size if only a hole follows.
using NextData = std::function<uint64_t(uint64_t offset)>;

class SessionView {
 public:
  // Makes a view of the bytes, which must live longer than the view. Errors: corrupt if they are no session
  // file; unsupported for another version of the format or another byte order.
  static Result<SessionView> parse(std::span<const std::byte> bytes, const NextData& next_data = {});

  // A copy of the header from the moment when the view was made; the file's header may change later.
  const penstock_session_header& header() const { return header_; }
  const SessionClock& clock() const { return clock_; }
  SessionClock& clock() { return clock_; }
  const std::vector<SessionBlock>& blocks() const { return blocks_; }
  uint64_t torn_bytes() const { return torn_bytes_; }  // bytes that contain data but no valid block

  // The name of a file, the file's key and its kind. name_at() reads them at an offset that
  // penstock_counters::name gives; the text is "" if there is no name.
  struct Name {
    uint64_t file = 0;
    std::string_view text;  // points into the file's bytes
    unsigned kind = PENSTOCK_REGULAR;
  };
  Name name_at(uint64_t offset) const;

  // Returns the counters at `offset`, which each() gave to its callback; all zeros if the file ends before
  // them.
  penstock_counters counters_at(uint64_t offset) const;
  // Returns the segment at `offset`, which each() gave to its callback. All zeros if the file ends before it;
  // nullopt if the process has replaced it by a newer one.
  std::optional<penstock_segment> segment_at(uint64_t offset) const;

  // Calls `each(entry, offset)` for all entries of a kind. Another release of Penstock may have written
  // entries of another size: the end of longer entries is ignored, and the missing end of shorter entries is
  // zero.
  template <class Entry, class Each>
  void each(penstock_block_kind kind, Each each) const {
    for (const SessionBlock& block : blocks_)
      if (block.kind == unsigned(kind)) each_in<Entry>(block, each);
  }
  template <class Entry, class Each>
  static void each_in(const SessionBlock& block, Each each);

  void each_event(const std::function<void(const penstock_event&, std::string_view text)>& each) const;

 private:
  static constexpr size_t kLeastEntryBytes = 16;
  void find_blocks(const NextData& next_data);

  std::span<const std::byte> bytes_;
  penstock_session_header header_{};
  SessionClock clock_;
  std::vector<SessionBlock> blocks_;
  size_t whole_counters_bytes_ = sizeof(penstock_counters);  // less in files of older releases
  uint64_t torn_bytes_ = 0;
};

// The last part of a path; the whole path if it has no slash.
constexpr std::string_view base_name(std::string_view path) {
  // if there is no slash, npos + 1 is 0, so the whole path is returned
  return path.substr(path.rfind('/') + 1);
}
// The text of a fixed-size field, which ends with NUL or at the field's end.
std::string_view field_text(const char* field, size_t bytes);
template <size_t N>
std::string_view field_text(const char (&field)[N]) {
  return field_text(field, N);
}

// Makes an entry from its bytes. A penstock_brief becomes a penstock_counters.
template <class Entry>
Entry entry_of(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<Entry>);
  Entry entry{};
  std::memcpy(&entry, bytes.data(), bytes.size() < sizeof entry ? bytes.size() : sizeof entry);
  return entry;
}
template <>
penstock_counters entry_of<penstock_counters>(std::span<const std::byte> bytes);

// The begin of the first operation and the end of the last one, in ticks; PENSTOCK_NEVER if there is none.
inline uint64_t first_ticks_of(const penstock_counters& counters) {
  uint64_t first = counters.first_ticks;
  for (const uint64_t ticks : {counters.first_read_ticks, counters.first_write_ticks})
    if (ticks != PENSTOCK_NEVER && (first == PENSTOCK_NEVER || ticks < first)) first = ticks;
  return first;
}
inline uint64_t last_ticks_of(const penstock_counters& counters) {
  return std::max({counters.last_ticks, counters.last_read_ticks, counters.last_write_ticks});
}

template <class Entry, class Each>
void SessionView::each_in(const SessionBlock& block, Each each) {
  // The distance from one entry to the next is in the block's header, because another release of Penstock may
  // write longer entries. If the distance is below kLeastEntryBytes, it is wrong or missing, and
  // sizeof(Entry) is used.
  const size_t entry_step = block.entry_bytes < kLeastEntryBytes ? sizeof(Entry) : block.entry_bytes;
  for (size_t at = 0; at + entry_step <= block.entries.size(); at += entry_step) {
    const auto entry = entry_of<Entry>(block.entries.subspan(at, entry_step));
    if (block.kind == PENSTOCK_BLOCK_SEGMENTS &&
        times_emptied(block.entries.data() - sizeof(penstock_block)) != block.times_emptied)
      return;  // the process has replaced the remaining segments by newer ones
    each(entry, block.offset + sizeof(penstock_block) + at);
  }
}

}  // namespace penstock
