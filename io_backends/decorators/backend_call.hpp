// Describes one call of a back end for the decorators around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace penstock {

enum class CallKind : std::uint8_t {
  open,
  read,         // ReadAt, read_at, read_at_all
  close,        // a Reader is destroyed
  read_object,  // ReadObject, read_object
  create,
  write,  // append, write_at
  publish,
  discard,  // an unpublished Writer is destroyed
  list,     // its time includes the visitor
  stat,
  make_folders,
  rename,
  remove,
  sync_folder,
  lock,
  view,  // a read in place; counted as read
  size,  // Reader::size; counted as stat
};

// The caller owns `object` and `out`.
struct BackendCall {
  CallKind kind{};
  std::string_view object;  // for a rename, the old name
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;        // bytes to move; also 0 if only the result has their number
  std::span<std::byte> out = {};  // receives the bytes of a read; empty for a view
};

}  // namespace penstock
