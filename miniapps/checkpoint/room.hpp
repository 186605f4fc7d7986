// What a store's tier has room for: what is free, less what is promised to checkpoints in the making and not
// yet taken by them.
//
//   reserved/<making>       bytes promised to the folder of that name in tmp/
//   taken/<making>.<rank>   bytes of these that the rank has taken from the tier: they are not free any more
//
// A note is written behind the bytes that it is of, so that the two together never say less than the truth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// The promise to what is in the making, and what was noted of it: gone.
void forget_promise(const StoreFiles& files, std::string_view making);
// Whether the name in taken/ is a note of that.
bool is_note_of(std::string_view name, std::string_view making);

// Of one rank that writes to a folder in the making. A note that fails does no harm: the space that it would
// have freed stays promised. One thread.
class TakenRoom {
 public:
  TakenRoom(const StoreFiles& files, std::string_view making) : files_(files), making_(making) {}

  // A file of the rank is started, its writer is created, and bytes of it are written. A writer of files of
  // several ranks notes all under the first.
  void begins(std::uint64_t rank, std::uint64_t bytes);
  void created();
  void wrote(std::uint64_t bytes);

 private:
  void note();

  const StoreFiles files_;
  const std::string making_;
  std::optional<std::uint64_t> rank_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t free_ = 0;  // before the file was created; 0: not looked at
  bool whole_ = false;      // the file's room was taken when it was created
  std::uint64_t taken_ = 0;
  std::uint64_t noted_ = 0;
};

}  // namespace penstock
