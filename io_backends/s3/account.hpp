// Finds the object store and the user's credentials: parses the URL of a tier, and reads credentials and
// region from the environment and the AWS files that other programs use.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "io_backends/s3/sigv4.hpp"

namespace penstock::s3 {

struct Endpoint {
  std::string server;  // scheme and address: "http://host:port"
  std::string host;    // value of the header Host: it omits the port if that is the scheme's default
  std::string bucket;
  std::string prefix;  // first part of every key; "" or ends in '/'
  bool tls = false;
};
// Parses "http://host[:port]/bucket[/prefix]", or the same with https. Fails with invalid_argument for any
// other text.
Result<Endpoint> parse_endpoint(std::string_view url);

// A function that returns the value of an environment variable, or no value if it is not set. Tests pass a
// function of their own.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

// Returns the user's credentials, from the first of these that has some, in the order of botocore:
// - AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN;
// - the keys of the profile AWS_PROFILE (or AWS_DEFAULT_PROFILE, or "default") in the file that
//   AWS_SHARED_CREDENTIALS_FILE names (or ~/.aws/credentials);
// - the program that credential_process of the profile names. It is run, and may ask the user for something;
// - the keys of the profile in the file that AWS_CONFIG_FILE names (or ~/.aws/config).
// Roles, single sign-on and containers give no key here. The keys of a profile with a role are not used: they
// are another identity's than the AWS tools use. If no key is found, requests are anonymous, and
// Credentials::why_none says what was found instead.
//
// Fails with invalid_argument if a key has no secret, if the program fails, or if the profile has no key
// although the user has set AWS_PROFILE or AWS_DEFAULT_PROFILE.
Result<Credentials> find_credentials(const Environment& environment);

struct Region {
  std::string name;
  // Why `name` is only the default although the user may have set a region: the config file cannot be read.
  std::string why_default{};
};
// Returns the first of these that is set: `wanted`, AWS_REGION, AWS_DEFAULT_REGION, the region of the profile
// in AWS_CONFIG_FILE (~/.aws/config). If none is set, it returns "us-east-1".
Region find_region(const std::string& wanted, const Environment& environment);

}  // namespace penstock::s3
