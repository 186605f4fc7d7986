#include "profiling/session/session_view.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <string>

#include "profiling/memory_fence.hpp"
#include "profiling/session/counters_copy.hpp"

namespace penstock {
namespace {

constexpr uint32_t kMostGranuleBytes = 1U << 30U;
// Two clock readings that are at least this far apart give more exact ticks per second than
// header.ticks_per_s.
constexpr int64_t kLeastDistanceNs = 1'000'000;
constexpr double kMostNsPerTick = 1e9;

bool is_whole(const penstock_counters& counters) {
  return counters.form == PENSTOCK_WHOLE || counters.form == PENSTOCK_WHOLE_CONTINUATION;
}

int64_t clamped(double value) {
  constexpr double kLargest = 9.2e18;
  if (!std::isfinite(value)) return 0;
  return int64_t(std::clamp(value, -kLargest, kLargest));
}

int64_t saturated_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? INT64_MIN : INT64_MAX;
  return sum;
}

Result<void> check_header(const penstock_session_header& header) {
  // The magic is written last.
  if (header.magic[0] == 0)
    return make_error(
        Errc::corrupt,
        "its header is incomplete: the process was killed while it created the file, or the file is damaged");
  if (std::memcmp(header.magic, PENSTOCK_SESSION_MAGIC, sizeof header.magic) != 0)
    return make_error(Errc::corrupt, "this is not a session file: its first bytes differ");
  if (header.byte_order != PENSTOCK_SESSION_BYTE_ORDER)
    return make_error(Errc::unsupported,
                      "this session was written on a machine with another byte order: read it there");
  if (header.version != PENSTOCK_SESSION_VERSION)
    return make_error(
        Errc::unsupported,
        "this session is of version " + std::to_string(header.version) +
            ", written by another version of Penstock: read it with that version; this one reads version " +
            std::to_string(PENSTOCK_SESSION_VERSION));
  if (header.header_bytes < sizeof header || header.header_bytes % 8 != 0 || header.granule < 4096 ||
      header.granule > kMostGranuleBytes || header.granule % 8 != 0)
    return make_error(Errc::corrupt, "the session's header contradicts itself");
  return success();
}

}  // namespace

uint64_t times_emptied(const std::byte* block) {
  // The recorded process may change this field during the read. `volatile` makes the compiler read the field
  // again at each call. The two fences keep the order of reads: earlier reads of the block happen before this
  // one, and later reads after it.
  uint64_t renewed = 0;
  memory_fence(std::memory_order_acquire);
  const auto* const from =
      reinterpret_cast<const volatile unsigned char*>(block + offsetof(penstock_block, renewed));
  for (unsigned i = 0; i < sizeof renewed; ++i)
    renewed |= uint64_t{from[i]} << (std::endian::native == std::endian::little ? 8 * i : 56 - 8 * i);
  memory_fence(std::memory_order_acquire);
  return renewed;
}

SessionClock::SessionClock(const penstock_session_header& header)
    : begin_(header.begin), begin_realtime_ns_(header.begin_realtime_ns) {
  if (header.clock == PENSTOCK_CLOCK_MONOTONIC) return;
  ticks_are_ns_ = false;
  rate_is_known_ = false;
  const penstock_moment& later = header.later[header.later_index & 1U];
  int64_t passed_ns = 0;
  if (later.ticks > begin_.ticks &&
      !__builtin_sub_overflow(later.monotonic_ns, begin_.monotonic_ns, &passed_ns) &&
      passed_ns >= kLeastDistanceNs) {
    ns_per_tick_ = double(passed_ns) / double(later.ticks - begin_.ticks);
    rate_is_known_ = ns_per_tick_ <= kMostNsPerTick;
    if (rate_is_known_) reading_distance_ns_ = passed_ns;
  }
  if (!rate_is_known_ && header.ticks_per_s != 0) {
    ns_per_tick_ = 1e9 / double(header.ticks_per_s);
    rate_is_known_ = true;
  }
  if (!rate_is_known_) ns_per_tick_ = 1;
}

void SessionClock::refine(const penstock_moment& moment) {
  // `moment` gives a rate of ticks. If it differs from the known rate by more than this share, `moment` is
  // wrong and is ignored. Correct rates differ by at most 0.001.
  constexpr double kRateTolerance = 0.005;
  if (ticks_are_ns_ || !rate_is_known_ || moment.ticks == begin_.ticks) return;
  int64_t passed_ns = 0;
  if (__builtin_sub_overflow(moment.monotonic_ns, begin_.monotonic_ns, &passed_ns) || passed_ns == INT64_MIN)
    return;
  if ((passed_ns < 0) != (moment.ticks < begin_.ticks)) return;
  const uint64_t ticks = passed_ns < 0 ? begin_.ticks - moment.ticks : moment.ticks - begin_.ticks;
  const int64_t distance_ns = passed_ns < 0 ? -passed_ns : passed_ns;
  const double rate = double(distance_ns) / double(ticks);
  if (distance_ns < kLeastDistanceNs || distance_ns <= reading_distance_ns_ ||
      std::abs(rate / ns_per_tick_ - 1) > kRateTolerance)
    return;
  reading_distance_ns_ = distance_ns;
  ns_per_tick_ = rate;
}

int64_t SessionClock::monotonic_ns(uint64_t ticks) const {
  const double ticks_since_begin =
      ticks >= begin_.ticks ? double(ticks - begin_.ticks) : -double(begin_.ticks - ticks);
  return saturated_sum(begin_.monotonic_ns, clamped(ticks_since_begin * ns_per_tick_));
}

int64_t SessionClock::realtime_ns(int64_t monotonic_ns) const {
  int64_t passed_ns = 0;
  if (__builtin_sub_overflow(monotonic_ns, begin_.monotonic_ns, &passed_ns)) return begin_realtime_ns_;
  return saturated_sum(begin_realtime_ns_, passed_ns);
}

void SessionClock::extend(int64_t& begin_ns, int64_t& end_ns, uint64_t first, uint64_t last) const {
  if (first != PENSTOCK_NEVER) begin_ns = std::min(begin_ns, realtime_at(first));
  if (last != PENSTOCK_NEVER) end_ns = std::max(end_ns, realtime_at(last));
}

std::string_view field_text(const char* field, size_t bytes) {
  const void* const end = std::memchr(field, 0, bytes);
  return {field, end == nullptr ? bytes : size_t(static_cast<const char*>(end) - field)};
}

Result<SessionView> SessionView::parse(std::span<const std::byte> bytes, const NextData& next_data) {
  if (bytes.size() < sizeof(penstock_session_header))
    return make_error(Errc::corrupt, "this is not a session file, or it ends within its header (" +
                                         std::to_string(bytes.size()) + " bytes)");
  SessionView view;
  view.bytes_ = bytes;
  view.header_ = entry_of<penstock_session_header>(bytes);
  PENSTOCK_TRY(check_header(view.header_));
  view.clock_ = SessionClock(view.header_);
  view.find_blocks(next_data);
  return view;
}

// Lists the blocks of the file, which may be damaged. A granule is the unit of blocks: each block begins a
// whole number of granules (header.granule bytes) after the header. Where no valid block header is found, the
// loop goes to the next granule. `at` grows in every round, so the loop ends.
void SessionView::find_blocks(const NextData& next_data) {
  const uint64_t granule = header_.granule;
  const uint64_t first = header_.header_bytes;
  // No block begins at or after `end`, the smaller of file_end and the size of the file. In a cut file,
  // file_end is larger than the file. After a kill, file_end may be slightly smaller than the data.
  const uint64_t end =
      header_.file_end == 0 ? bytes_.size() : std::min<uint64_t>(header_.file_end, bytes_.size());
  for (uint64_t at = first; at <= end && end - at >= sizeof(penstock_block);) {
    if (next_data) {
      const uint64_t data_offset = next_data(at);
      if (data_offset >= end) return;
      if (data_offset > at) at += (data_offset - at) / granule * granule;
      if (end - at < sizeof(penstock_block)) return;
    }
    const uint64_t emptied_count = times_emptied(bytes_.data() + at);
    const auto block_header = entry_of<penstock_block>(bytes_.subspan(at));
    const uint64_t remaining = bytes_.size() - at;
    if (block_header.magic != PENSTOCK_BLOCK_MAGIC || block_header.bytes < granule ||
        block_header.bytes % granule != 0) {
      if (block_header.magic != 0) torn_bytes_ += std::min(granule, remaining);
      at += granule;
      continue;
    }
    SessionBlock block;
    block.kind = block_header.kind;
    block.entry_bytes = block_header.entry_bytes;
    block.offset = at;
    block.times_emptied = emptied_count;
    block.bytes = std::min(block_header.bytes, remaining);
    block.entries = bytes_.subspan(at + sizeof block_header,
                                   std::min(block_header.used, block.bytes - sizeof block_header));
    if (block_header.kind == PENSTOCK_BLOCK_COUNTERS && block.entry_bytes > sizeof(penstock_brief))
      whole_counters_bytes_ = std::min(sizeof(penstock_counters), block.entry_bytes);
    if (block_header.kind != PENSTOCK_BLOCK_FREE) blocks_.push_back(block);
    at += (block.bytes + granule - 1) / granule * granule;
  }
}

template <>
penstock_counters entry_of<penstock_counters>(std::span<const std::byte> bytes) {
  penstock_counters counters{};
  std::memcpy(&counters, bytes.data(), std::min(bytes.size(), sizeof counters));
  if (is_whole(counters)) return counters;
  penstock_brief brief{};
  std::memcpy(&brief, bytes.data(), std::min(bytes.size(), sizeof brief));
  counters = {};
  copy_counters(brief, counters);
  counters.highest_read = uint64_t{brief.highest_read_upper} << 32U | brief.highest_read_lower;
  return counters;
}

penstock_counters SessionView::counters_at(uint64_t offset) const {
  if (offset > bytes_.size() || bytes_.size() - offset < sizeof(penstock_brief)) return {};
  const size_t left = bytes_.size() - offset;
  const auto counters =
      entry_of<penstock_counters>(bytes_.subspan(offset, std::min(left, whole_counters_bytes_)));
  return is_whole(counters) && left < whole_counters_bytes_ ? penstock_counters{} : counters;
}

std::optional<penstock_segment> SessionView::segment_at(uint64_t offset) const {
  if (offset > bytes_.size() || bytes_.size() - offset < sizeof(penstock_segment)) return penstock_segment{};
  const auto segment = entry_of<penstock_segment>(bytes_.subspan(offset));
  const auto next_block =
      std::upper_bound(blocks_.begin(), blocks_.end(), offset,
                       [](uint64_t at, const SessionBlock& block) { return at < block.offset; });
  if (next_block == blocks_.begin()) return segment;
  const SessionBlock& block = *std::prev(next_block);
  if (times_emptied(bytes_.data() + block.offset) != block.times_emptied) return std::nullopt;
  return segment;
}

SessionView::Name SessionView::name_at(uint64_t offset) const {
  if (offset < header_.header_bytes || offset > bytes_.size() ||
      bytes_.size() - offset < sizeof(penstock_name))
    return {};
  const auto name = entry_of<penstock_name>(bytes_.subspan(offset));
  const uint64_t from = offset + sizeof name;
  if (name.length > bytes_.size() - from) return {};
  return {name.file, {reinterpret_cast<const char*>(bytes_.data() + from), name.length}, name.kind};
}

void SessionView::each_event(
    const std::function<void(const penstock_event&, std::string_view text)>& each) const {
  for (const SessionBlock& block : blocks_) {
    if (block.kind != PENSTOCK_BLOCK_EVENTS) continue;
    for (uint64_t at = 0; block.entries.size() - at >= sizeof(penstock_event);) {
      const auto event = entry_of<penstock_event>(block.entries.subspan(at));
      at += sizeof event;
      if (event.length > block.entries.size() - at) break;
      each(event, {reinterpret_cast<const char*>(block.entries.data() + at), event.length});
      at += (uint64_t{event.length} + 7) / 8 * 8;
      if (at > block.entries.size()) break;
    }
  }
}

}  // namespace penstock
