// Lists all objects below a root with several threads. The order of the result does not depend on the
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The objects of one folder, in byte order of their names. Stored compactly, since there may be millions.
class FolderListing {
 public:
  struct Item {
    uint64_t bytes = 0;
    uint32_t name_offset = 0;
    uint16_t name_length = 0;
    uint16_t kind = 0;  // the result of `classify`
  };

  std::string path;  // "": the root
  std::string names;
  std::vector<Item> items;

  std::string_view name(const Item& item) const {
    return std::string_view(names).substr(item.name_offset, item.name_length);
  }
  // "path/name". It is stored in `scratch`, and valid until `scratch` changes.
  std::string_view full_name(const Item& item, std::string& scratch) const;
};

struct FolderWalk {
  std::vector<FolderListing> folders;  // in byte order of their paths; folders without items are omitted
  // Extension -> number of objects that are not wanted. "": no extension. "...": long extensions, and new
  // ones once a limit is reached.
  std::map<std::string, uint64_t, std::less<>> left_out_by_extension;
  uint64_t hidden_entries = 0;  // objects and folders whose name starts with a dot; they are skipped
  // Links to folders. They are not entered, since they may form a circle.
  std::vector<std::string> folder_links;
  std::vector<std::string> dangling_links;  // wanted links whose target does not exist
  // Neither objects nor folders: pipes, sockets, devices, and links to these.
  std::vector<std::string> special_files;
  // Wanted objects, and folders, whose names are too long for any back end.
  std::vector<std::string> too_long_names;
  uint64_t objects() const;
};

inline constexpr uint16_t kNotWanted = 0xffff;

// Lists everything below the root. `classify` gets the full name of an object and returns its kind or
// kNotWanted. All threads call it at the same time. Fails if a folder cannot be listed, because a missing
// part would go unnoticed. Errc::interrupted on Ctrl-C.
Result<FolderWalk> walk_folders(Namespace& names, unsigned threads,
                                const std::function<uint16_t(const Entry&)>& classify);

}  // namespace penstock
