// Threads: one thread of a command calls scan_tier(). It starts threads (parallel_for) that scan objects or
// compute checksums, each with its own objects and buffer, and joins them.
// Lock: the local mutex of with_checksums(), for `errors`. It is not held during a read.
// Memory: everything allocates. A std::bad_alloc on one of these threads becomes an error of the scan.
// Ctrl-C: checked before each object and, for checksums, between pieces. The scan then fails with
// `interrupted`.
// Crash: nothing is written.
#include "datagen/corpus/scan.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "datagen/corpus/scan_labels.hpp"
#include "datagen/corpus/scan_left_out.hpp"
#include "datagen/corpus/scanned_object.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/objects/folder_walk.hpp"
#include "datagen/objects/object_check.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

namespace {

// Scans objects in batches with several threads, and adds them to the manifest in the order of their names.
class SampleLister {
 public:
  SampleLister(Tier& tier, const std::vector<ScanFormat>& formats, unsigned threads,
               UnreadableObjects& unreadable_objects, ScanReport& report)
      : backend_(*tier.backend),
        formats_(formats),
        threads_(threads),
        unreadable_(unreadable_objects),
        report_(report),
        batch_(size_t{2} * threads) {
    builder_.facts().recipe = "scan";
  }

  Result<Manifest> list(FolderWalk& walk) && {
    for (const FolderListing& folder : walk.folders) {
      for (const FolderListing::Item& item : folder.items) {
        batch_[batch_objects_].folder = &folder;
        batch_[batch_objects_].item = &item;
        if (++batch_objects_ == batch_.size()) PENSTOCK_TRY(scan_batch());
      }
    }
    PENSTOCK_TRY(scan_batch());
    walk = {};
    // Entries of objects that hold statistics of a data set are normally no samples. If the scan found no
    // other samples, these entries are taken as samples.
    if (builder_.samples() == 0 && !statistics_.empty()) {
      for (const Sample& sample : statistics_) add_sample(sample);
      builder_.facts().codec = statistics_codec_;
    }
    if (builder_.objects() == 0 && unreadable_.first_error()) return *unreadable_.first_error();
    assign_labels();
    add_count(report_, report_.left_out_members, "file in an archive that belongs to no sample",
              "files in archives that belong to no sample", first_member_);
    add_count(report_, report_.left_out_arrays, "array that belongs to no sample",
              "arrays that belong to no sample", first_array_);
    add_count(report_, report_.equal_arrays, "array of the same size as the sample array",
              "arrays of the same size as the sample arrays", first_equal_);
    add_count(report_, report_.objects_without_samples, "object without samples", "objects without samples",
              fmt::format("'{}'", first_without_samples_));
    PENSTOCK_ASSIGN(auto bytes, builder_.finish());
    return Manifest::from_bytes(std::move(bytes));
  }

 private:
  struct Sample {
    SampleEntry entry;
    SampleExtent extent;  // used only if the entry has a form
  };

  // Limits of a batch of objects. About kSamplesPerBatch samples are in memory at a time.
  static constexpr size_t kMostObjectsPerBatch = 16384;
  static constexpr size_t kSamplesPerBatch = size_t{1} << 19;

  Result<void> scan_batch() {
    // The threads scan different objects of the batch, and share nothing that changes. add_object() runs
    // after all of them, on one thread.
    PENSTOCK_TRY(parallel_for(batch_objects_, threads_, 1 + batch_objects_ / threads_ / 8,
                              [this](unsigned /*worker*/, uint64_t i) {
                                ScannedObject& object = batch_[i];
                                return object.scan(backend_, formats_[object.item->kind]);
                              }));
    size_t samples = 0;
    for (size_t i = 0; i < batch_objects_; ++i) {
      add_object(batch_[i]);
      samples += batch_[i].samples.size();
    }
    const size_t samples_per_object = samples / std::max<size_t>(batch_objects_, 1) + 1;
    batch_objects_ = 0;
    batch_.resize(std::clamp<size_t>(kSamplesPerBatch / samples_per_object, size_t{2} * threads_,
                                     kMostObjectsPerBatch));
    return success();
  }

  void add_object(ScannedObject& scanned) {
    const std::string_view name = scanned.folder->full_name(*scanned.item, name_scratch_);
    if (scanned.content_error) return unreadable_.add(name, *std::move(scanned.content_error));
    set_or_mark_mixed(builder_.facts().format, formats_[scanned.item->kind].name);
    if (!scanned.codec.empty())
      set_or_mark_mixed(scanned.holds_statistics ? statistics_codec_ : builder_.facts().codec, scanned.codec);
    const uint32_t object = builder_.add_object(name, scanned.item->bytes);
    if (scanned.samples.empty() && report_.objects_without_samples++ == 0) first_without_samples_ = name;
    count_left_out(scanned.left_out_arrays, name, report_.left_out_arrays, first_array_);
    count_left_out(scanned.left_out_files, name, report_.left_out_members, first_member_);
    if (report_.array.empty()) report_.array = scanned.array;
    if (!scanned.array.empty() && scanned.array != report_.array) report_.array_names_differ = true;
    const Format::LeftOutParts& equal = scanned.equal_arrays;
    if (equal.count > 0 && report_.equal_arrays == 0)
      first_equal_ =
          fmt::format("{} next to {} in {}: to use it, add --set {}", quoted_name(equal.first_name),
                      quoted_name(equal.reason), quoted_name(name), shell_word("field=" + equal.first_name));
    report_.equal_arrays += equal.count;
    if (scanned.labels.too_many()) labels_.discard_all();
    label_numbers_.clear();
    for (const std::string& label : scanned.labels.names())
      label_numbers_.push_back(labels_.number_of(label));
    const std::string_view path = scanned.folder->path;
    // If there is no '/', this is the whole path: npos + 1 is 0.
    const std::string_view folder = path.substr(path.rfind('/') + 1);
    std::optional<uint32_t> folder_label;
    form_numbers_.clear();
    for (const SampleForm& form : scanned.forms) form_numbers_.push_back(builder_.add_form(*form));
    scanned.extents.resize(scanned.samples.size());
    for (size_t i = 0; i < scanned.samples.size(); ++i) {
      SampleEntry sample = scanned.samples[i];
      sample.object = object;
      if (sample.form != 0) sample.form = form_numbers_[sample.form - 1];
      if (sample.label != kNoLabel && sample.label < label_numbers_.size()) {
        sample.label = label_numbers_[sample.label];
      } else {
        if (!folder_label) folder_label = labels_.number_of(folder);
        sample.label = *folder_label;
        if (sample.label != kNoLabel && !scanned.holds_statistics) ++report_.folder_labelled_samples;
      }
      if (scanned.holds_statistics)
        statistics_.push_back({sample, scanned.extents[i]});
      else
        add_sample({sample, scanned.extents[i]});
    }
  }

  static void count_left_out(const Format::LeftOutParts& parts, std::string_view object, uint64_t& count,
                             std::string& first) {
    if (parts.count > 0 && count == 0)
      first = fmt::format("{} in {}{}{}", parts.first_name, quoted_name(object),
                          parts.reason.empty() ? "" : ", ", parts.reason);
    count += parts.count;
  }

  void add_sample(const Sample& sample) {
    builder_.add_sample(sample.entry, sample.extent);
    const uint32_t label = sample.entry.label;
    if (label == kNoLabel) return;
    if (label >= label_used_.size()) label_used_.resize(label + size_t{1});
    label_used_[label] = true;
  }

  // Gives each sample its final label number. Only possible when all labels are known.
  void assign_labels() {
    if (labels_.too_many()) {
      builder_.relabel({});
      report_.folder_labelled_samples = 0;
      add_part(report_, fmt::format("the labels, because the distinct ones exceed {} MiB",
                                    ScanLabels::kMostNameBytes >> 20U));
      return;
    }
    FinalLabels chosen_labels = final_labels(labels_.names(), label_used_);
    builder_.relabel(chosen_labels.numbers);
    builder_.facts().label_names = std::move(chosen_labels.names);
  }

  Backend& backend_;
  const std::vector<ScanFormat>& formats_;
  const unsigned threads_;
  UnreadableObjects& unreadable_;
  ScanReport& report_;
  ManifestBuilder builder_{{}};
  ScanLabels labels_;
  std::vector<Sample> statistics_;
  std::string statistics_codec_;
  std::vector<ScannedObject> batch_;
  size_t batch_objects_ = 0;
  std::string name_scratch_;
  // For each label of the object that is being added: its number among all labels.
  std::vector<uint32_t> label_numbers_;
  std::vector<uint32_t> form_numbers_;  // for each form of that object: its number among all forms
  std::vector<bool> label_used_;        // whether a sample has this label; one entry per label
  std::string first_array_;             // first array that belongs to no sample: "'val/x' in 'a.h5'"
  std::string first_equal_;  // first array that could have been taken: "'b' next to 'a' in 'x.h5': ..."
  std::string first_member_;
  std::string first_without_samples_;
};

// Copies the manifest without the given objects and their samples.
Result<Manifest> without_objects(const Manifest& manifest, const std::map<uint64_t, Error>& objects) {
  ManifestBuilder builder(manifest.facts());
  std::vector<uint32_t> new_index(size_t(manifest.objects()));
  std::string scratch;
  for (uint64_t i = 0; i < manifest.objects(); ++i) {
    if (objects.contains(i)) continue;
    new_index[i] = builder.add_object(manifest.object_name(i, scratch), manifest.object_bytes(i));
    builder.set_object_crc32c(new_index[i], manifest.object_crc32c(i).value_or(0));
  }
  for (uint64_t i = 0; i < manifest.forms(); ++i) builder.add_form(manifest.form(i));
  for (uint64_t i = 0; i < manifest.samples(); ++i) {
    SampleEntry entry = manifest.sample(i);
    if (objects.contains(entry.object)) continue;
    entry.object = new_index[entry.object];
    builder.add_sample(entry, manifest.extent(i));
  }
  PENSTOCK_ASSIGN(auto bytes, builder.finish());
  return Manifest::from_bytes(std::move(bytes));
}

// Copies the manifest and adds the checksum of every sample and object, which `threads` threads compute now.
// Objects that are unreadable or damaged (is_content_error()) are left out and added to `unreadable_objects`.
// If that is so for all objects, the first such error is returned. Any other error is returned at once.
Result<Manifest> with_checksums(Tier& tier, const Manifest& manifest, unsigned threads, bool progress,
                                UnreadableObjects& unreadable_objects) {
  const ObjectIndex index(manifest);
  ManifestFacts facts = manifest.facts();
  facts.checksums = true;
  facts.object_checksums = true;
  ManifestBuilder builder(std::move(facts));
  builder.resize_samples(manifest.samples());
  builder.copy_forms(manifest);
  std::string scratch;
  for (uint64_t i = 0; i < manifest.objects(); ++i)
    builder.add_object(manifest.object_name(i, scratch), manifest.object_bytes(i));

  // The threads set checksums of different samples and objects of `builder`. This is safe without a lock.
  // `mutex` protects only `errors`.
  std::vector<Buffer> buffers(threads);
  std::vector<std::string> names(threads);
  std::mutex mutex;
  std::map<uint64_t, Error> errors;  // index of the object -> why it cannot be read
  Progress progress_bar(progress, "checksums", manifest.objects(), "files");
  const auto read_object = [&](unsigned worker, uint64_t object) -> Result<void> {
    PENSTOCK_ASSIGN(const auto reader, tier.backend->open(manifest.object_name(object, names[worker])));
    const auto store_crc = [&](uint64_t sample, const Result<uint32_t>& crc) -> Result<void> {
      SampleEntry entry = manifest.sample(sample);
      PENSTOCK_ASSIGN(entry.crc32c, crc);
      builder.set_sample(sample, entry);
      return success();
    };
    PENSTOCK_ASSIGN(const uint32_t whole,
                    checksums_of(*reader, manifest, index, object, buffers[worker], store_crc));
    builder.set_object_crc32c(uint32_t(object), whole);
    return success();
  };
  const auto read_if_possible = [&](unsigned worker, uint64_t object) -> Result<void> {
    Result<void> done = read_object(worker, object);
    progress_bar.advance(1);
    if (done.ok() || !is_content_error(done.error())) return done;
    PENSTOCK_TRY(index.for_each_sample(object, [&](uint64_t sample) {
      builder.set_sample(sample, manifest.sample(sample));
      return success();
    }));
    std::lock_guard lock(mutex);
    errors.emplace(object, std::move(done).error());
    return success();
  };
  PENSTOCK_TRY(parallel_for(manifest.objects(), threads, 8, read_if_possible));
  if (!errors.empty() && errors.size() == manifest.objects()) return errors.begin()->second;
  PENSTOCK_ASSIGN(auto bytes, builder.finish());
  PENSTOCK_ASSIGN(Manifest all, Manifest::from_bytes(std::move(bytes)));
  if (errors.empty()) return all;
  for (auto& [object, error] : errors)
    unreadable_objects.add(manifest.object_name(object, scratch), std::move(error));
  return without_objects(all, errors);
}

// Whether a link to a folder leads to none of the folders that it is in, where entering it would never end.
// These include the folders above the root: the link would lead back to the root. Absent if the file system
// does not answer for one of these folders.
std::optional<bool> leads_elsewhere(Backend& backend, std::string_view link) {
  namespace fs = std::filesystem;
  const auto link_path = backend.native_path(link);
  const auto root_path = backend.native_path("");
  struct stat target {};
  if (!link_path || !root_path || ::stat(link_path->c_str(), &target) != 0) return std::nullopt;
  const auto is_target = [&](const fs::path& folder) -> std::optional<bool> {
    struct stat found {};
    if (::stat(folder.c_str(), &found) != 0) return std::nullopt;
    return found.st_dev == target.st_dev && found.st_ino == target.st_ino;
  };
  for (fs::path folder = fs::path(*link_path).parent_path();
       folder.native().size() > root_path->native().size(); folder = folder.parent_path())
    if (const auto answer = is_target(folder); answer != false)
      return answer ? std::optional(false) : std::nullopt;
  std::error_code failed;
  for (fs::path folder = fs::canonical(*root_path, failed); !failed; folder = folder.parent_path()) {
    if (const auto answer = is_target(folder); answer != false)
      return answer ? std::optional(false) : std::nullopt;
    if (folder == folder.root_path()) return true;
  }
  return std::nullopt;
}

}  // namespace

Result<ScanResult> scan_tier(Tier& tier, const CorpusRequest& request) {
  const unsigned threads = worker_threads(request.threads);
  PENSTOCK_ASSIGN(const auto formats, scan_formats(request));
  const auto classify = [&](const Entry& entry) {
    for (size_t i = 0; i < formats.size(); ++i)
      if (formats[i].format->claims(entry.name)) return uint16_t(i);
    return kNotWanted;
  };
  const auto enters_link = [&](const Entry& link) {
    return request.follow_links && leads_elsewhere(*tier.backend, link.name) == true;
  };
  PENSTOCK_ASSIGN(FolderWalk walk, walk_folders(tier.backend->names(), threads, classify, enters_link));
  const auto is_unknown = [&](const std::string& link) { return !leads_elsewhere(*tier.backend, link); };
  const bool all_known = std::none_of(walk.folder_links.begin(), walk.folder_links.end(), is_unknown);
  ScanReport report = report_left_out(walk, request.follow_links, all_known);
  const auto unentered =
      std::find_if(walk.folder_links.begin(), walk.folder_links.end(),
                   [&](const std::string& link) { return leads_elsewhere(*tier.backend, link) != false; });
  if (unentered != walk.folder_links.end()) {
    report.first_unentered_folder = quoted_name(*unentered);
    report.unentered_remedy =
        request.follow_links
            ? "it is unknown whether it leads to a parent folder: name its target folder instead"
            : "add --follow-links";
  }
  UnreadableObjects unreadable_objects(request);
  for (const std::string& name : walk.too_long_names)
    unreadable_objects.add(name, make_error(Errc::unsupported, check_object_name(name).error().what));
  if (walk.folders.empty() && unreadable_objects.first_error()) return *unreadable_objects.first_error();
  if (walk.folders.empty()) return explain_no_samples(tier, request, report);
  const auto has_arrays = [&](const FolderListing& folder) {
    return std::any_of(folder.items.begin(), folder.items.end(),
                       [&](const auto& item) { return formats[item.kind].takes_field; });
  };
  if (!request.field.empty() && std::none_of(walk.folders.begin(), walk.folders.end(), has_arrays))
    return make_error(Errc::invalid_argument,
                      "--set field={}: no object in '{}' has named arrays (npz and hdf5 have); leave it out",
                      shell_word(request.field), tier.root);
  PENSTOCK_ASSIGN(Manifest manifest,
                  SampleLister(tier, formats, threads, unreadable_objects, report).list(walk));
  if (request.add_checksums) {
    PENSTOCK_ASSIGN(manifest, with_checksums(tier, manifest, threads, request.progress, unreadable_objects));
  }
  report.unreadable_objects = unreadable_objects.count();
  if (unreadable_objects.count() > 0) add_part(report, report.unreadable_text = unreadable_objects.to_text());
  return ScanResult{std::move(manifest), std::move(report)};
}

}  // namespace penstock
