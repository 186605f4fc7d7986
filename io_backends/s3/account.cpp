#include "io_backends/s3/account.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "io_backends/core/json.hpp"
#include "io_backends/core/text.hpp"

namespace penstock::s3 {
namespace {

// Returns the value of a key; `name` is in small letters, the file's may be in any (Python's configparser).
std::string value_of(const Pairs& section, std::string_view name) {
  for (const auto& [key, value] : section)
    if (equals_ignoring_case(key, name)) return value;
  return {};
}

enum class AwsFile : uint8_t { credentials, config };

// The profile whose section begins with this line, as botocore reads it: text after the bracket is ignored,
// and the config file has "profile NAME" or "profile 'NAME'", except for "default".
std::optional<std::string_view> profile_of_section(std::string_view line, AwsFile file) {
  constexpr std::string_view kProfile = "profile";
  const size_t end = line.rfind(']');
  if (!line.starts_with('[') || end == std::string_view::npos) return std::nullopt;
  std::string_view name = trim(line.substr(1, end - 1));
  if (file == AwsFile::credentials || name == "default") return name;
  if (!name.starts_with(kProfile)) return std::nullopt;
  name = trim(name.substr(kProfile.size()));
  if (name.size() > 1 && (name.front() == '"' || name.front() == '\'') && name.back() == name.front())
    name = name.substr(1, name.size() - 2);
  return name;
}

// Returns the "key = value" or "key: value" lines of a profile. Skips other lines.
Pairs section_of(std::string_view text, std::string_view profile_name, AwsFile file) {
  Pairs pairs;
  bool in_section = false;
  while (!text.empty()) {
    const std::string_view line = trim(take_part(text, '\n'));
    if (line.starts_with('[')) {
      in_section = profile_of_section(line, file) == profile_name;
      continue;
    }
    const size_t delimiter = line.find_first_of("=:");
    if (!in_section || line.starts_with('#') || line.starts_with(';') || delimiter == std::string_view::npos)
      continue;
    pairs.emplace_back(trim(line.substr(0, delimiter)), trim(line.substr(delimiter + 1)));
  }
  return pairs;
}

// A file of the AWS tools: its text, or why there is none.
struct AwsText {
  std::string path;  // "" if neither the variable nor HOME is set
  std::string text;
  std::string why_none;  // "" if the file can be read, or if it is not there and no variable names it
};

// Reads the file that the environment variable `variable` names, or ~/.aws/`name` if that is not set.
AwsText read_aws_file(const Environment& environment, const char* variable, const char* name) {
  const std::optional<std::string> named = environment(variable);
  const std::optional<std::string> home = environment("HOME");
  if (!named && !home) return {};
  const std::string path = named ? *named : *home + "/.aws/" + name;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  AwsText out{.path = path, .text = {}, .why_none = {}};
  char bytes[4096];
  ssize_t got = file < 0 ? -1 : 0;
  while (file >= 0 && (got = ::read(file, bytes, sizeof bytes)) > 0) out.text.append(bytes, size_t(got));
  const int error = errno;
  if (file >= 0) ::close(file);
  if (got < 0 && (named || error != ENOENT))
    return {path, "",
            "cannot read '" + path + "'" + (named ? " (" + std::string(variable) + ")" : "") + ": " +
                std::strerror(error)};
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (out.text.starts_with(kByteOrderMark)) out.text.erase(0, kByteOrderMark.size());
  return out;
}

std::string profile(const Environment& environment) {
  return environment("AWS_PROFILE").value_or(environment("AWS_DEFAULT_PROFILE").value_or("default"));
}

// Runs the program of credential_process, whose output is documented in the AWS CLI's user guide ("Source
// credentials with an external process").
Result<Credentials> run_credential_process(const std::string& command) {
  constexpr size_t kMostBytes = 65536;
  // Only the first word, because the arguments may contain secrets.
  const auto failed = [&](std::string_view why) {
    return make_error(Errc::invalid_argument, "the program '" + command.substr(0, command.find(' ')) +
                                                  "' of credential_process " + std::string(why));
  };
  std::FILE* const pipe = ::popen(command.c_str(), "re");  // NOLINT(cert-env33-c): the user's own setting
  if (pipe == nullptr) return failed("cannot be run: " + std::string(std::strerror(errno)));
  std::string text(kMostBytes, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe));
  const int status = ::pclose(pipe);
  if (status != 0)
    return failed(WIFEXITED(status) ? "exited with code " + std::to_string(WEXITSTATUS(status))
                                    : "was killed");
  const Json json = Json::try_parse(text).value_or(nullptr);
  const auto member = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (!json.is_object() || member("AccessKeyId").empty() || member("SecretAccessKey").empty())
    return failed("printed no JSON with AccessKeyId and SecretAccessKey");
  return Credentials{member("AccessKeyId"), member("SecretAccessKey"), member("SessionToken")};
}

// What find_credentials() has read: both files, and their sections of the profile.
struct AwsProfile {
  std::string name;
  AwsText credentials_file;
  AwsText config_file;
  Pairs credentials;
  Pairs config;
};

AwsProfile read_profile(const Environment& environment) {
  AwsProfile out{.name = profile(environment),
                 .credentials_file = read_aws_file(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                 .config_file = read_aws_file(environment, "AWS_CONFIG_FILE", "config"),
                 .credentials = {},
                 .config = {}};
  out.credentials = section_of(out.credentials_file.text, out.name, AwsFile::credentials);
  out.config = section_of(out.config_file.text, out.name, AwsFile::config);
  return out;
}

// Returns a value of the profile. As in botocore, those of the credentials file replace those of the other.
std::string setting_of(const AwsProfile& from, std::string_view name) {
  std::string value = value_of(from.credentials, name);
  return value.empty() ? value_of(from.config, name) : value;
}

// Returns the other profiles of the file, each in quotes.
std::string other_profiles(const AwsText& file, AwsFile kind, std::string_view own) {
  std::string names;
  for (std::string_view text = file.text; !text.empty();) {
    const auto name = profile_of_section(trim(take_part(text, '\n')), kind);
    if (name && *name != own) names += (names.empty() ? "'" : ", '") + std::string(*name) + "'";
  }
  return names;
}

// Why there is no key: what there is in its place.
std::string why_no_key(const Environment& environment, const AwsProfile& from) {
  constexpr std::string_view kExport =
      ", which Penstock does not support: run eval \"$(aws configure export-credentials --format env)\" "
      "first";
  for (const char* const setting :
       {"role_arn", "web_identity_token_file", "sso_session", "sso_start_url", "login_session"})
    if (!setting_of(from, setting).empty()) {
      const bool is_config = value_of(from.credentials, setting).empty();
      return "the profile '" + from.name + "' of '" +
             (is_config ? from.config_file : from.credentials_file).path + "' has " + setting +
             std::string(kExport);
    }
  for (const char* const variable : {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                     "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"})
    if (environment(variable)) return std::string(variable) + " is set" + std::string(kExport);
  for (const AwsText* const file : {&from.credentials_file, &from.config_file})
    if (!file->why_none.empty())
      return file->why_none + ": make the file readable, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  std::string others;
  for (const auto& [file, kind] : {std::pair(&from.credentials_file, AwsFile::credentials),
                                   std::pair(&from.config_file, AwsFile::config)})
    if (const std::string names = other_profiles(*file, kind, from.name); !names.empty())
      others += (others.empty() ? "'" : "; '") + file->path + "' has the profiles " + names;
  return others.empty() ? ""
                        : "there is no access key for the profile '" + from.name + "' (" + others +
                              "): set AWS_PROFILE to one of them";
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view url) {
  const auto bad_endpoint = [&](std::string_view why) {
    return make_error(Errc::invalid_argument, "invalid S3 location '" + std::string(url) +
                                                  "': " + std::string(why) +
                                                  "; write s3:http://host:port/bucket/prefix");
  };
  Endpoint endpoint;
  std::string_view rest = url;
  endpoint.tls = rest.starts_with("https://");
  if (!endpoint.tls && !rest.starts_with("http://"))
    return bad_endpoint("it must start with http:// or https://");
  rest.remove_prefix(endpoint.tls ? 8 : 7);
  std::string_view host = take_part(rest, '/');
  if (host.find_first_of("@?# \t\n") != std::string_view::npos)
    return bad_endpoint(
        "the host is invalid (credentials come from AWS_ACCESS_KEY_ID or from the files of the AWS tools)");
  endpoint.server = (endpoint.tls ? "https://" : "http://") + std::string(host);
  const std::string_view default_port = endpoint.tls ? ":443" : ":80";
  if (host.ends_with(default_port)) host.remove_suffix(default_port.size());
  if (host.empty()) return bad_endpoint("it has no host");
  endpoint.host = host;
  endpoint.bucket = take_part(rest, '/');
  if (endpoint.bucket.empty()) return bad_endpoint("it has no bucket");
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.starts_with('/') || rest.find("//") != std::string_view::npos)
    return bad_endpoint("it contains an empty name");
  if (!rest.empty()) endpoint.prefix = std::string(rest) + "/";
  return endpoint;
}

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

Result<Credentials> find_credentials(const Environment& environment) {
  const auto with_secret = [](Credentials found, std::string_view source) -> Result<Credentials> {
    if (!found.secret.empty()) return found;
    return make_error(Errc::invalid_argument,
                      std::string(source) + " has an access key for s3, but no secret key");
  };
  if (const auto key = environment("AWS_ACCESS_KEY_ID"))
    return with_secret({*key, environment("AWS_SECRET_ACCESS_KEY").value_or(""),
                        environment("AWS_SESSION_TOKEN").value_or("")},
                       "the environment");
  const AwsProfile from = read_profile(environment);
  const std::string source = "the profile '" + from.name + "'";
  // The AWS tools take a role before the keys of the same profile, so that these are another identity's.
  if (setting_of(from, "role_arn").empty()) {
    const auto with_keys_of = [&](const Pairs& section) {
      return with_secret({value_of(section, "aws_access_key_id"), value_of(section, "aws_secret_access_key"),
                          value_of(section, "aws_session_token")},
                         source);
    };
    if (!value_of(from.credentials, "aws_access_key_id").empty()) return with_keys_of(from.credentials);
    if (const std::string command = setting_of(from, "credential_process"); !command.empty())
      return run_credential_process(command);
    if (!value_of(from.config, "aws_access_key_id").empty()) return with_keys_of(from.config);
  }
  Credentials none;
  none.why_none = why_no_key(environment, from);
  if (environment("AWS_PROFILE") || environment("AWS_DEFAULT_PROFILE"))
    return make_error(Errc::invalid_argument,
                      none.why_none.empty() ? "'" + from.credentials_file.path + "' and '" +
                                                  from.config_file.path + "' have no access key for " +
                                                  source + ": run 'aws configure', or correct AWS_PROFILE"
                                            : none.why_none);
  return none;
}

Region find_region(const std::string& wanted, const Environment& environment) {
  if (!wanted.empty()) return {wanted};
  for (const char* const name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (const auto region = environment(name)) return {*region};
  const AwsText file = read_aws_file(environment, "AWS_CONFIG_FILE", "config");
  const std::string region = value_of(section_of(file.text, profile(environment), AwsFile::config), "region");
  return region.empty() ? Region{"us-east-1", file.why_none} : Region{region};
}

}  // namespace penstock::s3
