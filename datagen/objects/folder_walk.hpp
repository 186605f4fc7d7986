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

// The objects of one folder, in byte order of their names. It is stored compactly, because there may be
// millions of objects.
class FolderListing {
 public:
  struct Item {
    uint64_t bytes = 0;
    uint32_t name_offset = 0;
    uint16_t name_length = 0;
    uint16_t kind = 0;  // what `classify` returned for the object (see walk_folders())
  };

  std::string path;  // "": the root
  std::string names;
  std::vector<Item> items;

  std::string_view name(const Item& item) const {
    return std::string_view(names).substr(item.name_offset, item.name_length);
  }
  // The name with its path: "path/name". The text is in `scratch`, so it is valid until `scratch` changes.
  std::string_view full_name(const Item& item, std::string& scratch) const;
};

struct FolderWalk {
  std::vector<FolderListing> folders;  // in byte order of their paths; folders without objects are omitted
  // How many unwanted objects there are with each extension. "": no extension. "...": long extensions, and
  // the rarest ones if there are many.
  std::map<std::string, uint64_t, std::less<>> left_out_by_extension;
  uint64_t hidden_entries = 0;  // objects and folders whose name starts with a dot; they are skipped
  // Folders, other than the root, that contain nothing: no entry but hidden ones.
  std::vector<std::string> empty_folders;
  uint64_t linked_objects = 0;  // wanted objects that are links
  // Links to folders that were not entered.
  std::vector<std::string> folder_links;
  // Links whose target does not exist, whatever they are called: a link to a folder has no extension.
  std::vector<std::string> dangling_links;
  // Special files: pipes, sockets, devices, and links to these.
  std::vector<std::string> special_files;
  // Wanted objects and folders whose names are too long for every back end.
  std::vector<std::string> too_long_names;
  // The number of items in all of `folders`. Any thread may call it once walk_folders() has returned.
  uint64_t objects() const;
};

inline constexpr uint16_t kNotWanted = 0xffff;

// Lists everything below the root. `classify` gets an object, with its full name, and returns its kind, or
// kNotWanted. `enters_link` gets a link to a folder and returns whether to enter it; null: no link is
// entered. It must refuse links that lead in circles. Several threads may call both at the same time. Fails
// if a folder cannot be listed: otherwise the user would not notice that a part is missing. Errc::interrupted
// on Ctrl-C.
Result<FolderWalk> walk_folders(Namespace& names, unsigned threads,
                                const std::function<uint16_t(const Entry&)>& classify,
                                const std::function<bool(const Entry&)>& enters_link = nullptr);

}  // namespace penstock
