#include "io_backends/s3/account.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "io_backends/core/text.hpp"

namespace penstock::s3 {
namespace {

std::string value_of(const Pairs& section, std::string_view name) {
  for (const auto& [key, value] : section)
    if (key == name) return value;
  return {};
}

// Returns the text of a file of the AWS tools. Its path is the value of the environment variable `variable`,
// or ~/.aws/`name` if that is not set. Returns "" if the file does not exist.
std::string file_text(const Environment& environment, const char* variable, const char* name) {
  std::optional<std::string> path = environment(variable);
  if (!path) {
    const auto home = environment("HOME");
    if (!home) return {};
    path = *home + "/.aws/" + name;
  }
  std::ifstream file(*path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string profile(const Environment& environment) {
  return environment("AWS_PROFILE").value_or("default");
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view url) {
  const auto bad_endpoint = [&](std::string_view why) {
    return make_error(Errc::invalid_argument, "bad place '" + std::string(url) +
                                                  "' of a tier s3: " + std::string(why) +
                                                  "; it is written s3:http://host:port/bucket/prefix");
  };
  Endpoint endpoint;
  std::string_view rest = url;
  endpoint.tls = rest.starts_with("https://");
  if (!endpoint.tls && !rest.starts_with("http://"))
    return bad_endpoint("it begins with neither http:// nor https://");
  rest.remove_prefix(endpoint.tls ? 8 : 7);
  std::string_view host = take_part(rest, '/');
  if (host.find_first_of("@?# \t\n") != std::string_view::npos)
    return bad_endpoint("the host is wrong (credentials come from the environment or ~/.aws/credentials)");
  endpoint.server = (endpoint.tls ? "https://" : "http://") + std::string(host);
  const std::string_view default_port = endpoint.tls ? ":443" : ":80";
  if (host.ends_with(default_port)) host.remove_suffix(default_port.size());
  if (host.empty()) return bad_endpoint("it names no host");
  endpoint.host = host;
  endpoint.bucket = take_part(rest, '/');
  if (endpoint.bucket.empty()) return bad_endpoint("it names no bucket");
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.starts_with('/') || rest.find("//") != std::string_view::npos)
    return bad_endpoint("it holds an empty name");
  if (!rest.empty()) endpoint.prefix = std::string(rest) + "/";
  return endpoint;
}

Pairs ini_section(std::string_view text, std::string_view name) {
  Pairs pairs;
  bool in_section = false;
  while (!text.empty()) {
    const std::string_view line = trim(take_part(text, '\n'));
    if (line.starts_with('[') && line.ends_with(']')) {
      in_section = trim(line.substr(1, line.size() - 2)) == name;
      continue;
    }
    const size_t equals = line.find('=');
    if (!in_section || line.starts_with('#') || line.starts_with(';') || equals == std::string_view::npos)
      continue;
    pairs.emplace_back(trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
  }
  return pairs;
}

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

Result<Credentials> find_credentials(const Environment& environment) {
  Credentials found;
  std::string source = "the environment";
  if (const auto key = environment("AWS_ACCESS_KEY_ID")) {
    found = {*key, environment("AWS_SECRET_ACCESS_KEY").value_or(""),
             environment("AWS_SESSION_TOKEN").value_or("")};
  } else {
    const std::string name = profile(environment);
    const Pairs section =
        ini_section(file_text(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"), name);
    source = "the profile '" + name + "'";
    found = {value_of(section, "aws_access_key_id"), value_of(section, "aws_secret_access_key"),
             value_of(section, "aws_session_token")};
    if (found.key_id.empty() && environment("AWS_PROFILE"))
      return make_error(Errc::invalid_argument, "the credentials file has no access key for " + source +
                                                    " (AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE)");
  }
  if (!found.key_id.empty() && found.secret.empty())
    return make_error(Errc::invalid_argument,
                      source + " has an access key for s3, but no secret key with it");
  return found;
}

std::string find_region(const std::string& wanted, const Environment& environment) {
  if (!wanted.empty()) return wanted;
  for (const char* const name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (const auto region = environment(name)) return *region;
  const std::string name = profile(environment);
  const std::string region = value_of(ini_section(file_text(environment, "AWS_CONFIG_FILE", "config"),
                                                  name == "default" ? name : "profile " + name),
                                      "region");
  return region.empty() ? "us-east-1" : region;
}

}  // namespace penstock::s3
