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

// What a scan found besides samples. `text` describes it ("left out: 12 .gif, 1 .db; ..."), or is empty.
struct ScanReport {
  uint64_t unwanted_objects = 0;  // objects with an extension that is not wanted
  uint64_t hidden_entries = 0;    // objects and folders whose name starts with a dot
  uint64_t linked_folders = 0;    // links to folders, which are not entered
  uint64_t dangling_links = 0;    // links to objects that do not exist
  uint64_t special_files = 0;     // pipes, sockets and devices
  uint64_t left_out_arrays = 0;   // arrays that belong to no sample, in objects with samples
  uint64_t left_out_members = 0;  // files that belong to no sample, in archives with samples
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
  // Bytes of the manifest, if it is mapped from the corpus's own tier. No back end counts these reads.
  uint64_t mapped_bytes = 0;
};

struct CorpusRequest {
  bool scan = false;            // --scan: make the manifest from the objects found; nothing is written
  std::string manifest_file{};  // --manifest FILE: for read-only folders
  bool add_checksums = false;   // with scan: read every sample and store its CRC32C
  unsigned threads = 0;         // for scanning; 0: the number of CPUs
  std::string types{};          // with scan: extensions of samples (kTypesOption); "": the default
  bool progress = false;        // with scan and add_checksums: show progress
  bool has_scan_option = true;  // whether the command has --scan, so that messages may advise it
  NamedTiers named_tiers = {};  // tiers of the site files, which the text of the corpus may name
  std::function<void(std::string_view)> log{};  // with scan: gets notes for the user, one sentence each
};

// Opens a corpus and checks the whole manifest (Manifest::check). `not_found`, with the remedy ("no manifest
// in DIR: generate one, or add --scan"), if there is none. An error that names the folder if there is no
// sample.
//
// A scan takes every object with the extension of a sample, in byte order of folder and then name. The label
// is the name of the parent folder; objects at the root have none. Labels are numbered in byte order of these
// names. Hidden names are skipped. Links to objects are followed, links to folders are not. An empty file is
// a sample without bytes. Unreadable or damaged objects are left out if any sample remains. Otherwise the
// first such error is returned. CorpusRequest::log gets a sentence about the objects that were left out.
Result<Corpus> open_corpus(std::string_view corpus, const CorpusRequest& request);

// The facts about the corpus that a result record stores.
Json corpus_json(const Manifest& manifest);

// Writes into the result record which corpus was measured, and how many of its objects could not be read by
// the scan.
void record_corpus(const Corpus& corpus, Trial& trial);

// Sizes of the samples in bytes. All commands compute their percentiles from it, so that they agree.
Histogram sample_sizes(const Manifest& manifest);

// --scan, --manifest, --types: rows for the option tables of read, train, describe and verify.
inline constexpr OptionSpec kScanOption{
    .name = "scan",
    .role = OptionRole::target,
    .type = OptionType::flag,
    .help = "take any folder of samples that somebody else made; nothing is written",
    .group = "Corpus"};
inline constexpr OptionSpec kManifestOption{
    .name = "manifest",
    .role = OptionRole::target,
    .value = "FILE",
    .help = "the corpus's manifest, where it is not in the folder itself",
    .group = "Corpus"};
inline constexpr OptionSpec kTypesOption{
    .name = "types",
    .role = OptionRole::target,
    .value = "EXT,...|any",
    .help =
        "with --scan: extensions of samples, in any case (jpg,jpeg,jpe,jfif,png if not given); any: every "
        "file",
    .group = "Corpus"};

}  // namespace penstock
