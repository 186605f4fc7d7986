// Measures the content of samples: how hard they are to decode, how well they compress, and how many blocks
// storage could save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "datagen/codec/picture_warnings.hpp"
#include "datagen/content/block_census.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"

namespace penstock {

// About how many bytes of objects are inspected by default.
inline constexpr uint64_t kContentBytes = uint64_t{256} << 20U;
inline constexpr uint64_t kMostPictureBytes = uint64_t{64} << 20U;
// Samples that are larger are not inflated or taken from their chunks: they count as unreadable.
inline constexpr uint64_t kMostUnpackedBytes = uint64_t{1} << 30U;
inline constexpr unsigned kDecodeRepeats = 3;  // number of times each picture is decoded

struct ContentRequest {
  uint64_t samples = 0;  // how many samples to inspect; 0: about kContentBytes bytes, but at least one
  uint64_t seed = 0;     // the samples are selected at random by this seed
  bool progress = false;
};

// Facts about JPEG and PNG pictures. The three last members are medians over all pictures. The time of a
// picture is the median of kDecodeRepeats decodings, in processor time of one thread. The decoder reuses
// memory, so the times contain no allocation.
struct PictureFacts {
  uint64_t jpeg_count = 0;
  uint64_t png_count = 0;
  uint64_t with_restarts = 0;  // JPEG pictures with restart intervals
  // Number of samples that could not be decoded or are larger than kMostPictureBytes, although their codec,
  // name or first bytes say that they are pictures.
  uint64_t failed_count = 0;
  std::string first_failure{};      // object, offset and cause of the first failure
  PictureWarningCounts warnings{};  // of the pictures that were decoded
  double bytes_per_pixel = 0;
  double ns_per_pixel = 0;
  double ns_per_byte = 0;
};

// Compression ratios of zstd: uncompressed bytes divided by compressed bytes.
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
  uint64_t bytes = 0;                        // bytes of the inspected samples, inflated
  PictureFacts pictures{};                   // all counts are 0 if samples are no pictures
  Result<Compression> zstd = Compression{};  // if it was not measured, an error that says why
  BlockCounts blocks{};                      // 4 KiB blocks of objects, including the bytes around samples
};

// Whether a sample is expected to be a JPEG or PNG picture. `codec` is the corpus's codec without wrapping:
// with "jpeg" or "png" every sample is a picture, with "raw" none is. With other codecs it depends on the
// name of the object, whose codec is `object_codec`, and on the sample's first bytes.
bool is_picture(std::string_view codec, std::string_view object_codec, std::span<const std::byte> beginning);

// Measures some samples of the corpus. Divides the corpus into equal parts and selects one sample of each at
// random. Reads each selected sample once, in the order of objects and offsets.
// Counts the blocks of all bytes that it reads. These include the gap between a selected sample and the next
// sample of the object, and the bytes before the first sample of an object.
// Memory: 1 MiB for reading, one picture and its pixels, one compressed sample and its bytes, 50 MiB for
// BlockCensus, two zstd streams, and 32 bytes per inspected sample. Errors: that of the back end if no sample
// can be read, `exhausted`, or `interrupted` when the user stops the program.
Result<Content> measure_content(Backend& backend, const Manifest& manifest, const ContentRequest& request);

Json content_json(const Content& content);
// The content as a table for the terminal, with a final newline.
std::string content_text(const Content& content, uint64_t total_samples, const Output& output);

}  // namespace penstock
