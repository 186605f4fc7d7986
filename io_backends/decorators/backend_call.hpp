// Describes one call of a back end to the decorators of that back end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace penstock {

enum class CallKind : uint8_t {
  open,
  read,         // Reader::read_at, Reader::read_at_all, or ReadAt in a Queue
  close,        // the destruction of a Reader
  read_object,  // Backend::read_object, or ReadObject in a Queue
  create,
  write,  // Writer::append or Writer::write_at
  publish,
  discard,  // the destruction of an unpublished Writer
  list,     // its time includes that of the caller's function `visit`
  stat,
  make_folders,
  rename,
  remove,
  sync_folder,
  lock,
  view,  // Reader::view; traces and statistics count it as a read
  size,  // Reader::size; traces and statistics count it as a stat
};

// The facts about a call that decorators get. The caller of the back end owns `object` and `out`.
struct BackendCall {
  CallKind kind{};
  std::string_view object;  // name of the object or folder; for a rename, the old name
  uint64_t offset = 0;
  uint64_t bytes = 0;             // bytes to read or write; 0 if they are not known before the call
  std::span<std::byte> out = {};  // receives the bytes of a read; empty for a view and for all other calls
};

}  // namespace penstock
