// For tests only: models what is on a disk, what is only in the machine's memory, and what a power cut
// leaves.
//
// The model is the most hostile file system that POSIX permits, except for renaming:
//  - Bytes of an object are on the disk after a sync. Without a sync, a power cut leaves all of them, none,
//    zeros, or a part, which may be filled up with zeros.
//  - Names: after a cut, each object and folder is where it last was on the disk, or at any place that it got
//    later. Changes of different objects have no order.
//  - Folders: a sync puts the entries of a folder on the disk, also the removal of entries. If the folder
//    itself is not on the disk, a cut loses everything in it.
//  - Renaming is atomic: an object never has two names or none. The exception: it may be lost if its old
//    folder was synced and its new folder was not. Syncing the new folder is enough.
//  - Replacing an object by another is atomic: one of the two exists.
// Only a sync puts anything on the disk. Use it from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/random.hpp"

namespace penstock {

class ForgetfulDisk {
 public:
  using Blob = std::shared_ptr<const std::vector<std::byte>>;

  struct Node;
  // A place that a node has or had. If `folder` is null, the node was removed or replaced.
  struct Place {
    Node* folder = nullptr;
    std::string name{};
    const Node* replaced_by = nullptr;  // the node that took the place; null: none
    uint64_t change_number = 0;         // counts all changes; this is the change that put the node here
  };
  struct Node {
    uint64_t number = 0;
    Blob blob{};  // null for a folder
    bool bytes_synced = true;
    std::map<std::string, Node*, std::less<>> children{};  // the current entries
    Place on_disk{};
    std::vector<Place> later_places{};  // places of the node after `on_disk`; the last is the current one

    const Place& current_place() const { return later_places.empty() ? on_disk : later_places.back(); }
    bool is_folder() const { return !blob; }
  };

  ForgetfulDisk();

  Node& root() { return *nodes_.begin()->second; }
  Node* find(std::string_view name);  // null if no node has this name

  // Functions that change the disk. They do not check whether the change is allowed: the caller does that. A
  // null `blob` makes a folder. An existing node with the name is replaced.
  Node& add(Node& folder, std::string_view name, Blob blob, bool bytes_synced);
  void move(Node& node, Node& folder, std::string_view name);
  void remove(Node& node);
  void sync(Node& folder);

  // Change the disk as a power cut may do: lose_all() loses all unsynced changes, lose_some() loses a random
  // choice of them.
  void lose_all();
  void lose_some(const RandomStream& random);

  uint64_t bytes() const;

 private:
  void put(Node& node, Place place);
  void apply_cut(std::map<const Node*, size_t> surviving);

  uint64_t numbers_ = 0;
  uint64_t placements_ = 0;
  std::map<uint64_t, std::unique_ptr<Node>> nodes_;  // all nodes by number; the root is the first
};

}  // namespace penstock
