// For tests only: a model of a file system whose power can be cut. It knows what is on the disk, what is only
// in memory, and what a power cut leaves.
//
// The model is the most hostile file system that POSIX permits, except for renaming:
//   bytes      Synced bytes of an object are on the disk. Of others a cut leaves all, none, zeros, or a part,
//              which may be filled up with zeros.
//   names      After a cut each object and folder is at its last place on the disk, or at any later place.
//              There is no order among different objects.
//   folders    Syncing a folder puts its entries on the disk, and also that former entries have left it.
//              If the folder itself is not on the disk, all that is in it is lost with it.
//   renaming   A rename is atomic: never two names, never none. One exception: the object may be lost if
//              its old folder was synced and its new one was not. Syncing the new folder is enough.
//   replacing  Replacing an object by another is atomic: one of the two exists.
// Only a sync puts anything on the disk before the cut. One thread at a time.
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
  // A place where a node is or was. Without a folder it is nowhere: removed or replaced.
  struct Place {
    Node* folder = nullptr;
    std::string name{};
    const Node* replaced_by = nullptr;  // the node that replaced this one
    std::uint64_t when = 0;             // number of the placement; later ones are larger
  };
  struct Node {
    std::uint64_t number = 0;
    Blob blob{};  // null for a folder
    bool bytes_synced = true;
    std::map<std::string, Node*, std::less<>> children{};  // its present entries
    Place on_disk{};
    std::vector<Place> since{};  // its places since the last sync; the last one is its present place

    const Place& now() const { return since.empty() ? on_disk : since.back(); }
    bool is_folder() const { return !blob; }
  };

  ForgetfulDisk();

  Node& root() { return *nodes_.begin()->second; }
  Node* find(std::string_view name);  // or null

  // These do not check for errors; the caller has checked. A null `blob` makes a folder. add() and move()
  // replace an existing node.
  Node& add(Node& folder, std::string_view name, Blob blob, bool bytes_synced);
  void move(Node& node, Node& folder, std::string_view name);
  void remove(Node& node);
  void sync(Node& folder);

  // Applies a cut. lose_all() loses everything that was not synced, lose_some() a random part of it.
  void lose_all();
  void lose_some(const RandomStream& random);

  std::uint64_t bytes() const;

 private:
  void put(Node& node, Place place);
  void settle(std::map<const Node*, std::size_t> chosen);

  std::uint64_t numbers_ = 0;
  std::uint64_t placements_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Node>> nodes_;  // by number; the root is the first
};

}  // namespace penstock
