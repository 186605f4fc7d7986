// CORPUS on the command line: a tier that holds data, and the manifest that says what is there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/base/tier.hpp"
#include "results/record.hpp"

namespace penstock {

struct Corpus {
  Tier tier;  // the corpus's own place
  Manifest manifest;
  std::string name;  // last part of the root's path, for tables
};

struct OpenCorpus {
  bool scan = false;          // --scan: build the manifest from what lies there; nothing is written
  std::string manifest_file;  // --manifest FILE: for read-only folders
  bool checksum = false;      // with scan: read every sample and keep its CRC32C
  unsigned threads = 0;       // for scanning; 0: as many as there are cpus
};

// not_found with the remedy ("no manifest in DIR: generate one, or add --scan") where there is none; a corpus
// without a single sample is an error that names the folder.
Result<Corpus> open_corpus(std::string_view corpus, const OpenCorpus& how);

CorpusFacts corpus_facts(const Corpus& corpus);

// --scan, --manifest: rows that read, train, describe and verify put into their own tables.
inline constexpr OptionSpec kScanOption{
    .name = "scan",
    .type = OptionType::flag,
    .help = "take any folder of samples that somebody else made; nothing is written",
    .group = "Corpus"};
inline constexpr OptionSpec kManifestOption{
    .name = "manifest",
    .value = "FILE",
    .help = "the corpus's manifest, where it does not lie in the folder itself",
    .group = "Corpus"};

}  // namespace penstock
