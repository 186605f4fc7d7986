// A thread's counters by file and layer: a hash table of where they are in the session, open addressing.
// Only its thread comes here, and no signal's handler within.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

class FileTable {
 public:
  // Twice or four times as large (the first room, where there is none). False without memory.
  bool grow() noexcept;
  void clear() noexcept;

  // The number of the slot of (file, layer), or of the free one where it belongs; until the next grow().
  std::uint64_t slot_of(std::uint64_t file, penstock_layer layer) const noexcept {
    const std::uint64_t hash = mixed(file, layer);
    for (std::uint64_t i = hash & (slot_count_ - 1);; i = (i + 1) & (slot_count_ - 1)) {
      if (marks_[i] == 0) {
        return i;
      }
      if (marks_[i] == mark_of(hash) && slots_[i] >> kPlaceBits == tag_of(hash)) {
        const penstock_counters& c = *at_place(slots_[i]);
        if (c.file == file && c.layer == layer) {
          return i;
        }
      }
    }
  }
  // It will be asked for soon.
  void expect(std::uint64_t file, penstock_layer layer) const noexcept {
    const std::uint64_t at = mixed(file, layer) & (slot_count_ - 1);
    __builtin_prefetch(marks_ + at, 1);
    __builtin_prefetch(slots_ + at, 1);
  }
  // Null of a free one.
  penstock_counters* at(std::uint64_t slot) const noexcept {
    return marks_[slot] == 0 ? nullptr : at_place(slots_[slot]);
  }
  penstock_counters* find(std::uint64_t file, penstock_layer layer) const noexcept {
    return at(slot_of(file, layer));
  }
  bool is_full() const noexcept { return (filled_ + 1) * 4 > slot_count_ * 3; }
  // Whose slot it is; a free one is filled (not where it is_full()).
  void set(std::uint64_t slot, const penstock_counters& counters) noexcept {
    const std::uint64_t hash = mixed(counters.file, layer_of(counters));
    filled_ += marks_[slot] == 0 ? 1 : 0;
    slots_[slot] = tag_of(hash) << kPlaceBits | reinterpret_cast<std::uint64_t>(&counters) / kPlaceUnit;
    marks_[slot] = mark_of(hash);
  }

 private:
  static constexpr unsigned kPlaceBits = 43;  // an address in units of 32 bytes
  static constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << kPlaceBits) - 1;
  static constexpr std::uint64_t kTagMask = (std::uint64_t{1} << (64U - kPlaceBits)) - 1;
  static constexpr std::uint64_t kPlaceUnit = 32;
  static_assert(sizeof(penstock_counters) % kPlaceUnit == 0 && sizeof(penstock_brief) % kPlaceUnit == 0 &&
                sizeof(penstock_block) % kPlaceUnit == 0);

  static penstock_layer layer_of(const penstock_counters& counters) noexcept {
    return static_cast<penstock_layer>(counters.layer);
  }
  static std::uint64_t mixed(std::uint64_t file, penstock_layer layer) noexcept {
    const std::uint64_t h = (file + static_cast<std::uint64_t>(layer)) * 0x9e3779b97f4a7c15U;
    return h ^ (h >> 32U);
  }
  static std::uint64_t tag_of(std::uint64_t hash) noexcept { return hash & kTagMask; }
  static std::uint8_t mark_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint8_t>(hash >> 56U | 1U);
  }
  static penstock_counters* at_place(std::uint64_t slot) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what it keeps
    return reinterpret_cast<penstock_counters*>((slot & kPlaceMask) * kPlaceUnit);
  }
  static std::size_t bytes_of(std::uint64_t slots) noexcept {
    return slots * (sizeof(std::uint64_t) + sizeof(std::uint8_t));
  }

  // A slot holds 21 bits of the hash and, in units of 32 bytes, where the counters stand. Behind the slots
  // stands a byte for each, of other bits of the hash: whether a file is new is seen in these, of which far
  // more are in the processor's cache; 0 is free.
  std::uint64_t* slots_ = nullptr;
  std::uint8_t* marks_ = nullptr;
  std::uint64_t slot_count_ = 0;
  std::uint64_t filled_ = 0;
};

}  // namespace penstock::interpose
