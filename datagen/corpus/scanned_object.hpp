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

// All formats that recognize their objects by name. The format "files" comes last and takes all other
// objects.
Result<std::vector<ScanFormat>> scan_formats(const std::string& types);

// Sets `so_far` to `next` if it is empty, and to "mixed" if they differ.
void set_or_mark_mixed(std::string& so_far, std::string_view next);

// Whether the error comes from the object's content, so that it occurs again at the next scan. A device or
// network error may be temporary and must not make a data set smaller, so the scan fails.
bool is_content_error(const Error& error);

// One object of a batch: its entry in the listing, and after scan() its content. The FolderWalk must outlive
// it. One thread at a time.
struct ScannedObject {
  const FolderListing* folder = nullptr;
  const FolderListing::Item* item = nullptr;
  std::vector<SampleEntry> samples;  // label numbers are those of `labels` below, not of the corpus
  ScanLabels labels;
  std::string codec;
  bool is_statistics = false;            // whether the whole object is statistics
  Format::LeftOutParts left_out_arrays;  // arrays that belong to no sample, with names in quotes
  Format::LeftOutParts left_out_files;   // files of an archive that belong to no sample
  std::optional<Error> content_error;

  // Scans the object. An error in its content becomes `content_error`. Other errors (device, network) are
  // returned.
  Result<void> scan(Backend& backend, const ScanFormat& scan_format);
};

}  // namespace penstock
