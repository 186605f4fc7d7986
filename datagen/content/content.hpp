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
inline constexpr std::uint64_t kContentBytes = std::uint64_t{256} << 20U;
inline constexpr std::uint64_t kLargestPicture = std::uint64_t{64} << 20U;
inline constexpr unsigned kDecodeRepeats = 3;  // number of times each picture is decoded

struct ContentRequest {
  std::uint64_t samples = 0;  // 0: samples for kContentBytes, at least one
  std::uint64_t seed = 0;     // selects the samples
  bool progress = false;
};

// Facts about JPEG and PNG pictures: medians over pictures. The time of one picture is the processor time of
// one thread: the median of kDecodeRepeats decodings into memory that was used before.
struct PictureFacts {
  std::uint64_t jpeg = 0;
  std::uint64_t png = 0;
  std::uint64_t with_restarts = 0;  // JPEG with restart intervals
  // Pictures by codec, name or first bytes that did not decode, or are larger than kLargestPicture.
  std::uint64_t failed = 0;
  std::string failure{};  // first failure: object, offset and cause
  double bytes_per_pixel = 0;
  double ns_per_pixel = 0;
  double ns_per_byte = 0;
};

// Compressed size of one byte, by zstd.
struct Compression {
  double each_sample = 1;  // each sample compressed on its own, as in storage of single files
  double one_stream = 1;   // all samples compressed as one stream, as in an archive
};

struct Content {
  std::uint64_t seed = 0;                    // as requested
  std::uint64_t samples = 0;                 // inspected
  std::uint64_t empty = 0;                   // selected, but without bytes
  std::uint64_t unreadable = 0;              // selected, but unreadable
  std::string failure{};                     // first read failure
  std::uint64_t bytes = 0;                   // of the inspected samples
  PictureFacts pictures{};                   // jpeg + png + failed == 0 if samples are no pictures
  Result<Compression> zstd = Compression{};  // or the reason why it was not measured
  BlockCounts blocks{};                      // 4 KiB blocks of objects, including the bytes around samples
};

// Selects samples evenly over the corpus and reads each once, in the order of their position in objects. For
// each sample, it inspects the blocks from its beginning to the beginning of the next sample. The first
// sample of an object includes the bytes before it. Memory: a piece of 1 MiB, one picture and its pixels, 50
// MiB for BlockCensus, two zstd streams, and 32 bytes per inspected sample. Errors: the back end's if no
// sample can be read, `exhausted`, or Errc::interrupted when the user stops the program.
Result<Content> measure_content(Backend& backend, const Manifest& manifest, const ContentRequest& request);

Json content_json(const Content& content);
// Lines for people, with a final newline.
std::string content_text(const Content& content, std::uint64_t samples_in_all, const Output& output);

}  // namespace penstock
