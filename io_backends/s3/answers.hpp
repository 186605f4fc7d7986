// What an object store answers in XML: listings, errors, upload ids. Made for hostile input: the parser takes
// any bytes, keeps to the length that it is given, and refuses what is not well formed with `corrupt`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock::s3 {

// Calls `visit` with the path ("ListBucketResult/Contents/Key") and the text of each element that ends, inner
// ones first. Skips a byte order mark, attributes, comments, processing instructions and a DOCTYPE without
// brackets. Outside of the one outermost element there may be white space alone.
Result<void> parse_xml(std::string_view xml,
                       const std::function<void(std::string_view path, const std::string& text)>& visit);

struct Listing {
  struct Object {
    std::string key;
    std::uint64_t bytes = 0;
  };
  std::vector<Object> objects;
  std::vector<std::string> prefixes;  // each ends in the delimiter
  std::string next;                   // token of the page that follows; "": this was the last
};
// Of ListObjectsV2.
Result<Listing> parse_listing(std::string_view xml);

struct Refusal {
  std::string code;     // "NoSuchKey"
  std::string message;  // the server's words
  std::string region;   // the one that the server would have
};
// Of an error's body; empty where it is none.
Refusal parse_refusal(std::string_view xml);

// Whether the whole answer is one element of this name, in whatever default namespace: stores differ in it.
bool is_result(std::string_view xml, std::string_view element);

// Of the header Content-Range ("bytes 0-99/1000", "bytes */1000"): the first byte that there is, and the
// object's size; each is empty where it is not said, and both where it is no such header.
struct ContentRange {
  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> whole;
};
ContentRange parse_content_range(std::string_view text);

// UploadId of CreateMultipartUpload.
Result<std::string> parse_upload_id(std::string_view xml);

}  // namespace penstock::s3
