// Where an object store is and who asks: the URL of a tier, credentials, region. From the places where other
// programs look, too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "io_backends/s3/sigv4.hpp"

namespace penstock::s3 {

struct Endpoint {
  std::string server;  // "http://host:port"
  std::string host;    // as the header Host has it: without the scheme's own port
  std::string bucket;
  std::string prefix;  // "" or ends in '/': stands before every key
  bool tls = false;
};
// "http://host[:port]/bucket[/prefix]", or https; invalid_argument otherwise.
Result<Endpoint> parse_endpoint(std::string_view url);

// The section `name` of an AWS file: "key = value" lines; what is no such line is skipped.
Pairs ini_section(std::string_view text, std::string_view name);

// How the environment is asked; tests have their own.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; else the profile AWS_PROFILE ("default") of
// AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Nothing anywhere: anonymous. A key without its secret and
// a profile that was asked for and is not there are invalid_argument.
Result<Credentials> find_credentials(const Environment& environment);

// `wanted`, AWS_REGION, AWS_DEFAULT_REGION, the profile's in AWS_CONFIG_FILE (~/.aws/config), "us-east-1".
std::string find_region(const std::string& wanted, const Environment& environment);

}  // namespace penstock::s3
