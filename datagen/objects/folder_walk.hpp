// All objects below a root, listed by several threads, in an order that does not depend on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What one folder holds, by name in byte order; packed, since there may be millions.
class FolderListing {
 public:
  struct Item {
    std::uint64_t bytes = 0;
    std::uint32_t name_offset = 0;
    std::uint16_t name_length = 0;
    std::uint16_t kind = 0;  // as the caller classified it
  };

  std::string path;  // "" is the root
  std::string names;
  std::vector<Item> items;

  std::string_view name(const Item& item) const {
    return std::string_view(names).substr(item.name_offset, item.name_length);
  }
  // "path/name", into `scratch`.
  std::string_view full_name(const Item& item, std::string& scratch) const;
};

struct FolderWalk {
  std::vector<FolderListing> folders;  // by path in byte order; those without an item are left out
  // Extension ("" for none, "..." for all beyond the first few) -> objects not wanted.
  std::map<std::string, std::uint64_t, std::less<>> left_out;
  std::uint64_t hidden = 0;           // objects and folders whose name starts with a dot: never looked at
  std::vector<std::string> links;     // links to folders: not entered, for they may lead in circles
  std::vector<std::string> dangling;  // wanted links that lead to nothing
  std::vector<std::string> special;   // neither objects nor folders: pipes, sockets, devices, links to such
  std::vector<std::string>
      misnamed;  // wanted objects, and folders, whose names are too long for any back end
  std::uint64_t objects() const;
};

inline constexpr std::uint16_t kNotWanted = 0xffff;

// Lists everything below the root. `classify` says of an object (full name) what it is, or kNotWanted; it is
// called by all threads. Fails when a folder cannot be listed: a part that is silently missing would be
// worse. Errc::interrupted when the user stops us.
Result<FolderWalk> walk_folders(Namespace& names, unsigned threads,
                                const std::function<std::uint16_t(const Entry&)>& classify);

}  // namespace penstock
