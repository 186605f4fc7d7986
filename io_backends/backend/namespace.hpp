// Lists, renames, removes and locks objects and folders.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

struct Entry {
  std::string name;  // relative to the back end's root
  uint64_t bytes = 0;
  bool folder = false;
  bool link = false;      // set by list(): the entry is a symbolic link; bytes and folder describe its target
  bool dangling = false;  // set by list(): the entry is a link whose target does not exist
};

// A lock on a tier. It ends when it is destroyed or the process ends. Exception: a killed process leaves its
// lock on the back end s3 (s3/names.cpp).
class Lock {
 public:
  virtual ~Lock() = default;
};

// The names below a root. An object store has folders by convention: a prefix that ends in '/'.
class Namespace {
 public:
  virtual ~Namespace() = default;

  // Lists the entries of `folder`, but not of its subfolders, ("": the root) in any order. `visit` returns
  // false to stop. Fails with `not_found` if the folder does not exist. Calls `skipped` for each name that is
  // neither object nor folder: pipes, sockets, devices, and links to them. Only a back end without such names
  // may ignore `skipped`.
  virtual Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                                const std::function<void(std::string_view name)>& skipped) = 0;
  // Does the same as list_all(), for callers that do not need the skipped names.
  Result<void> list(std::string_view folder, const std::function<bool(const Entry&)>& visit) {
    return list_all(folder, visit, [](std::string_view) {});
  }
  virtual Result<Entry> stat(std::string_view name) = 0;
  // makes missing parents, too; succeeds if the folder exists
  virtual Result<void> make_folders(std::string_view folder) = 0;
  // Atomic if the back end has Caps::atomic_rename. Fails with `already_exists` if `to` exists. Renames
  // folders, too, if the back end has them.
  virtual Result<void> rename_noreplace(std::string_view from, std::string_view to) = 0;
  virtual Result<void> remove(std::string_view name) = 0;  // removes an object or an empty folder
  // makes the folder's entries survive a power cut
  virtual Result<void> sync_dir(std::string_view folder) = 0;
  // Creates the object `name` and locks it against all processes and hosts that share the tier. Fails with
  // `busy` if another holder has the lock.
  virtual Result<std::unique_ptr<Lock>> lock(std::string_view name) = 0;
  virtual Result<uint64_t> free_bytes() = 0;  // bytes that this user may still write
};

// Removes an object or an empty folder. Succeeds also if it does not exist.
inline Result<void> remove_if_there(Namespace& names, std::string_view name) {
  Result<void> removed = names.remove(name);
  return removed.ok() || removed.error().code != Errc::not_found ? removed : success();
}

}  // namespace penstock
