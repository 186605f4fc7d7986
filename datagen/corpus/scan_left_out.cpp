#include "datagen/corpus/scan_left_out.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "datagen/format/sample_type.hpp"

namespace penstock {

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kMostShown = 120;
  return name.size() > kMostShown ? fmt::format("'{}...'", name.substr(0, kMostShown))
                                  : fmt::format("'{}'", name);
}

std::string UnreadableObjects::to_text() const {
  return fmt::format("{} that cannot be read ({}{}; {})", count_, fmt::join(names_, ", "),
                     count_ > names_.size() ? ", ..." : "", first_error_->message());
}

void add_part(ScanReport& report, std::string_view part) {
  report.text.append(report.text.empty() ? "left out: " : "; ").append(part);
}

void add_count(ScanReport& report, std::uint64_t count, std::string_view one, std::string_view many,
               std::string_view first) {
  if (count > 0) add_part(report, fmt::format("{} {} (first: {})", count, count == 1 ? one : many, first));
}

ScanReport report_of(const FolderWalk& walk) {
  ScanReport report;
  std::string kinds;
  for (const auto& [extension, count] : walk.left_out) {
    report.left_out += count;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count,
                         extension.empty() ? "without extension" : extension);
  }
  report.hidden = walk.hidden;
  report.linked_folders = walk.links.size();
  report.dangling = walk.dangling.size();
  report.special = walk.special.size();
  const auto quoted_first = [](const std::vector<std::string>& names) {
    return names.empty() ? "" : fmt::format("'{}'", names.front());
  };
  if (report.left_out > 0) add_part(report, kinds);
  if (walk.left_out.contains(".gz") || walk.left_out.contains(".tgz"))
    add_part(report, "compressed archives (.tar.gz, .tgz) are not read: decompress them first");
  if (report.hidden > 0) add_part(report, fmt::format("{} hidden", report.hidden));
  constexpr std::string_view kLinks = "links to folders, which are not followed";
  add_count(report, report.linked_folders, kLinks, kLinks, quoted_first(walk.links));
  add_count(report, report.dangling, "link that leads nowhere", "links that lead nowhere",
            quoted_first(walk.dangling));
  add_count(report, report.special, "that is no file but a pipe, a socket or a device",
            "that are no file but a pipe, a socket or a device", quoted_first(walk.special));
  return report;
}

Error no_samples(const Tier& tier, const CorpusRequest& request, const ScanReport& report) {
  const std::string types(request.types.empty() ? kDefaultSampleTypes : std::string_view(request.types));
  if (report.text.empty())
    return make_error(Errc::not_found, fmt::format("no samples: the folder '{}' is empty", tier.root));
  if (report.dangling > 0 || (report.special > 0 && report.left_out == 0))
    return make_error(Errc::not_found, fmt::format("no samples in '{}' ({})", tier.root, report.text));
  return make_error(
      Errc::not_found,
      fmt::format("no samples in '{}': nothing there ends in {} ({}); --types takes other extensions",
                  tier.root, types, report.text));
}

}  // namespace penstock
