#include "datagen/scan.hpp"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "datagen/folder_walk.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/object_check.hpp"
#include "datagen/parallel.hpp"
#include "io_backends/base/progress.hpp"

namespace penstock {

namespace {

struct NamedFormat {
  std::string_view name;
  std::unique_ptr<Format> format;
};

// The formats that tell their objects by name first; "files" takes what nobody else claims.
Result<std::vector<NamedFormat>> scan_formats(const std::string& types) {
  std::vector<NamedFormat> formats;
  std::vector<NamedFormat> last;
  for (const FormatInfo* info : format_registry().present()) {
    const bool files = info->name == "files";
    std::vector<OptionWord> words;
    if (files && !types.empty()) words.push_back({"types", types});
    PENSTOCK_ASSIGN(const Options options, Options::parse(info->options, words, "format option"));
    PENSTOCK_ASSIGN(auto format, info->make(options));
    (files ? last : formats).push_back({info->name, std::move(format)});
  }
  for (NamedFormat& format : last) formats.push_back(std::move(format));
  return formats;
}

std::string_view parent_name(std::string_view folder) {
  const std::size_t slash = folder.rfind('/');
  return slash == std::string_view::npos ? folder : folder.substr(slash + 1);
}

// One name for all, or "mixed".
void agree(std::string& so_far, std::string_view next) {
  if (so_far.empty())
    so_far = next;
  else if (so_far != next)
    so_far = "mixed";
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
  std::vector<std::string> parts;
  if (report.left_out > 0) parts.push_back(kinds);
  if (report.hidden > 0) parts.push_back(fmt::format("{} hidden", report.hidden));
  if (report.linked_folders > 0)
    parts.push_back(fmt::format("{} links to folders, which are not followed (first: '{}')",
                                walk.links.size(), walk.links.front()));
  for (const std::string& part : parts) report.text += (report.text.empty() ? "left out: " : "; ") + part;
  return report;
}

Error no_samples(const Tier& tier, const OpenCorpus& how, const ScanReport& report) {
  const std::string types(how.types.empty() ? kDefaultSampleTypes : std::string_view(how.types));
  if (report.text.empty())
    return make_error(Errc::not_found, fmt::format("no samples: the folder '{}' is empty", tier.root));
  return make_error(
      Errc::not_found,
      fmt::format("no samples in '{}': nothing there ends in {} ({}); --types takes other extensions",
                  tier.root, types, report.text));
}

// Numbers the labels: folders' names first, in byte order; names from inside objects as they come.
class Labels {
 public:
  explicit Labels(const FolderWalk& walk) {
    std::set<std::string_view> sorted;
    for (const FolderListing& folder : walk.folders)
      if (!folder.path.empty()) sorted.insert(parent_name(folder.path));
    for (const std::string_view name : sorted) number(name);
  }
  std::uint32_t number(std::string_view name) {
    if (name.empty()) return kNoLabel;
    const auto [row, added] = numbers_.emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (added) names_.emplace_back(name);
    return row->second;
  }
  std::vector<std::string> names() && { return std::move(names_); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

Result<Manifest> list_samples(Tier& tier, FolderWalk& walk, const std::vector<NamedFormat>& formats) {
  ManifestBuilder builder({});
  builder.facts().recipe = "scan";
  Labels labels(walk);
  std::string scratch;
  for (FolderListing& folder : walk.folders) {
    PENSTOCK_TRY(check_interrupt());
    const std::uint32_t label = labels.number(parent_name(folder.path));
    for (const FolderListing::Item& item : folder.items) {
      const std::string_view name = folder.full_name(item, scratch);
      const NamedFormat& format = formats[item.kind];
      agree(builder.facts().format, format.name);
      const std::string_view codec = codec_of(name);
      const std::uint32_t object = builder.add_object(name, item.bytes);
      const auto found = [&](const Format::Found& sample) {
        agree(builder.facts().codec, sample.codec.empty() ? codec : sample.codec);
        builder.add_sample({.offset = sample.placement.offset,
                            .length = sample.placement.length,
                            .object = object,
                            .label = sample.label_name.empty() ? label : labels.number(sample.label_name)});
      };
      const Entry whole{.name = scratch, .bytes = item.bytes};
      PENSTOCK_TRY(format.format->scan(*tier.backend, whole, found));
    }
    folder = {};
  }
  builder.facts().label_names = std::move(labels).names();
  PENSTOCK_ASSIGN(auto bytes, builder.finish());
  return Manifest::from_bytes(std::move(bytes));
}

// The same manifest with the checksum of every sample as it lies there now.
Result<Manifest> with_checksums(Tier& tier, const Manifest& manifest, unsigned threads, bool progress) {
  const ObjectIndex index(manifest);
  ManifestFacts facts = manifest.facts();
  facts.checksums = true;
  ManifestBuilder builder(std::move(facts));
  builder.resize_samples(manifest.samples());
  std::string scratch;
  for (std::uint64_t i = 0; i < manifest.objects(); ++i)
    builder.add_object(manifest.object_name(i, scratch), manifest.object_bytes(i));

  std::vector<Buffer> buffers(threads);
  std::vector<std::string> names(threads);
  Progress shown(progress, "checksums", manifest.objects(), "files");
  const auto read = [&](unsigned worker, std::uint64_t object) -> Result<void> {
    PENSTOCK_ASSIGN(const auto reader, tier.backend->open(manifest.object_name(object, names[worker])));
    shown.advance(1);
    return index.for_each_sample(object, [&](std::uint64_t sample) -> Result<void> {
      SampleEntry entry = manifest.sample(sample);
      PENSTOCK_ASSIGN(entry.crc32c, crc32c_of(*reader, entry.offset, entry.length, buffers[worker]));
      builder.set_sample(sample, entry);
      return success();
    });
  };
  PENSTOCK_TRY(parallel_for(manifest.objects(), threads, 8, read));
  PENSTOCK_ASSIGN(auto bytes, builder.finish());
  return Manifest::from_bytes(std::move(bytes));
}

}  // namespace

Result<Scanned> scan_tier(Tier& tier, const OpenCorpus& how) {
  const unsigned threads = worker_threads(how.threads);
  PENSTOCK_ASSIGN(const auto formats, scan_formats(how.types));
  const auto classify = [&](const Entry& entry) {
    for (std::size_t i = 0; i < formats.size(); ++i)
      if (formats[i].format->claims(entry.name)) return static_cast<std::uint16_t>(i);
    return kNotWanted;
  };
  PENSTOCK_ASSIGN(FolderWalk walk, walk_folders(tier.backend->names(), threads, classify));
  ScanReport report = report_of(walk);
  if (walk.folders.empty()) return no_samples(tier, how, report);
  PENSTOCK_ASSIGN(Manifest manifest, list_samples(tier, walk, formats));
  if (how.checksum) {
    PENSTOCK_ASSIGN(manifest, with_checksums(tier, manifest, threads, how.progress));
  }
  return Scanned{std::move(manifest), std::move(report)};
}

}  // namespace penstock
