// One object of a scan: what is in it, by the format that claims its name.
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

// The formats that know their objects by name come first; "files" takes what no other format claims.
Result<std::vector<ScanFormat>> scan_formats(const std::string& types);

// One name for all, or "mixed".
void agree(std::string& so_far, std::string_view next);

// Whether an error will be there tomorrow as well. A device or a network that fails now must not make a data
// set smaller: then the scan fails.
bool is_inside_object(const Error& error);

// One object on its way through a batch: where it was listed (the walk must outlive it), then what is in
// it. One thread at a time.
struct ScannedObject {
  const FolderListing* folder = nullptr;
  const FolderListing::Item* item = nullptr;
  std::vector<SampleEntry> samples;  // labels by the object's own numbers
  ScanLabels labels;
  std::string codec;
  bool statistics = false;  // of all that is in it
  Format::Aside arrays;     // no part of any sample; their names in quotes
  Format::Aside files;      // of an archive
  std::optional<Error> unreadable;

  // What is wrong with the object itself becomes `unreadable`; other errors (a device's, a network's) are
  // given.
  Result<void> scan(Backend& backend, const ScanFormat& named);
};

}  // namespace penstock
