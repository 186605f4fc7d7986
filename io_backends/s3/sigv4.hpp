// AWS Signature Version 4
// (docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html), with S3's own rule:
// paths are encoded once and not normalised.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/s3/sha256.hpp"

namespace penstock::s3 {

struct Credentials {   // never printed, never in a record
  std::string key_id;  // "": requests go unsigned
  std::string secret;
  std::string session_token;  // "" where there is none
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Percent-encodes all but letters, digits and "-._~", and '/' where `keep_slashes`.
std::string uri_encode(std::string_view text, bool keep_slashes);
// "%41" to "A"; a '%' that no two hexadecimal digits follow stands for itself. With `plus`, '+' is a space.
std::string uri_decode(std::string_view text, bool plus);

// "a=1&b=": encoded and sorted, as it is signed and as it is to be sent.
std::string query_string(Pairs query);

// What of a request is signed.
struct ToSign {
  std::string method;
  std::string path;          // encoded, begins with '/'
  std::string query;         // from query_string()
  Pairs headers;             // names in lower case, in any order; "host" is among them
  std::string payload_hash;  // hexadecimal SHA-256 of the body, or kUnsignedPayload
};
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

// "20130524T000000Z"
std::string amz_date(std::time_t when);

// The value of the header Authorization. `date` is amz_date()'s, which the header x-amz-date has, too.
std::string authorization(const ToSign& request, const Credentials& who, std::string_view region,
                          std::string_view service, std::string_view date);

}  // namespace penstock::s3
