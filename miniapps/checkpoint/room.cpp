// Threads: any thread may use a CheckpointStore; only one thread may use a PendingCheckpoint.
// Lock: lock_space() takes the store's lock, which is a file. stage() holds it while it counts and reserves
// bytes. free_space() alone needs no lock.
// Memory: names, texts and errors allocate.
// Ctrl-C: ends the wait for the lock.
// Crash: the reservations and notes (files in taken/, see room.hpp) of a dead process remain until the next
// sweep() for the same run removes them.
#include "miniapps/checkpoint/room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <thread>
#include <vector>

#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {
namespace {
// A pending checkpoint writes a new note (a file in taken/, see room.hpp) after this many more bytes. Until
// then these bytes count twice: as allocated and as reserved.
constexpr uint64_t kBytesPerNote = 16U << 20;
constexpr std::chrono::seconds kLockPatience{5};
constexpr std::chrono::milliseconds kLockPause{10};

uint64_t sum_of(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

// Returns the number in a file of reserved/ or taken/. Returns 0 if a power cut has torn the text: the
// process that wrote it is then dead, so its bytes need not count.
uint64_t bytes_in_text(std::string_view text) {
  uint64_t bytes = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return failure == std::errc{} && stop != text.data() + text.size() && *stop == '\n' ? bytes : 0;
}

// Returns the number in each file of the folder, by the file's name without the folder.
Result<std::map<std::string, uint64_t>> bytes_by_name(const StoreFiles& files, std::string_view folder) {
  PENSTOCK_ASSIGN(const std::vector<Entry> entries, files.list_if_there(folder));
  std::map<std::string, uint64_t> found;
  for (const Entry& entry : entries) {
    const auto text = files.read_text(entry.name, kMostSmallText);
    if (!text && text.error().code == Errc::not_found) continue;  // its checkpoint was committed or removed
    if (!text) return text.error();
    found.emplace(last_part(entry.name), bytes_in_text(*text));
  }
  return found;
}

struct PendingBytes {
  uint64_t unallocated = 0;  // reserved and not yet allocated
  uint64_t taken = 0;        // allocated by pending checkpoints
};

Result<PendingBytes> pending_bytes(const StoreFiles& files) {
  PENSTOCK_ASSIGN(const auto reserved, bytes_by_name(files, kStoreReserved));
  PENSTOCK_ASSIGN(const auto notes, bytes_by_name(files, kStoreTaken));
  PendingBytes all;
  for (const auto& [pending_name, bytes] : reserved) {
    uint64_t taken = 0;
    for (auto note = notes.lower_bound(pending_name);
         note != notes.end() && note->first.starts_with(pending_name); ++note)
      if (is_note_of(note->first, pending_name)) taken = sum_of(taken, note->second);
    all.unallocated = sum_of(all.unallocated, bytes - std::min(bytes, taken));
    all.taken = sum_of(all.taken, taken);
  }
  return all;
}

// Returns the free bytes of the tier; UINT64_MAX if the back end does not know them.
Result<uint64_t> free_bytes(const StoreFiles& files) {
  const auto free = files.named(files.backend().names().free_bytes());
  if (!free && free.error().code == Errc::unsupported) return UINT64_MAX;
  return free;
}

}  // namespace

void remove_reservation(const StoreFiles& files, std::string_view pending_name) {
  static_cast<void>(files.remove(path_in(kStoreReserved, pending_name)));
  const auto notes = files.list_if_there(kStoreTaken);
  if (!notes) return;
  for (const Entry& entry : *notes)
    if (is_note_of(last_part(entry.name), pending_name)) static_cast<void>(files.remove(entry.name));
}

bool is_note_of(std::string_view name, std::string_view pending_name) {
  return name.size() > pending_name.size() + 1 && name.starts_with(pending_name) &&
         name[pending_name.size()] == '.' &&
         name.find_first_not_of("0123456789", pending_name.size() + 1) == std::string_view::npos;
}

void PendingCheckpoint::before_create(uint64_t rank, uint64_t bytes) {
  if (!note_rank_) note_rank_ = rank;
  file_bytes_ = bytes;
  allocated_whole_ = false;
  free_before_ = 0;
  if (bytes < kBytesPerNote) return;
  free_before_ = files_.backend().names().free_bytes().value_or(0);
}

// Finds out whether creating the file has allocated its whole space, as some back ends do without reporting
// it. If the free bytes fell by at least the file's size, the whole file counts as allocated.
void PendingCheckpoint::after_create() {
  if (free_before_ == 0) return;
  const uint64_t free_after = files_.backend().names().free_bytes().value_or(free_before_);
  allocated_whole_ = free_after < free_before_ && free_before_ - free_after >= file_bytes_;
  if (!allocated_whole_) return;
  allocated_bytes_ += file_bytes_;
  write_note();
}

void PendingCheckpoint::after_write(uint64_t bytes) {
  if (allocated_whole_) return;
  allocated_bytes_ += bytes;
  if (allocated_bytes_ - noted_bytes_ >= kBytesPerNote) write_note();
}

// The note needs no sync: a power cut ends this process too, and sweep() then removes the note in any case.
void PendingCheckpoint::write_note() {
  noted_bytes_ = allocated_bytes_;
  static_cast<void>(files_.write_text(
      path_in(kStoreTaken, fmt::format("{}.{}", last_part(folder_), note_rank_.value_or(0))),
      fmt::format("{}\n", allocated_bytes_), Durability::visible, IfExists::replace));
}

// Reads the reservations before the free bytes. Bytes that are allocated between these two reads are
// subtracted twice: as reserved, and as no longer free. So the result may be too low, but never too high.
Result<uint64_t> CheckpointStore::free_space() const {
  PENSTOCK_ASSIGN(const PendingBytes pending, pending_bytes(files_));
  PENSTOCK_ASSIGN(const uint64_t free, free_bytes(files_));
  return free == UINT64_MAX ? free : free - std::min(free, pending.unallocated);
}

Result<uint64_t> CheckpointStore::space_if_emptied() const {
  PENSTOCK_ASSIGN(const PendingBytes pending, pending_bytes(files_));
  PENSTOCK_ASSIGN(const uint64_t free, free_bytes(files_));
  if (free == UINT64_MAX) return free;
  uint64_t space = sum_of(free, pending.taken);
  PENSTOCK_ASSIGN(const std::vector<std::string> all, runs());
  for (const std::string& run : all) {
    PENSTOCK_ASSIGN(const std::vector<ListedCheckpoint> found, list_checkpoints(*this, run));
    for (const ListedCheckpoint& one : found)
      if (one.manifest.ok()) space = sum_of(space, one.manifest->bytes());
  }
  return space;
}

// Takes the store's lock, which the caller holds while it counts and reserves bytes. Namespace::lock() does
// not wait, so this tries again every 10 ms, for at most 5 s: then busy. Ctrl-C ends the wait.
Result<std::unique_ptr<Lock>> CheckpointStore::lock_space() const {
  const auto deadline = std::chrono::steady_clock::now() + kLockPatience;
  for (;;) {
    auto lock = files_.named(files_.backend().names().lock(kStoreLock));
    if (lock || lock.error().code != Errc::busy || std::chrono::steady_clock::now() >= deadline) return lock;
    PENSTOCK_TRY(check_interrupt());
    std::this_thread::sleep_for(kLockPause);
  }
}

}  // namespace penstock
