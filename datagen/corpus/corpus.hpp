// CORPUS on the command line: a tier that holds data, and the manifest that says what is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/histogram.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// What a scan found besides samples; `text` describes it ("left out: 12 .gif, 1 .db; ..."), or is empty.
struct ScanReport {
  std::uint64_t left_out = 0;         // objects whose extension is not wanted
  std::uint64_t hidden = 0;           // objects and folders whose name starts with a dot
  std::uint64_t linked_folders = 0;   // links to folders, which are not entered
  std::uint64_t dangling = 0;         // links to objects that are not there
  std::uint64_t special = 0;          // pipes, sockets and devices
  std::uint64_t arrays = 0;           // of objects with samples, that are no part of any sample
  std::uint64_t members = 0;          // files of archives with samples, likewise
  std::uint64_t unreadable = 0;       // objects that could not be read, or are not what their names say, and
  std::string lacks;                  // what they were: "1 that cannot be read ('a.tar'; ...)"
  std::uint64_t without_samples = 0;  // objects that are whole, and in the manifest, and hold none
  std::uint64_t folder_labels = 0;    // samples whose label is the name of their folder
  std::string text;
};

struct Corpus {
  Tier tier;  // the corpus's own place
  Manifest manifest;
  std::string name;                // last part of the root's path, for tables
  std::optional<ScanReport> scan;  // there with OpenCorpus::scan
  std::uint64_t mapped_bytes =
      0;  // of the manifest, where it is mapped from that place: no back end counts it
};

struct OpenCorpus {
  bool scan = false;            // --scan: build the manifest from what lies there; nothing is written
  std::string manifest_file{};  // --manifest FILE: for read-only folders
  bool checksum = false;        // with scan: read every sample and keep its CRC32C
  unsigned threads = 0;         // for scanning; 0: as many as there are cpus
  std::string types{};          // with scan: extensions of samples (kTypesOption); "": the default
  bool progress = false;        // with scan and checksum: show it
  bool scans = true;            // whether the command has --scan, for advice
  NamedTiers named_tiers = {};  // what the text of the corpus may name
};

// The manifest is checked whole (Manifest::check). not_found with the remedy ("no manifest in DIR: generate
// one, or add --scan") where there is none; a corpus without a single sample is an error that names the
// folder.
//
// A scan takes every object whose extension is a sample's, in byte order of folder and then name, and the
// parent folder's name for its label (labels in byte order of these names; objects at the root have none).
// Hidden names are skipped; links to objects are followed, links to folders are not. What cannot be read
// or is damaged is left out, as long as something remains: else the first such error comes back. An empty
// file is a sample of no bytes. What was left out is said by note().
Result<Corpus> open_corpus(std::string_view corpus, const OpenCorpus& how);

// As records have it.
Json corpus_json(const Manifest& manifest);

// What it was measured on, and that it went on without objects that could not be scanned.
void record_corpus(const Corpus& corpus, Trial& trial);

// Bytes of the samples: what every command takes their percentiles from, so that all say the same.
Histogram sample_sizes(const Manifest& manifest);

// --scan, --manifest, --types: rows that read, train, describe and verify put into their own tables.
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
