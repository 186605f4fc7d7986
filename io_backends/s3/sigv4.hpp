// Signs requests with AWS Signature Version 4
// (docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html). As S3 requires, paths
// are encoded once and not normalised.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/s3/sha256.hpp"

namespace penstock::s3 {

struct Credentials {   // never printed, and never written to a record
  std::string key_id;  // AWS_ACCESS_KEY_ID; "": requests are not signed
  std::string secret;
  std::string session_token;  // AWS_SESSION_TOKEN; "": none
  // Without a key: what the AWS files and the environment have in its place, and what to do, for a message.
  // "": nothing was found.
  std::string why_none{};
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Percent-encodes each byte except letters, digits and "-._~". With `keep_slashes` it also keeps '/'.
std::string uri_encode(std::string_view text, bool keep_slashes);
// Decodes "%41" to "A". Keeps a '%' that is not followed by two hexadecimal digits. With `plus_is_space`, '+'
// becomes a space.
std::string uri_decode(std::string_view text, bool plus_is_space);

// Returns the query as text ("a=1&b="): encoded and sorted, as it is signed and sent.
std::string query_string(Pairs query);

// The parts of a request that the signature covers.
struct SignedRequest {
  std::string method;
  std::string path;          // percent-encoded; begins with '/'
  std::string query;         // as query_string() returns it
  Pairs headers;             // names in lower case, in any order; must contain "host"
  std::string payload_hash;  // hexadecimal SHA-256 of the body, or kUnsignedPayload
};
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

// Formats a time as "20130524T000000Z".
std::string amz_date(std::time_t when);

// Returns the value of the header Authorization. `date` comes from amz_date() and is also the value of the
// header x-amz-date.
std::string authorization(const SignedRequest& request, const Credentials& credentials,
                          std::string_view region, std::string_view service, std::string_view date);

}  // namespace penstock::s3
