// Copies the fields that penstock_counters and penstock_brief share, from one type to the other. The members
// of penstock_brief are smaller: a count that is too large for its member loses its upper bits.
#pragma once

#include <cstddef>
#include <type_traits>

#include "profiling/session_abi.h"

namespace penstock {

template <class From, class To>
void copy_counters(const From& from, To& to) {
  const auto copy = [](const auto& count, auto& target) {
    target = static_cast<std::remove_reference_t<decltype(target)>>(count);
  };
  copy(from.file, to.file);
  copy(from.name, to.name);
  copy(from.thread, to.thread);
  copy(from.layer, to.layer);
  copy(from.last_was, to.last_was);
  copy(from.form, to.form);
  copy(from.bytes_read, to.bytes_read);
  copy(from.read_ticks, to.read_ticks);
  copy(from.meta_ticks, to.meta_ticks);
  copy(from.reads, to.reads);
  copy(from.sequential_reads, to.sequential_reads);
  copy(from.consecutive_reads, to.consecutive_reads);
  copy(from.opens, to.opens);
  copy(from.closes, to.closes);
  copy(from.stats, to.stats);
  copy(from.seeks, to.seeks);
  copy(from.other, to.other);
  copy(from.failures, to.failures);
  copy(from.descriptors, to.descriptors);
  for (size_t i = 0; i < PENSTOCK_SIZE_BUCKETS; ++i) copy(from.read_sizes[i], to.read_sizes[i]);
  copy(from.last_read, to.last_read);
  copy(from.size, to.size);
  copy(from.first_ticks, to.first_ticks);
  copy(from.last_ticks, to.last_ticks);
  copy(from.first_read_ticks, to.first_read_ticks);
  copy(from.last_read_ticks, to.last_read_ticks);
}

}  // namespace penstock
