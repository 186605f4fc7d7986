// For tests only: what is on a disk, what is only in the machine's memory, and what a power cut leaves.
//
// The model is the most hostile file system that POSIX permits, but for renaming:
//   bytes     of an object are on the disk once they were synced; else a cut leaves all of them, none, zeros,
//   or
//             a part, whole or filled up with zeros
//   names     each object and folder is, after a cut, where it last was on the disk or at any place that it
//   was
//             given since, whatever happened to others: there is no order among them
//   folders   syncing one puts on the disk what is in it, and that what is no longer in it is not there. A
//             folder that is not on the disk itself takes all that is in it along
//   renaming  is atomic: never two names, never none; only where the folder that something left was synced
//   and
//             the one that it went to was not, it may be lost. Syncing the new one is enough
//   replacing an object by another is atomic: one of the two is there
// Nothing but a sync puts anything on the disk in time. One thread at a time.
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
  // Where something is or was. No folder: nowhere.
  struct Place {
    Node* folder = nullptr;
    std::string name{};
    const Node* replaced_by = nullptr;  // nowhere, because that one took its place
    std::uint64_t when = 0;             // counts all placements
  };
  struct Node {
    std::uint64_t number = 0;
    Blob blob{};  // null: a folder
    bool bytes_synced = true;
    std::map<std::string, Node*, std::less<>> children{};  // now
    Place on_disk{};
    std::vector<Place> since{};  // its places since then; the last is where it is now

    const Place& now() const { return since.empty() ? on_disk : since.back(); }
    bool is_folder() const { return !blob; }
  };

  ForgetfulDisk();

  Node& root() { return *nodes_.begin()->second; }
  Node* find(std::string_view name);  // or null

  // None of these looks whether it may: the caller has. `blob` null: a folder. What is there is replaced.
  Node& add(Node& folder, std::string_view name, Blob blob, bool bytes_synced);
  void move(Node& node, Node& folder, std::string_view name);
  void remove(Node& node);
  void sync(Node& folder);

  // After a cut: of what was not synced, nothing is left; or some of it, by chance.
  void lose_all();
  void lose_some(const RandomStream& random);

  std::uint64_t bytes() const;

 private:
  void put(Node& node, Place place);
  void settle(std::map<const Node*, std::size_t> chosen);

  std::uint64_t numbers_ = 0;
  std::uint64_t placements_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Node>> nodes_;  // by number: the root is the first
};

}  // namespace penstock
