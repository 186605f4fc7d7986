// TFRecord compressed with gzip so that each record is a member of its own (RFC 1952 lets members stand one
// behind another, and TensorFlow reads them as one stream): a sample has a place, which is its member.
#pragma once

#include <string_view>

#include "datagen/format/format.hpp"
#include "datagen/format/object_window.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// How objects of such records end, and the codec of their samples: "jpeg.tfrecord.gz".
inline constexpr std::string_view kTfRecordGzip = ".tfrecord.gz";

// Calls `found` with every member of the object, in 200 KiB of memory: everything is inflated, since only
// deflate knows where a member ends, and held against gzip's own checksums. `unsupported` where a member
// holds more than one record, or the build lacks zlib; `corrupt` or `truncated` where something is damaged.
Result<void> scan_tfrecord_gzip(ObjectWindow& object, const Format::Visit& found);

}  // namespace penstock
