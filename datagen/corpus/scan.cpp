#include "datagen/corpus/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "datagen/corpus/scan_checksums.hpp"
#include "datagen/corpus/scan_labels.hpp"
#include "datagen/corpus/scan_left_out.hpp"
#include "datagen/corpus/scanned_object.hpp"
#include "datagen/objects/folder_walk.hpp"
#include "io_backends/core/parallel/parallel.hpp"

namespace penstock {

namespace {

// Objects are scanned by threads, a batch at a time, and entered in the order of their names.
class SampleLister {
 public:
  SampleLister(Tier& tier, const std::vector<ScanFormat>& formats, unsigned threads, LeftOut& left_out,
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
    add_count(report_, report_.members, "file in an archive that is no part of any sample",
              "files in archives that are no part of any sample", first_member_);
    add_count(report_, report_.arrays, "array that is no part of any sample",
              "arrays that are no part of any sample", first_array_);
    add_count(report_, report_.without_samples, "object without samples", "objects without samples",
              fmt::format("'{}'", first_without_samples_));
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
                                return object.scan(backend_, formats_[object.item->kind]);
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
    if (scanned.samples.empty() && report_.without_samples++ == 0) first_without_samples_ = name;
    enter_parts(scanned.arrays, name, report_.arrays, first_array_);
    enter_parts(scanned.files, name, report_.members, first_member_);
    if (scanned.labels.too_many()) labels_.give_up();
    numbers_.clear();
    for (const std::string& label : scanned.labels.names()) numbers_.push_back(labels_.number(label));
    const std::string_view path = scanned.folder->path;
    const std::string_view folder = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    std::optional<std::uint32_t> of_folder;
    for (SampleEntry sample : scanned.samples) {
      sample.object = object;
      if (sample.label != kNoLabel && sample.label < numbers_.size()) {
        sample.label = numbers_[sample.label];
      } else {
        if (!of_folder) of_folder = labels_.number(folder);
        sample.label = *of_folder;
        if (sample.label != kNoLabel && !scanned.statistics) ++report_.folder_labels;
      }
      if (scanned.statistics)
        statistics_.push_back(sample);
      else
        add_sample(sample);
    }
  }

  static void enter_parts(const Format::Aside& parts, std::string_view object, std::uint64_t& count,
                          std::string& first) {
    if (parts.count > 0 && count == 0)
      first = fmt::format("{} in {}{}{}", parts.first, quoted_name(object), parts.why.empty() ? "" : ", ",
                          parts.why);
    count += parts.count;
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
      report_.folder_labels = 0;
      add_part(report_, fmt::format("the labels, of which there are more than {} MiB of different ones",
                                    ScanLabels::kMostBytes >> 20U));
      return;
    }
    FinalLabels last = final_labels(labels_.names(), used_);
    builder_.relabel(last.numbers);
    builder_.facts().label_names = std::move(last.names);
  }

  Backend& backend_;
  const std::vector<ScanFormat>& formats_;
  const unsigned threads_;
  LeftOut& left_out_;
  ScanReport& report_;
  ManifestBuilder builder_{{}};
  ScanLabels labels_;
  std::vector<SampleEntry> statistics_;
  std::string statistics_codec_;
  std::vector<ScannedObject> batch_;
  std::size_t filled_ = 0;
  std::string name_;
  std::vector<std::uint32_t> numbers_;  // of the object's labels, among all
  std::vector<bool> used_;              // by label
  std::string first_array_;             // that is part of no sample: "'val/x' in 'a.h5'"
  std::string first_member_;
  std::string first_without_samples_;
};

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
