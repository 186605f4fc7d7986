// Scans TFRecord objects in which each record is compressed as a gzip member of its own. A gzip file may
// consist of many members (RFC 1952), so TensorFlow can still inflate the object as one stream. And each
// sample has an offset and a length in the object: those of its member.
#pragma once

#include <string_view>

#include "datagen/format/format.hpp"
#include "datagen/format/object_window.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The extension of objects whose records are gzip members. The codec of their samples ends in it too:
// "jpeg.tfrecord.gz".
inline constexpr std::string_view kTfRecordGzip = ".tfrecord.gz";

// Calls `visit_sample` for every member of the object that is not empty. Inflates all bytes, because only
// this shows where a member ends, and checks gzip's checksums. Uses about 200 KiB of memory, without the
// window `object`. `unsupported` if a member contains more than one record or the build lacks zlib. `corrupt`
// or `truncated` if the object is damaged.
Result<void> scan_tfrecord_gzip(ObjectWindow& object, const Format::Visit& visit_sample);

}  // namespace penstock
