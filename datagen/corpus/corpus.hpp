// Opens the CORPUS of a command line: a tier with data, and the manifest that lists its samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/histogram.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// What a scan found besides samples, as counts and as a text ("left out: 12 .gif, 1 .db; ...", or empty).
struct ScanReport {
  uint64_t unwanted_objects = 0;  // objects whose extension is not that of a sample
  uint64_t hidden_entries = 0;    // objects and folders whose name starts with a dot
  uint64_t empty_folders = 0;     // folders that contain nothing
  uint64_t linked_objects = 0;    // objects with samples that are links to files
  uint64_t linked_folders = 0;    // links to folders that were not entered
  // The first of these links that leads to a folder outside those above it, so that the scan lacks what is
  // there. "": none.
  std::string first_unentered_folder{};
  std::string unentered_remedy{};  // what the user can do to have it entered
  uint64_t dangling_links = 0;     // links to objects that do not exist
  uint64_t special_files = 0;      // pipes, sockets and devices
  // The array that the samples of the first object with arrays are taken from; "": objects have none, or each
  // array is a sample.
  std::string array{};
  bool array_names_differ = false;  // whether other objects take samples from arrays of other names
  uint64_t left_out_arrays = 0;     // arrays that belong to no sample, in objects with samples
  uint64_t equal_arrays = 0;        // arrays as large as those that samples are taken from
  uint64_t left_out_members = 0;    // files that belong to no sample, in archives with samples
  // Objects that cannot be read, or whose content does not match their name.
  uint64_t unreadable_objects = 0;
  std::string unreadable_text;           // describes them: "1 that cannot be read ('a.tar'; ...)"
  uint64_t objects_without_samples = 0;  // intact objects without samples; they are in the manifest
  uint64_t folder_labelled_samples = 0;  // samples whose label is the name of their folder
  std::string text;
};

struct Corpus {
  Tier tier;  // the tier that contains the corpus
  Manifest manifest;
  std::string name;                // last part of the root's path, for tables
  std::optional<ScanReport> scan;  // what the scan found, if CorpusRequest::scan was set
  // The size of the manifest if it is mapped from the corpus's own tier, else 0. Commands add it to the bytes
  // read from that tier, because the back end's counters do not include them.
  uint64_t mapped_bytes = 0;
  std::string arguments{};  // by which another command opens the same corpus, quoted for a shell
};

struct CorpusRequest {
  bool scan = false;  // --scan: make the manifest from the objects that are found; writes nothing
  // --manifest FILE: a manifest in another place, for example because the folder is read-only.
  std::string manifest_file{};
  bool add_checksums = false;   // with scan: read every sample and store its CRC32C
  unsigned threads = 0;         // threads for scanning; 0: as many as there are CPUs
  std::string types{};          // with scan: extensions of samples (kTypesOption); "": the default
  std::string field{};          // with scan: name of the array that has the samples; "": the largest
  bool follow_links = false;    // with scan: enter folders that links lead to (kFollowLinksOption)
  bool progress = false;        // with scan and add_checksums: show progress
  bool has_scan_option = true;  // whether the command has --scan, so that messages may recommend it
  NamedTiers named_tiers = {};  // tiers that site files name; the text of the corpus may use these names
  std::function<void(std::string_view)> log{};  // with scan: gets notes for the user, one sentence each
  // With scan: gets each object that is left out because it cannot be read, and why. Called by one thread.
  std::function<void(std::string_view object, const Error& why)> on_unreadable_object{};
};

// Advice for the user if the tier contains an unfinished data set or copy: how to finish it. "" if it
// contains neither.
std::string finish_advice(Tier& tier);

// Makes a request from the options --scan, --manifest, --types, --follow-links and --set field=NAME of a
// command.
CorpusRequest corpus_request(const Options& options);

// Opens a corpus and checks the whole manifest (Manifest::check). If there is no manifest, it fails with
// `not_found`, and the message says what to do: "no manifest in DIR: generate one, or add --scan". If the
// corpus has no sample, it fails and names the folder.
//
// With CorpusRequest::scan, the manifest is made from the objects that are found:
// - Which objects: every object with the extension of a sample, in byte order of folder and then name. Hidden
//   names are skipped. Links to objects are followed, links to folders only with follow_links. An empty file
//   is a sample without bytes.
// - Labels: the label of a sample is the one that its object contains, else the name of its folder. Samples
//   without either, in objects at the root, have no label. final_labels() in scan_labels.hpp numbers them.
// - Errors: unreadable or damaged objects are left out if any object remains. Otherwise the first such error
//   is returned. An I/O error, a timeout or a busy tier is never ignored: it makes the scan fail.
//   CorpusRequest::log gets a sentence about what was left out.
Result<Corpus> open_corpus(std::string_view corpus, const CorpusRequest& request);

// What a result record stores about the corpus.
Json corpus_json(const Manifest& manifest);

// The sum of the sizes of all samples, after their forms are undone; and that of all objects.
uint64_t bytes_of_samples(const Manifest& manifest);
uint64_t bytes_of_objects(const Manifest& manifest);

// Writes into the result record which corpus was measured. If it was scanned, also how many of its objects
// could not be read.
void record_corpus(const Corpus& corpus, Trial& trial);

// The distribution of sample sizes in bytes. All commands take their percentiles from it, so that they show
// the same values.
Histogram sample_sizes(const Manifest& manifest);

// The options --scan, --manifest, --types and --follow-links, as rows for the option tables of commands that
// open a corpus.
inline constexpr OptionSpec kScanOption{.name = "scan",
                                        .role = OptionRole::target,
                                        .type = OptionType::flag,
                                        .help = "use any folder of files as the data set, read-only",
                                        .group = "Corpus"};
inline constexpr OptionSpec kManifestOption{.name = "manifest",
                                            .role = OptionRole::target,
                                            .value = "FILE",
                                            .help = "the corpus's manifest, if it is outside the folder",
                                            .group = "Corpus"};
inline constexpr OptionSpec kTypesOption{
    .name = "types",
    .role = OptionRole::target,
    .value = "EXT,...|any",
    .help =
        "with --scan: extensions of files that are one sample each, in any case (default: "
        "jpg,jpeg,jpe,jfif,png); any: every file. Supported archives and containers are always included",
    .group = "Corpus"};

inline constexpr OptionSpec kFollowLinksOption{
    .name = "follow-links",
    .role = OptionRole::target,
    .type = OptionType::flag,
    .help = "with --scan: follow links to folders, as ImageFolder does, except links to a parent folder",
    .group = "Corpus"};

inline constexpr OptionSpec kFieldOption{
    .name = "set",
    .role = OptionRole::target,
    .value = "field=NAME",
    .help = "with --scan: the array of HDF5 and npz objects that holds the samples (default: the largest)",
    .group = "Corpus",
    .repeated = true};

// Fails with `invalid_argument` if --set has several field=NAME, or one without a name; also if it has
// anything else, unless `allows_others`.
Result<void> check_field_option(const Options& options, bool allows_others = false);

}  // namespace penstock
