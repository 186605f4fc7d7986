// Measures the content of samples: how hard they are to decode, how well they compress, and how many blocks
// storage could save.
#pragma once

#include <cstdint>
#include <string>

#include "datagen/content/block_census.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Bytes of objects that are inspected by default.
inline constexpr uint64_t kContentBytes = uint64_t{256} << 20U;
inline constexpr uint64_t kMostPictureBytes = uint64_t{64} << 20U;
inline constexpr unsigned kDecodeRepeats = 3;  // number of times each picture is decoded

struct ContentRequest {
  uint64_t samples = 0;  // 0: samples with about kContentBytes bytes, at least one
  uint64_t seed = 0;     // selects the samples
  bool progress = false;
};

// Facts about JPEG and PNG pictures. The three last members are medians over all pictures. The time of one
// picture is the processor time of one thread: the median of kDecodeRepeats decodings into memory that was
// used before.
struct PictureFacts {
  uint64_t jpeg_count = 0;
  uint64_t png_count = 0;
  uint64_t with_restarts = 0;  // JPEG pictures with restart intervals
  // Samples that are pictures by their codec, name or first bytes, but did not decode or are larger than
  // kMostPictureBytes.
  uint64_t failed_count = 0;
  std::string first_failure{};  // object, offset and cause of the first failure
  double bytes_per_pixel = 0;
  double ns_per_pixel = 0;
  double ns_per_byte = 0;
};

// Uncompressed bytes divided by bytes compressed with zstd.
struct Compression {
  double each_sample = 1;  // each sample compressed on its own, as in storage of single files
  double one_stream = 1;   // all samples compressed as one stream, as in an archive
};

struct Content {
  uint64_t seed = 0;                         // seed of the request
  uint64_t samples = 0;                      // number of inspected samples that have bytes
  uint64_t empty_samples = 0;                // number of selected samples without bytes
  uint64_t unreadable_samples = 0;           // number of selected samples that could not be read
  std::string first_failure{};               // message of the first read that failed
  uint64_t bytes = 0;                        // bytes of the inspected samples
  PictureFacts pictures{};                   // all counts are 0 if samples are no pictures
  Result<Compression> zstd = Compression{};  // or an error that says why it was not measured
  BlockCounts blocks{};                      // 4 KiB blocks of objects, including the bytes around samples
};

// Selects samples evenly over the corpus and reads each once, in the order of their position in objects. For
// each sample, it inspects the blocks from its beginning to the beginning of the next sample. The first
// sample of an object includes the bytes before it. Memory: a piece of 1 MiB, one picture and its pixels, 50
// MiB for BlockCensus, two zstd streams, and 32 bytes per inspected sample. Errors: the back end's if no
// sample can be read, `exhausted`, or Errc::interrupted when the user stops the program.
Result<Content> measure_content(Backend& backend, const Manifest& manifest, const ContentRequest& request);

Json content_json(const Content& content);
// The content as a table for the terminal, with a final newline.
std::string content_text(const Content& content, uint64_t total_samples, const Output& output);

}  // namespace penstock
