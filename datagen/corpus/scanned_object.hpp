// Scans one object with the format that claims its name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/corpus/scan_labels.hpp"
#include "datagen/corpus/scan_left_out.hpp"
#include "datagen/format/format.hpp"
#include "datagen/objects/folder_walk.hpp"

namespace penstock {

struct ScanFormat {
  std::string_view name;
  std::unique_ptr<Format> format;
};

// All formats that recognize their objects by name. "files" comes last and takes all others.
Result<std::vector<ScanFormat>> scan_formats(const std::string& types);

// Sets `so_far` to `next` if it is empty, and to "mixed" if they differ.
void merge_or_mixed(std::string& so_far, std::string_view next);

// Whether the error comes from the object's content, so that it occurs again at the next scan. A device or
// network error may be temporary and must not make a data set smaller, so the scan fails.
bool is_content_error(const Error& error);

// One object of a batch: its entry in the listing, and after scan() its content. The FolderWalk must outlive
// it. One thread at a time.
struct ScannedObject {
  const FolderListing* folder = nullptr;
  const FolderListing::Item* item = nullptr;
  std::vector<SampleEntry> samples;  // labels numbered by `labels` of this object
  ScanLabels labels;
  std::string codec;
  bool statistics = false;      // whether the whole object is statistics
  Format::LeftOutParts arrays;  // belong to no sample; names in quotes
  Format::LeftOutParts files;   // of an archive
  std::optional<Error> unreadable;

  // Scans the object. An error in its content becomes `unreadable`. Other errors (device, network) are
  // returned.
  Result<void> scan(Backend& backend, const ScanFormat& scan_format);
};

}  // namespace penstock
