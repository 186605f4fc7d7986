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

// A lock on a tier, made by Namespace::lock(). The lock ends when this object is destroyed or its process
// ends. Exception: on the back end s3 the lock of a killed process remains (s3/names.cpp).
class Lock {
 public:
  virtual ~Lock() = default;
};

// The objects and folders below the root of a back end. In an object store, every prefix of a key that ends
// in '/' is a folder.
class Namespace {
 public:
  virtual ~Namespace() = default;

  // Calls `visit` for each entry of `folder` ("" is the root), but not for the entries of its subfolders, in
  // any order. If `visit` returns false, no more entries follow. Fails with `not_found` if the folder does
  // not exist. Calls `skipped` for each name that is neither object nor folder: pipes, sockets, devices, and
  // links to them. Only a back end without such names may ignore `skipped`.
  virtual Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                                const std::function<void(std::string_view name)>& skipped) = 0;
  // Does the same as list_all(), for callers that do not need the skipped names.
  Result<void> list(std::string_view folder, const std::function<bool(const Entry&)>& visit) {
    return list_all(folder, visit, [](std::string_view) {});
  }
  virtual Result<Entry> stat(std::string_view name) = 0;
  // makes missing parents, too; succeeds if the folder exists
  virtual Result<void> make_folders(std::string_view folder) = 0;
  // Renames an object, or a folder if the back end has real folders. Fails with `already_exists` if `to`
  // exists. Atomic if the back end has Caps::atomic_rename.
  virtual Result<void> rename_noreplace(std::string_view from, std::string_view to) = 0;
  virtual Result<void> remove(std::string_view name) = 0;  // removes an object or an empty folder
  // makes the folder's entries survive a power cut
  virtual Result<void> sync_dir(std::string_view folder) = 0;
  // Creates the object `name` and locks it against all processes and hosts that share the tier. Fails with
  // `busy` if another holder has the lock.
  virtual Result<std::unique_ptr<Lock>> lock(std::string_view name) = 0;
  virtual Result<uint64_t> free_bytes() = 0;  // how many bytes this user may still write to the tier
};

// Removes an object or an empty folder. Also succeeds if the name does not exist.
inline Result<void> remove_if_there(Namespace& names, std::string_view name) {
  Result<void> removed = names.remove(name);
  return removed.ok() || removed.error().code != Errc::not_found ? removed : success();
}

}  // namespace penstock
