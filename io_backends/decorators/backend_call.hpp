// Describes one call of a back end to the decorators of that back end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace penstock {

enum class CallKind : uint8_t {
  open,
  read,         // by Reader::read_at, Reader::read_at_all or ReadAt in a Queue
  close,        // the end of a Reader
  read_object,  // by Backend::read_object or ReadObject in a Queue
  create,
  write,  // by Writer::append or Writer::write_at
  publish,
  discard,  // the end of an unpublished Writer
  list,     // its time includes the time of the caller's function
  stat,
  make_folders,
  rename,
  remove,
  sync_folder,
  lock,
  view,  // Reader::view; its time counts as that of a read
  size,  // Reader::size; its time counts as that of a stat
};

// The caller owns `object` and `out`.
struct BackendCall {
  CallKind kind{};
  std::string_view object;  // for a rename, the old name
  uint64_t offset = 0;
  uint64_t bytes = 0;             // bytes to move; also 0 if their number is known only after the call
  std::span<std::byte> out = {};  // receives the bytes of a read; empty for a view
};

}  // namespace penstock
