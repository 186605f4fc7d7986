// One process's part of a session (session_abi.h), looked at where it lies. Nothing that is there is
// trusted: the bytes may be cut off, torn, half written, written at this moment, or made by somebody hostile.
// Every offset and length is checked against the bytes that are there, every entry is copied out before it is
// looked at, and no loop runs longer than the bytes reach.
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

// Entries of one kind, one behind the other.
struct SessionBlock {
  unsigned kind = PENSTOCK_BLOCK_FREE;
  std::uint64_t offset = 0;            // of the block, in the file
  std::uint64_t bytes = 0;             // of the block, those that the file has
  std::size_t entry_bytes = 0;         // as its writer says; 0 where entries have sizes of their own
  std::uint64_t renewed = 0;           // as its header said before `entries` were told
  std::span<const std::byte> entries;  // whole ones, as far as their writer says
};

// How often the writer has emptied the block that begins there, now: what was read of it before holds if
// this has not changed.
std::uint64_t renewals_of(const std::byte* block);

// The line from ticks to CLOCK_MONOTONIC, and from there to CLOCK_REALTIME.
class SessionClock {
 public:
  SessionClock() = default;
  explicit SessionClock(const penstock_session_header& header);

  // Another reading of the same two clocks, by another process of this machine: where it lies further from
  // this one's begin than any of its own, and agrees with what they say, it makes the line better.
  void refine(const penstock_moment& moment);

  std::int64_t monotonic_ns(std::uint64_t ticks) const;
  std::int64_t realtime_ns(std::int64_t monotonic_ns) const;  // since 1970
  std::int64_t realtime_at(std::uint64_t ticks) const { return realtime_ns(monotonic_ns(ticks)); }
  // Makes a time (realtime) longer, so that these moments are in it; PENSTOCK_NEVER is none.
  void extend(std::int64_t& begin_ns, std::int64_t& end_ns, std::uint64_t first, std::uint64_t last) const;
  double duration_ns(std::uint64_t ticks) const { return static_cast<double>(ticks) * ns_per_tick_; }
  bool known() const { return known_; }  // false: the ticks were not measured, and count as ns

 private:
  penstock_moment begin_{};
  std::int64_t begin_realtime_ns_ = 0;
  std::int64_t baseline_ns_ = 0;  // between the two moments of the line
  double ns_per_tick_ = 1;
  bool ticks_are_ns_ = true;
  bool known_ = true;
};

// Where data begin at or behind an offset: leaps over holes of sparse files. Returns the size where none do.
using NextData = std::function<std::uint64_t(std::uint64_t offset)>;

class SessionView {
 public:
  // Borrows the bytes. corrupt: no session; unsupported: of a later version or of a machine with another byte
  // order.
  static Result<SessionView> look(std::span<const std::byte> bytes, const NextData& next_data = {});

  // As it stood when this was made.
  const penstock_session_header& header() const { return header_; }
  const SessionClock& clock() const { return clock_; }
  SessionClock& clock() { return clock_; }
  const std::vector<SessionBlock>& blocks() const { return blocks_; }
  std::uint64_t torn_bytes() const { return torn_bytes_; }  // that hold data but no block

  // The name at that offset (penstock_counters::name) and its kind; "" where there is none.
  struct Name {
    std::uint64_t file = 0;
    std::string_view text;  // is in the bytes
    unsigned kind = PENSTOCK_REGULAR;
  };
  Name name_at(std::uint64_t offset) const;

  // Of an offset that each() gave. Zeros where the bytes end before; nothing where the segment has given way
  // to a newer one meanwhile.
  penstock_counters counters_at(std::uint64_t offset) const;
  std::optional<penstock_segment> segment_at(std::uint64_t offset) const;

  // Calls `each(entry, offset)` for all entries of a kind. Entries that are longer than we know lose their
  // end, shorter ones are filled with zeros.
  template <class Entry, class Each>
  void each(penstock_block_kind kind, Each each) const {
    for (const SessionBlock& block : blocks_)
      if (block.kind == static_cast<unsigned>(kind)) each_in<Entry>(block, each);
  }
  template <class Entry, class Each>
  static void each_in(const SessionBlock& block, Each each);

  void each_event(const std::function<void(const penstock_event&, std::string_view text)>& each) const;

 private:
  static constexpr std::size_t kLeastEntry = 16;
  void find_blocks(const NextData& next_data);

  std::span<const std::byte> bytes_;
  penstock_session_header header_{};
  SessionClock clock_;
  std::vector<SessionBlock> blocks_;
  std::uint64_t torn_bytes_ = 0;
};

// The last part of a path; all of what has no slash.
constexpr std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}
// Text of a field that ends with NUL or with the field.
std::string_view field_text(const char* field, std::size_t bytes);
template <std::size_t N>
std::string_view field_text(const char (&field)[N]) {
  return field_text(field, N);
}

// What its bytes say; counters that were kept in brief as whole ones.
template <class Entry>
Entry entry_of(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<Entry>);
  Entry entry{};
  std::memcpy(&entry, bytes.data(), bytes.size() < sizeof entry ? bytes.size() : sizeof entry);
  return entry;
}
template <>
penstock_counters entry_of<penstock_counters>(std::span<const std::byte> bytes);

// The begin of the first operation and the end of the last one, in ticks; or PENSTOCK_NEVER.
inline std::uint64_t first_of(const penstock_counters& counters) {
  std::uint64_t first = counters.first_ticks;
  for (const std::uint64_t ticks : {counters.first_read_ticks, counters.first_write_ticks})
    if (ticks != PENSTOCK_NEVER && (first == PENSTOCK_NEVER || ticks < first)) first = ticks;
  return first;
}
inline std::uint64_t last_of(const penstock_counters& counters) {
  return std::max({counters.last_ticks, counters.last_read_ticks, counters.last_write_ticks});
}

template <class Entry, class Each>
void SessionView::each_in(const SessionBlock& block, Each each) {
  // A later writer may have made entries longer; one that says next to nothing means ours.
  const std::size_t step = block.entry_bytes < kLeastEntry ? sizeof(Entry) : block.entry_bytes;
  for (std::size_t at = 0; at + step <= block.entries.size(); at += step) {
    const auto entry = entry_of<Entry>(block.entries.subspan(at, step));
    if (block.kind == PENSTOCK_BLOCK_SEGMENTS &&
        renewals_of(block.entries.data() - sizeof(penstock_block)) != block.renewed)
      return;  // the rest has given way to newer ones
    each(entry, block.offset + sizeof(penstock_block) + at);
  }
}

}  // namespace penstock
