#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiling/interpose/counting/thread_log.hpp"

namespace penstock::interpose {
namespace {

// The table uses only the file and the layer of an entry.
struct alignas(32) Entry {
  uint64_t file;
  uint64_t name;
  uint32_t thread;
  uint16_t layer;
};
static_assert(offsetof(Entry, file) == offsetof(penstock_counters, file) &&
              offsetof(Entry, layer) == offsetof(penstock_counters, layer));

const penstock_counters& counters(const Entry& entry) {
  return reinterpret_cast<const penstock_counters&>(entry);
}

void insert(FileTable& table, const Entry& entry) {
  const auto layer = static_cast<penstock_layer>(entry.layer);
  ASSERT_TRUE(!table.is_full() || table.grow());
  const uint64_t slot = table.slot_of(entry.file, layer);
  ASSERT_EQ(table.at(slot), nullptr);
  table.set(slot, counters(entry));
}

// In a table of more than two million slots, a slot has too few hash bits to find its index in a larger
// table.
TEST(FileTable, FindsEveryFileHoweverOftenItHasGrown) {
  // Just above three quarters of 2^21 (a table is full at three quarters), so that the table grows to 2^22
  // slots.
  constexpr uint64_t kFiles = 1'600'000;
  std::vector<Entry> entries(kFiles);
  FileTable table;
  for (uint64_t i = 0; i < kFiles; ++i) {
    entries[i] = {
        .file = (i / 2 + 1) * 0x9e3779b97f4a7c15U, .name = 0, .thread = 0, .layer = uint16_t(i % 2)};
    insert(table, entries[i]);
    if (HasFatalFailure()) return;
  }
  uint64_t wrong = 0;
  for (const Entry& entry : entries)
    wrong += table.find(entry.file, static_cast<penstock_layer>(entry.layer)) != &counters(entry) ? 1U : 0U;
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(table.find(entries[0].file, PENSTOCK_RING), nullptr);
  EXPECT_EQ(table.find(1, PENSTOCK_POSIX), nullptr);
}

TEST(FileTable, HasTheNewerEntryOfAFileAndNothingOnceItIsCleared) {
  FileTable table;
  ASSERT_TRUE(table.grow());
  const Entry first{.file = 7, .name = 0, .thread = 0, .layer = PENSTOCK_STDIO};
  const Entry second = first;
  insert(table, first);
  table.set(table.slot_of(7, PENSTOCK_STDIO), counters(second));
  EXPECT_EQ(table.find(7, PENSTOCK_STDIO), &counters(second));
  table.clear();
  EXPECT_EQ(table.find(7, PENSTOCK_STDIO), nullptr);
}

}  // namespace
}  // namespace penstock::interpose
