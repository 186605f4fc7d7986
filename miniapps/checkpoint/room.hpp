// How many bytes a store's tier can still take: the free bytes, minus the bytes that are reserved for pending
// checkpoints and not yet allocated by them.
//
//   reserved/<making>       bytes reserved for the folder of the same name in tmp/
//   taken/<making>.<rank>   a note: how many of these bytes the rank has allocated on the tier, so they are
//                           not free any more
//
// A note is written after the bytes that it counts. So free space is sometimes underestimated, never
// overestimated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Removes the reservation and the notes of a pending checkpoint.
void forget_promise(const StoreFiles& files, std::string_view making);
// Whether `name` in taken/ is a note of that pending checkpoint.
bool is_note_of(std::string_view name, std::string_view making);

// Writes the notes of one rank that writes into a pending checkpoint. A failed note does no harm: its bytes
// only stay reserved. One thread.
class TakenRoom {
 public:
  TakenRoom(const StoreFiles& files, std::string_view making) : files_(files), making_(making) {}

  // Call begins() before a file of the rank is created, created() when its writer exists, and wrote() after
  // each write. If a caller writes the files of several ranks, all notes are under the first rank.
  void begins(std::uint64_t rank, std::uint64_t bytes);
  void created();
  void wrote(std::uint64_t bytes);

 private:
  void note();

  const StoreFiles files_;
  const std::string making_;
  std::optional<std::uint64_t> rank_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t free_ = 0;  // before the file was created; 0: unknown
  bool whole_ = false;      // the tier allocated the whole file when it was created
  std::uint64_t taken_ = 0;
  std::uint64_t noted_ = 0;
};

}  // namespace penstock
