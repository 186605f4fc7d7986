#include "profiling/interpose/counting/handles.hpp"

#include <fcntl.h>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/writer/owned_lock.hpp"

namespace penstock::interpose {

namespace {

constexpr std::size_t kMost = 4096;
struct Entry {
  std::uint64_t handle = 0;
  unsigned kind = 0;
  bool used = false;
  HandleFile file;
};
Entry entries[kMost];
std::size_t reached = 0;  // none after it is used
constinit OwnedLock handles_lock;

}  // namespace

void remember_handle(unsigned kind, std::uint64_t handle, HandleFile file) noexcept {
  const Hold hold(handles_lock);
  if (!hold.held()) {
    return;
  }
  Entry* place = nullptr;
  for (std::size_t i = 0; i < reached; ++i) {
    if (entries[i].used && entries[i].kind == kind && entries[i].handle == handle) {
      place = &entries[i];
      break;
    }
    if (!entries[i].used && place == nullptr) {
      place = &entries[i];
    }
  }
  if (place == nullptr) {
    if (reached == kMost) {
      return;
    }
    place = &entries[reached++];
  }
  *place = {.handle = handle, .kind = kind, .used = true, .file = file};
}

HandleFile find_handle(unsigned kind, std::uint64_t handle) noexcept {
  const Hold hold(handles_lock);
  if (!hold.held()) {
    return {};
  }
  for (std::size_t i = 0; i < reached; ++i) {
    if (entries[i].used && entries[i].kind == kind && entries[i].handle == handle) {
      return entries[i].file;
    }
  }
  return {};
}

void free_handles_after_fork() noexcept {
  handles_lock.reset();
}

void forget_handle(unsigned kind, std::uint64_t handle) noexcept {
  const Hold hold(handles_lock);
  if (!hold.held()) {
    return;
  }
  for (std::size_t i = 0; i < reached; ++i) {
    if (entries[i].used && entries[i].kind == kind && entries[i].handle == handle) {
      entries[i].used = false;
      return;
    }
  }
}

HandleFile count_named(ThreadLog& log, const char* path, const Operation& operation) noexcept {
  Update update(log);
  AbsoluteName& name = log.name;
  if (update.nested() || !absolute_name(AT_FDCWD, path, name)) {
    return {};
  }
  const penstock_counters* c =
      count_of_file(log, {.file = name.file, .text = name.text, .length = name.length}, operation);
  return c == nullptr ? HandleFile{} : HandleFile{.file = name.file, .name = c->name};
}

void count_handle(ThreadLog& log, const HandleFile& file, const Operation& operation) noexcept {
  if (file.file == 0) {
    return;
  }
  Update update(log);
  if (update.nested()) {
    update.defer(file.file, file.name, operation);
    return;
  }
  count_of_file(log, {.file = file.file, .name = file.name}, operation);
}

}  // namespace penstock::interpose
