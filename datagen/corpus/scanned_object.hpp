// Scans one object with the format that claims its name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "datagen/corpus/scan_labels.hpp"
#include "datagen/corpus/scan_left_out.hpp"
#include "datagen/format/format.hpp"
#include "datagen/objects/folder_walk.hpp"

namespace penstock {

struct ScanFormat {
  std::string_view name;
  bool takes_field = false;  // whether it stores arrays
  std::unique_ptr<Format> format;
};

// All formats that recognize their objects by name. The format "files" comes last. It takes all other objects
// whose extension is one of `request.types`. Formats that store arrays take the field `request.field`.
Result<std::vector<ScanFormat>> scan_formats(const CorpusRequest& request);

// Joins two values: `so_far` becomes `next` if it was empty, and "mixed" if it was a value other than `next`.
void set_or_mark_mixed(std::string& so_far, std::string_view next);

// Whether the error comes from the object's content, so that every scan would meet it. Other errors, of a
// device or network, may be temporary. They must not make a data set smaller, so they make the scan fail.
bool is_content_error(const Error& error);

// One object of a batch: its entry in the listing and, after scan(), its content. The FolderWalk of the entry
// must outlive it. Only one thread at a time may use it.
struct ScannedObject {
  const FolderListing* folder = nullptr;
  const FolderListing::Item* item = nullptr;
  // The samples in the object. Their label numbers are indexes into `labels` below, not labels of the corpus.
  std::vector<SampleEntry> samples;
  // If samples have forms: these forms, numbered as in SampleEntry::form, and the extent of each sample.
  std::vector<SampleForm> forms;
  std::vector<SampleExtent> extents;
  ScanLabels labels;
  std::string codec;
  std::string array;  // as in Format::FoundSample
  // Whether the whole object holds statistics of a data set, not samples.
  bool holds_statistics = false;
  Format::LeftOutParts left_out_arrays;  // arrays that belong to no sample, with names in quotes
  Format::LeftOutParts equal_arrays;     // as in Format::FoundSample
  Format::LeftOutParts left_out_files;   // files of an archive that belong to no sample
  std::optional<Error> content_error;

  // Scans the object. If its content is wrong, the error becomes `content_error`, and scan() succeeds. Other
  // errors (device, network) are returned.
  Result<void> scan(Backend& backend, const ScanFormat& scan_format);
};

}  // namespace penstock
