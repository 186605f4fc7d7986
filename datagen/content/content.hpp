// What samples are like inside: how hard they are to decode, how far they compress, and which of their blocks
// storage could spare itself.
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

inline constexpr std::uint64_t kContentBytes = std::uint64_t{256} << 20U;  // of objects, looked at by default
inline constexpr std::uint64_t kLargestPicture = std::uint64_t{64} << 20U;
inline constexpr unsigned kDecodes = 3;  // of each picture

struct ContentRequest {
  std::uint64_t samples = 0;  // 0: as many as are in kContentBytes, at least one
  std::uint64_t seed = 0;     // which ones
  bool progress = false;
};

// JPEG and PNG. Medians over pictures; a picture's time is the processor time of one thread, the median of
// kDecodes decodings into memory that was used before.
struct PictureFacts {
  std::uint64_t jpeg = 0;
  std::uint64_t png = 0;
  std::uint64_t with_restarts = 0;  // JPEG with restart intervals
  // Meant to be pictures by codec, name or first bytes, but did not decode, or are larger than
  // kLargestPicture.
  std::uint64_t failed = 0;
  std::string failure{};  // of the first of them: object, offset and what is wrong
  double bytes_per_pixel = 0;
  double ns_per_pixel = 0;
  double ns_per_byte = 0;
};

// How many bytes zstd makes one of.
struct Compression {
  double alone = 1;    // each sample by itself: what storage of files finds
  double in_line = 1;  // samples one behind another as one stream: what an archive of many finds
};

struct Content {
  std::uint64_t seed = 0;                    // as requested
  std::uint64_t samples = 0;                 // looked at
  std::uint64_t empty = 0;                   // drawn, but of no bytes
  std::uint64_t unreadable = 0;              // drawn, but could not be read
  std::string failure{};                     // of the first of them
  std::uint64_t bytes = 0;                   // in them
  PictureFacts pictures{};                   // jpeg + png + failed == 0 where samples are no pictures
  Result<Compression> zstd = Compression{};  // or why it was not measured
  BlockCounts blocks{};  // 4 KiB of objects, where they are in them: what is around samples, too
};

// Draws samples evenly over the corpus and reads them once, in the order in which they are in objects. Each
// sample brings the blocks from its beginning to the next one's, the first one of an object also what lies
// before it. Memory: a piece of 1 MiB, one picture and its pixels, BlockCensus's 50 MiB,
// what two zstd streams need, and 32 bytes a sample looked at.
// Errors are the back end's where no sample can be read, `exhausted`, or Errc::interrupted when the user
// stops us.
Result<Content> measure_content(Backend& backend, const Manifest& manifest, const ContentRequest& request);

Json content_json(const Content& content);
// Lines for people, the last one ended.
std::string content_text(const Content& content, std::uint64_t samples_in_all, const Output& output);

}  // namespace penstock
