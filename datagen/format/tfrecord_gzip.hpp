// Scans TFRecord objects that are compressed. Penstock compresses each record as a gzip member of its own: a
// gzip file may consist of many members (RFC 1952), so TensorFlow can still inflate the object as one stream,
// and each sample has an offset and a length in the object, those of its member. TensorFlow compresses all
// records of an object as one stream of gzip or zlib. Its samples have a form (CompressedStream).
#pragma once

#include <string_view>

#include "datagen/codec/gzip.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/object_window.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The extension of objects whose records are gzip members. The codec of their samples ends in it too:
// "jpeg.tfrecord.gz".
inline constexpr std::string_view kTfRecordGzip = ".tfrecord.gz";

// Calls `visit_sample` for every record of the object, which is compressed in `format`. Inflates all bytes
// and checks the checksums of gzip or zlib. Uses about 250 KiB of memory without the window `object`, and 32
// KiB for every 2 MiB of inflated bytes that are no members of their own. `unsupported` if the build lacks
// zlib. `corrupt` or `truncated` if the object is damaged.
Result<void> scan_tfrecord_stream(ObjectWindow& object, DeflateFormat format,
                                  const Format::Visit& visit_sample);

}  // namespace penstock
