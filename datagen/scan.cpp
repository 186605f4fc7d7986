#include "datagen/scan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

// Objects that are wanted and cannot be had. One thread at a time.
class LeftOut {
 public:
  void add(std::string_view name, Error error) {
    ++count_;
    constexpr std::size_t kMostShown = 120;
    if (names_.size() < kNamed)
      names_.push_back(name.size() > kMostShown ? fmt::format("'{}...'", name.substr(0, kMostShown))
                                                : fmt::format("'{}'", name));
    if (!first_) first_ = std::move(error);
  }
  std::uint64_t count() const { return count_; }
  const std::optional<Error>& first() const { return first_; }
  std::string words() const {
    return fmt::format("{} that cannot be read ({}{}; {})", count_, fmt::join(names_, ", "),
                       count_ > names_.size() ? ", ..." : "", first_->message());
  }

 private:
  static constexpr std::size_t kNamed = 3;
  std::uint64_t count_ = 0;
  std::vector<std::string> names_;
  std::optional<Error> first_;
};

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
  for (const std::string& part : parts) add_part(report, part);
  return report;
}

Error no_samples(const Tier& tier, const OpenCorpus& how, const ScanReport& report) {
  const std::string types(how.types.empty() ? kDefaultSampleTypes : std::string_view(how.types));
  if (report.text.empty())
    return make_error(Errc::not_found, fmt::format("no samples: the folder '{}' is empty", tier.root));
  if (report.dangling > 0)
    return make_error(Errc::not_found, fmt::format("no samples in '{}' ({})", tier.root, report.text));
  return make_error(
      Errc::not_found,
      fmt::format("no samples in '{}': nothing there ends in {} ({}); --types takes other extensions",
                  tier.root, types, report.text));
}

// A label's value, where its name is a decimal number as one is written.
std::optional<std::uint64_t> decimal(std::string_view name) {
  constexpr std::size_t kMostDigits = 9;
  if (name.empty() || name.size() > kMostDigits || (name.front() == '0' && name.size() > 1))
    return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// Numbers names as they come, while they are not so many that no manifest could hold them.
class Labels {
 public:
  // Of all names together; each takes a few bytes more.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  std::uint32_t number(std::string_view name) {
    if (name.empty() || too_many_) return kNoLabel;
    const auto [row, added] = numbers_.emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (!added) return row->second;
    constexpr std::size_t kBesideAName = 4;
    bytes_ += name.size() + kBesideAName;
    if (bytes_ > kMostBytes) {
      give_up();
      return kNoLabel;
    }
    names_.emplace_back(name);
    return row->second;
  }
  bool too_many() const { return too_many_; }
  void give_up() {
    clear();
    too_many_ = true;
  }
  const std::vector<std::string>& names() const { return names_; }
  void clear() {
    numbers_.clear();
    names_.clear();
    bytes_ = 0;
    too_many_ = false;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
  std::size_t bytes_ = 0;
  bool too_many_ = false;
};

// The numbers that labels have in the end, and their names by these.
struct FinalLabels {
  std::vector<std::uint32_t> numbers;  // by the number they had as they came; kNoLabel: nobody's
  std::vector<std::string> names;
};

// Labels that are all decimal numbers are these numbers: nobody's 0 to 9 become anything else. Others are
// numbered in byte order of their names. Those that no sample has are left out.
FinalLabels final_labels(const std::vector<std::string>& names, const std::vector<bool>& used) {
  FinalLabels out{.numbers = std::vector<std::uint32_t>(names.size(), kNoLabel), .names = {}};
  std::vector<std::uint32_t> sorted;
  bool decimals = true;
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    if (i >= used.size() || !used[i]) continue;
    sorted.push_back(i);
    const auto value = decimal(names[i]);
    decimals = decimals && value;
    most = std::max(most, value.value_or(0));
  }
  // The numbers between them get names as well: no more than there are of them, or a few.
  constexpr std::uint64_t kFew = 65536;
  if (decimals && !sorted.empty() && most < std::max<std::uint64_t>(kFew, 2 * sorted.size())) {
    for (const std::uint32_t i : sorted) out.numbers[i] = static_cast<std::uint32_t>(*decimal(names[i]));
    for (std::uint64_t value = 0; value <= most; ++value) out.names.push_back(fmt::format("{}", value));
    return out;
  }
  std::sort(sorted.begin(), sorted.end(),
            [&](std::uint32_t a, std::uint32_t b) { return names[a] < names[b]; });
  for (const std::uint32_t i : sorted) {
    out.numbers[i] = static_cast<std::uint32_t>(out.names.size());
    out.names.push_back(names[i]);
  }
  return out;
}

// Whether an error will be there tomorrow as well. A device or a network that fails now must not make a data
// set smaller: then the scan fails.
bool lies_in_the_object(const Error& error) {
  return tells_of_object(error) && error.code != Errc::io && error.code != Errc::timed_out &&
         error.code != Errc::busy;
}

// One object on its way through a batch: where it was listed, then what lies in it.
struct ScannedObject {
  const FolderListing* folder = nullptr;
  const FolderListing::Item* item = nullptr;
  std::vector<SampleEntry> samples;  // labels by the object's own numbers
  Labels labels;
  std::string codec;
  bool statistics = false;   // of all that lies in it
  std::uint64_t arrays = 0;  // that are no part of any sample
  std::optional<Error> unreadable;

  // Fails where that tells nothing of the object.
  Result<void> scan(Backend& backend, const Format& format) {
    samples.clear();
    labels.clear();
    codec.clear();
    statistics = false;
    arrays = 0;
    unreadable.reset();
    Entry entry;
    entry.bytes = item->bytes;
    folder->full_name(*item, entry.name);
    const std::string_view by_name = codec_of(entry.name);
    bool too_many = false;
    Result<void> done = format.scan(backend, entry, [&](const Format::Found& found) {
      too_many = too_many || samples.size() == kMostSamplesAnObject;
      if (too_many) return;
      agree(codec, found.codec.empty() ? by_name : found.codec);
      statistics = found.statistics && samples.empty();
      arrays += found.arrays_left_out;
      samples.push_back({.offset = found.placement.offset,
                         .length = found.placement.length,
                         .label = labels.number(found.label_name)});
    });
    if (done.ok() && too_many)
      done = make_error(Errc::unsupported, fmt::format("'{}': more than {} samples in one object: split it",
                                                       entry.name, kMostSamplesAnObject));
    if (done.ok() || !lies_in_the_object(done.error())) return done;
    unreadable = std::move(done).error();
    samples = {};
    return success();
  }
};

// Objects are scanned by threads, a batch at a time, and entered in the order of their names.
class SampleLister {
 public:
  SampleLister(Tier& tier, const std::vector<NamedFormat>& formats, unsigned threads, LeftOut& left_out,
               ScanReport& report)
      : backend_(*tier.backend),
        formats_(formats),
        threads_(threads),
        left_out_(left_out),
        report_(report),
        batch_(std::size_t{2} * threads) {
    builder_.facts().recipe = "scan";
  }

  Result<Manifest> list(FolderWalk& walk) && {
    for (const FolderListing& folder : walk.folders) {
      for (const FolderListing::Item& item : folder.items) {
        batch_[filled_].folder = &folder;
        batch_[filled_].item = &item;
        if (++filled_ == batch_.size()) PENSTOCK_TRY(enter_batch());
      }
    }
    PENSTOCK_TRY(enter_batch());
    walk = {};
    // Where all objects are called so, they are the samples.
    if (builder_.samples() == 0 && !statistics_.empty()) {
      for (const SampleEntry& sample : statistics_) add_sample(sample);
      builder_.facts().codec = statistics_codec_;
    }
    if (builder_.objects() == 0 && left_out_.first()) return *left_out_.first();
    give_labels();
    if (report_.arrays > 0)
      add_part(report_, fmt::format("{} no part of any sample (first: in '{}')",
                                    report_.arrays == 1 ? "1 array that is"
                                                        : fmt::format("{} arrays that are", report_.arrays),
                                    first_with_arrays_));
    PENSTOCK_ASSIGN(auto bytes, builder_.finish());
    return Manifest::from_bytes(std::move(bytes));
  }

 private:
  // Enough objects for every thread, and no more samples waiting than about this.
  static constexpr std::size_t kMostObjects = 16384;
  static constexpr std::size_t kSamples = std::size_t{1} << 19;

  Result<void> enter_batch() {
    PENSTOCK_TRY(parallel_for(filled_, threads_, 1 + filled_ / threads_ / 8,
                              [this](unsigned /*worker*/, std::uint64_t i) {
                                ScannedObject& object = batch_[i];
                                return object.scan(backend_, *formats_[object.item->kind].format);
                              }));
    std::size_t samples = 0;
    for (std::size_t i = 0; i < filled_; ++i) {
      enter(batch_[i]);
      samples += batch_[i].samples.size();
    }
    const std::size_t an_object = samples / std::max<std::size_t>(filled_, 1) + 1;
    filled_ = 0;
    batch_.resize(std::clamp<std::size_t>(kSamples / an_object, std::size_t{2} * threads_, kMostObjects));
    return success();
  }

  void enter(ScannedObject& scanned) {
    const std::string_view name = scanned.folder->full_name(*scanned.item, name_);
    if (scanned.unreadable) return left_out_.add(name, *std::move(scanned.unreadable));
    agree(builder_.facts().format, formats_[scanned.item->kind].name);
    if (!scanned.codec.empty())
      agree(scanned.statistics ? statistics_codec_ : builder_.facts().codec, scanned.codec);
    const std::uint32_t object = builder_.add_object(name, scanned.item->bytes);
    if (scanned.arrays > 0 && report_.arrays == 0) first_with_arrays_ = name;
    report_.arrays += scanned.arrays;
    if (scanned.labels.too_many()) labels_.give_up();
    numbers_.clear();
    for (const std::string& label : scanned.labels.names()) numbers_.push_back(labels_.number(label));
    const std::string_view folder = parent_name(scanned.folder->path);
    std::optional<std::uint32_t> of_folder;
    for (SampleEntry sample : scanned.samples) {
      sample.object = object;
      if (sample.label != kNoLabel && sample.label < numbers_.size()) {
        sample.label = numbers_[sample.label];
      } else {
        if (!of_folder) of_folder = labels_.number(folder);
        sample.label = *of_folder;
      }
      if (scanned.statistics)
        statistics_.push_back(sample);
      else
        add_sample(sample);
    }
  }

  void add_sample(const SampleEntry& sample) {
    builder_.add_sample(sample);
    if (sample.label == kNoLabel) return;
    if (sample.label >= used_.size()) used_.resize(sample.label + std::size_t{1});
    used_[sample.label] = true;
  }

  // Now that all are known.
  void give_labels() {
    if (labels_.too_many()) {
      builder_.relabel({});
      add_part(report_, fmt::format("the labels, of which there are more than {} MiB of different ones",
                                    Labels::kMostBytes >> 20U));
      return;
    }
    FinalLabels last = final_labels(labels_.names(), used_);
    builder_.relabel(last.numbers);
    builder_.facts().label_names = std::move(last.names);
  }

  Backend& backend_;
  const std::vector<NamedFormat>& formats_;
  const unsigned threads_;
  LeftOut& left_out_;
  ScanReport& report_;
  ManifestBuilder builder_{{}};
  Labels labels_;
  std::vector<SampleEntry> statistics_;
  std::string statistics_codec_;
  std::vector<ScannedObject> batch_;
  std::size_t filled_ = 0;
  std::string name_;
  std::vector<std::uint32_t> numbers_;  // of the object's labels, among all
  std::vector<bool> used_;              // by label
  std::string first_with_arrays_;
};

// The same manifest without some of its objects and their samples.
Result<Manifest> without(const Manifest& manifest, const std::map<std::uint64_t, Error>& objects) {
  ManifestBuilder builder(manifest.facts());
  std::vector<std::uint32_t> number(static_cast<std::size_t>(manifest.objects()));
  std::string scratch;
  for (std::uint64_t i = 0; i < manifest.objects(); ++i) {
    if (objects.contains(i)) continue;
    number[i] = builder.add_object(manifest.object_name(i, scratch), manifest.object_bytes(i));
    builder.set_object_crc32c(number[i], manifest.object_crc32c(i).value_or(0));
  }
  for (std::uint64_t i = 0; i < manifest.samples(); ++i) {
    SampleEntry entry = manifest.sample(i);
    if (objects.contains(entry.object)) continue;
    entry.object = number[entry.object];
    builder.add_sample(entry);
  }
  PENSTOCK_ASSIGN(auto bytes, builder.finish());
  return Manifest::from_bytes(std::move(bytes));
}

// The same manifest with the checksum of every sample and object as they lie there now.
Result<Manifest> with_checksums(Tier& tier, const Manifest& manifest, unsigned threads, bool progress,
                                LeftOut& left_out) {
  const ObjectIndex index(manifest);
  ManifestFacts facts = manifest.facts();
  facts.checksums = true;
  facts.object_checksums = true;
  ManifestBuilder builder(std::move(facts));
  builder.resize_samples(manifest.samples());
  std::string scratch;
  for (std::uint64_t i = 0; i < manifest.objects(); ++i)
    builder.add_object(manifest.object_name(i, scratch), manifest.object_bytes(i));

  std::vector<Buffer> buffers(threads);
  std::vector<std::string> names(threads);
  std::mutex mutex;
  std::map<std::uint64_t, Error> unreadable;  // by object
  Progress shown(progress, "checksums", manifest.objects(), "files");
  const auto read = [&](unsigned worker, std::uint64_t object) -> Result<void> {
    PENSTOCK_ASSIGN(const auto reader, tier.backend->open(manifest.object_name(object, names[worker])));
    const auto enter = [&](std::uint64_t sample, std::uint32_t crc) {
      SampleEntry entry = manifest.sample(sample);
      entry.crc32c = crc;
      builder.set_sample(sample, entry);
    };
    PENSTOCK_ASSIGN(const std::uint32_t whole,
                    checksums_of(*reader, manifest, index, object, buffers[worker], enter));
    builder.set_object_crc32c(static_cast<std::uint32_t>(object), whole);
    return success();
  };
  const auto read_or_leave = [&](unsigned worker, std::uint64_t object) -> Result<void> {
    Result<void> done = read(worker, object);
    shown.advance(1);
    if (done.ok() || !lies_in_the_object(done.error())) return done;
    PENSTOCK_TRY(index.for_each_sample(object, [&](std::uint64_t sample) {
      builder.set_sample(sample, manifest.sample(sample));
      return success();
    }));
    std::lock_guard lock(mutex);
    unreadable.emplace(object, std::move(done).error());
    return success();
  };
  PENSTOCK_TRY(parallel_for(manifest.objects(), threads, 8, read_or_leave));
  if (!unreadable.empty() && unreadable.size() == manifest.objects()) return unreadable.begin()->second;
  PENSTOCK_ASSIGN(auto bytes, builder.finish());
  PENSTOCK_ASSIGN(Manifest all, Manifest::from_bytes(std::move(bytes)));
  if (unreadable.empty()) return all;
  for (auto& [object, error] : unreadable)
    left_out.add(manifest.object_name(object, scratch), std::move(error));
  return without(all, unreadable);
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
  LeftOut left_out;
  for (const std::string& name : walk.misnamed)
    left_out.add(name, make_error(Errc::unsupported, check_object_name(name).error().what));
  if (walk.folders.empty() && left_out.first()) return *left_out.first();
  if (walk.folders.empty()) return no_samples(tier, how, report);
  PENSTOCK_ASSIGN(Manifest manifest, SampleLister(tier, formats, threads, left_out, report).list(walk));
  if (how.checksum) {
    PENSTOCK_ASSIGN(manifest, with_checksums(tier, manifest, threads, how.progress, left_out));
  }
  report.unreadable = left_out.count();
  if (left_out.count() > 0) add_part(report, report.lacks = left_out.words());
  return Scanned{std::move(manifest), std::move(report)};
}

}  // namespace penstock
