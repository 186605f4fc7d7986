// The back end `s3`: objects below a prefix in a bucket of an S3 object store. Large objects are read by
// several streams (s3/reads.hpp) and written in parts, which a thread sends (s3/parts.hpp).
#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/s3/store.hpp"

namespace penstock {

extern const BackendInfo backend_s3;

namespace {

constexpr OptionSpec kS3Options[] = {
    {.name = "region",
     .role = OptionRole::work,
     .value = "NAME",
     .help = "region for request signatures (default: AWS_REGION, the profile's region, us-east-1)"},
    {.name = "part",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .fallback = "8MiB",
     .help = "size of the requests that write larger objects or read larger ranges",
     .at_least = 5 << 20},  // the smallest part that S3 accepts, except for the last part of an object
    {.name = "streams",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "4",
     .help = "number of these requests in flight for each object",
     .at_least = 1},
    {.name = "connections",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "0",
     .help = "limit of requests in flight for each read, queue and writer (0: no limit)",
     .at_least = 0},
    {.name = "retries",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "6",
     .help = "number of retries after a server or network failure, with increasing pauses",
     .at_least = 0},
    {.name = "timeout",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "30s",
     .help = "a request fails after this time without progress"},
    {.name = "checks",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "1",
     .help = "check before publishing that the name is not a folder (one request per object)"},
};

class S3Backend final : public Backend {
 public:
  explicit S3Backend(s3::Settings settings) : store_(std::move(settings)), names_(s3::make_names(store_)) {
    caps_.async = true;
    caps_.on_network = true;
  }

  const Caps& caps() const override { return caps_; }

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    PENSTOCK_ASSIGN(s3::Answer answer, store_.head(name));
    if (!answer.ok()) return store_.read_error(answer, name);
    if (answer.etag.empty())
      return make_error(Errc::corrupt,
                        "the server sends no ETag for '{}', so a change between two reads cannot be detected",
                        name);
    return std::make_unique<s3::S3Reader>(store_, name, std::move(answer));
  }

  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    PENSTOCK_TRY(check_object_name(name));
    return s3::make_writer(store_, name, bytes_hint);
  }

  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override {
    return s3::read_object(store_, {name, length_hint, out});
  }

  Result<std::unique_ptr<Queue>> queue(size_t depth) override {
    PENSTOCK_TRY(check_queue_depth(depth));
    return s3::make_queue(store_, depth);
  }

  Namespace& names() override { return *names_; }
  MovedBytes moved_bytes() const override { return store_.moved_bytes(); }

 private:
  s3::Store store_;
  const std::unique_ptr<Namespace> names_;
  Caps caps_;
};

Result<std::unique_ptr<Backend>> make_s3(std::string_view path, const Options& options) {
  // Runs once in a process: C++ makes other threads wait until the static variable is initialised.
  static const CURLcode curl_status = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  if (curl_status != CURLE_OK)
    return make_error(Errc::unsupported, "cannot start libcurl: {}", ::curl_easy_strerror(curl_status));
  const auto environment = s3::process_environment();
  s3::Settings settings;
  PENSTOCK_ASSIGN(settings.endpoint, s3::parse_endpoint(path));
  PENSTOCK_ASSIGN(settings.credentials, s3::find_credentials(environment));
  settings.region = s3::find_region(options.text("region"), environment);
  settings.trusted_certificates = environment("AWS_CA_BUNDLE").value_or("");
  settings.retries = unsigned(options.integer("retries"));
  settings.timeout =
      std::max(std::chrono::ceil<std::chrono::seconds>(options.duration("timeout")), std::chrono::seconds(1));
  settings.part_bytes = size_t(options.size("part"));
  settings.max_streams = size_t(options.integer("streams"));
  settings.max_connections = size_t(options.integer("connections"));
  settings.check_names = options.boolean("checks");
  return std::make_unique<S3Backend>(std::move(settings));
}

// PENSTOCK_TEST_S3 names a bucket in which tests may write: http://host:port/bucket
std::string test_path(const std::filesystem::path& scratch) {
  const auto url = s3::process_environment()("PENSTOCK_TEST_S3");
  return url ? *url + scratch.string() : "";
}

}  // namespace

const BackendInfo backend_s3{
    .name = "s3",
    .summary = "objects in a bucket of an S3 object store: s3:http://host:port/bucket/prefix",
    .options = kS3Options,
    .make = make_s3,
    .test_path = test_path,
};

}  // namespace penstock
