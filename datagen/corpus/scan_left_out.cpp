#include "datagen/corpus/scan_left_out.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "datagen/format/sample_type.hpp"

namespace penstock {

std::string quoted_name(std::string_view name) {
  constexpr size_t kMostShownChars = 120;
  return name.size() > kMostShownChars ? fmt::format("'{}...'", name.substr(0, kMostShownChars))
                                       : fmt::format("'{}'", name);
}

std::string UnreadableObjects::to_text() const {
  return fmt::format("{} that cannot be read ({}{}; {})", count_, fmt::join(names_, ", "),
                     count_ > names_.size() ? ", ..." : "", first_error_->message());
}

void add_part(ScanReport& report, std::string_view part) {
  report.text.append(report.text.empty() ? "skipped: " : "; ").append(part);
}

void add_count(ScanReport& report, uint64_t count, std::string_view singular, std::string_view plural,
               std::string_view first) {
  if (count > 0)
    add_part(report, fmt::format("{} {} (first: {})", count, count == 1 ? singular : plural, first));
}

ScanReport report_left_out(const FolderWalk& walk, bool follows_links, bool all_links_known) {
  ScanReport report;
  std::string extension_counts;
  for (const auto& [extension, count] : walk.left_out_by_extension) {
    report.unwanted_objects += count;
    extension_counts += fmt::format("{}{} {}", extension_counts.empty() ? "" : ", ", count,
                                    extension.empty() ? "without extension" : extension);
  }
  report.hidden_entries = walk.hidden_entries;
  report.empty_folders = walk.empty_folders.size();
  report.linked_objects = walk.linked_objects;
  report.linked_folders = walk.folder_links.size();
  report.dangling_links = walk.dangling_links.size();
  report.special_files = walk.special_files.size();
  const auto quoted_first = [](const std::vector<std::string>& names) {
    return names.empty() ? "" : fmt::format("'{}'", names.front());
  };
  if (report.unwanted_objects > 0) add_part(report, extension_counts);
  if (walk.left_out_by_extension.contains(".gz") || walk.left_out_by_extension.contains(".tgz"))
    add_part(report, "compressed archives (.tar.gz, .tgz) are not supported: decompress them first");
  if (report.hidden_entries > 0) add_part(report, fmt::format("{} hidden", report.hidden_entries));
  add_count(report, report.empty_folders, "empty folder", "empty folders", quoted_first(walk.empty_folders));
  if (follows_links)
    add_count(report, report.linked_folders,
              all_links_known ? "link to a parent folder" : "link to a folder that may be a parent",
              all_links_known ? "links to parent folders" : "links to folders that may be parents",
              quoted_first(walk.folder_links));
  else
    add_count(report, report.linked_folders, "link to a folder (to follow it: --follow-links)",
              "links to folders (to follow them: --follow-links)", quoted_first(walk.folder_links));
  add_count(report, report.dangling_links, "broken link", "broken links", quoted_first(walk.dangling_links));
  add_count(report, report.special_files, "that is a pipe, a socket or a device",
            "that are pipes, sockets or devices", quoted_first(walk.special_files));
  return report;
}

Error explain_no_samples(const Tier& tier, const CorpusRequest& request, const ScanReport& report) {
  const std::string types(request.types.empty() ? kDefaultSampleTypes : std::string_view(request.types));
  if (report.text.empty())
    return make_error(Errc::not_found, "no samples: the folder '{}' is empty", tier.root);
  if (!report.first_unentered_folder.empty())
    return make_error(Errc::not_found, "no samples in '{}' ({}): {}", tier.root, report.text,
                      report.unentered_remedy);
  const bool has_others = report.linked_folders + report.special_files > 0 && report.unwanted_objects == 0;
  if (report.dangling_links > 0 || has_others)
    return make_error(Errc::not_found, "no samples in '{}' ({})", tier.root, report.text);
  return make_error(Errc::not_found,
                    "no samples in '{}': no file ends in {} ({}); to use other extensions: --types",
                    tier.root, types, report.text);
}

}  // namespace penstock
