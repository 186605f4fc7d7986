// Parses the XML answers of an object store: listings, errors, upload ids. The input may be hostile. pugixml
// parses it, which keeps the whole answer in memory. The result is `corrupt` for what it cannot parse.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock::s3 {

// Calls `visit` with the path ("ListBucketResult/Contents/Key") and the text of each element. The call is
// made at the end of the element, so inner elements come before the outer one. Skips a byte order mark,
// attributes, comments, processing instructions and a DOCTYPE. There must be one outermost element, and
// outside it only white space. Elements may be nested 16 deep.
Result<void> parse_xml(std::string_view xml,
                       const std::function<void(std::string_view path, const std::string& text)>& visit);

struct Listing {
  struct Object {
    std::string key;
    uint64_t bytes = 0;
  };
  std::vector<Object> objects;
  std::vector<std::string> prefixes;  // folders; each ends in the delimiter '/'
  std::string next_token;             // token that requests the next page; "": this is the last page
};
// Parses the answer to ListObjectsV2.
Result<Listing> parse_listing(std::string_view xml);

struct Refusal {
  std::string code;     // the kind of error: "NoSuchKey"
  std::string message;  // the server's message for people
  std::string region;   // the region that the server expects
};
// Parses the body of an error. If the body is no S3 error, it returns an empty Refusal.
Refusal parse_refusal(std::string_view xml);

// Whether the whole answer is one XML element with this name. Its XML namespace is ignored, because object
// stores use different ones.
bool is_result(std::string_view xml, std::string_view element);

// Parses the header Content-Range ("bytes 0-99/1000", "bytes */1000"). `first` is the first byte of the
// range, `object_bytes` the size of the object. Each has no value if the header lacks it; both have none if
// the text is no such header.
struct ContentRange {
  std::optional<uint64_t> first;
  std::optional<uint64_t> object_bytes;
};
ContentRange parse_content_range(std::string_view text);

// Returns the UploadId in the answer to CreateMultipartUpload.
Result<std::string> parse_upload_id(std::string_view xml);

}  // namespace penstock::s3
