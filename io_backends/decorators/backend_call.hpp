// One call of a back end, as decorators see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace penstock {

enum class CallKind : std::uint8_t {
  open,
  read,         // ReadAt, read_at, read_at_all
  close,        // a Reader's end
  read_object,  // ReadObject, read_object
  create,
  write,  // append, write_at
  publish,
  discard,  // the end of a Writer that did not publish
  list,     // with the time of its visitor
  stat,
  make_folders,
  rename,
  remove,
  sync_folder,
  lock,
  view,  // counted as read
  size,  // Reader::size; counted as stat
};

// `object` and `out` belong to the caller.
struct BackendCall {
  CallKind kind{};
  std::string_view object;  // of a renaming, the old name
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;        // that are to move; 0 also where only the result says how many
  std::span<std::byte> out = {};  // where a read puts them; a view has none
};

}  // namespace penstock
