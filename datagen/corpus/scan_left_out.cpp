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

std::string LeftOut::words() const {
  return fmt::format("{} that cannot be read ({}{}; {})", count_, fmt::join(names_, ", "),
                     count_ > names_.size() ? ", ..." : "", first_->message());
}

void add_part(ScanReport& report, std::string_view part) {
  report.text.append(report.text.empty() ? "left out: " : "; ").append(part);
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
  std::vector<std::string> parts;
  if (report.left_out > 0) parts.push_back(kinds);
  if (walk.left_out.contains(".gz") || walk.left_out.contains(".tgz"))
    parts.push_back("compressed archives (.tar.gz, .tgz) are not read: decompress them first");
  if (report.hidden > 0) parts.push_back(fmt::format("{} hidden", report.hidden));
  if (report.linked_folders > 0)
    parts.push_back(fmt::format("{} links to folders, which are not followed (first: '{}')",
                                walk.links.size(), walk.links.front()));
  if (report.dangling > 0)
    parts.push_back(fmt::format("{} that {} (first: '{}')",
                                report.dangling == 1 ? "1 link" : fmt::format("{} links", report.dangling),
                                report.dangling == 1 ? "leads nowhere" : "lead nowhere",
                                walk.dangling.front()));
  if (report.special > 0)
    parts.push_back(
        fmt::format("{} no file but a pipe, a socket or a device (first: '{}')",
                    report.special == 1 ? "1 that is" : fmt::format("{} that are", report.special),
                    walk.special.front()));
  for (const std::string& part : parts) add_part(report, part);
  return report;
}

Error no_samples(const Tier& tier, const OpenCorpus& how, const ScanReport& report) {
  const std::string types(how.types.empty() ? kDefaultSampleTypes : std::string_view(how.types));
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
