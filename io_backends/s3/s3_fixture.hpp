// Fixture for the tests of the back end s3. The back end talks to a test server that can be made to fail.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/s3/test_server.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock::s3 {

using Bytes = std::vector<std::byte>;
constexpr size_t kMiB = size_t{1} << 20U;

class S3 : public testing::Test {
 protected:
  void SetUp() override {
    const auto info = backend_registry().find("s3");
    if (!info.ok()) GTEST_SKIP() << info.error().message();
    server.set_environment();
    remake();
  }

  Result<std::unique_ptr<Backend>> make(const std::string& url, const std::vector<OptionWord>& words = {}) {
    const BackendInfo* const info = *backend_registry().find("s3");
    PENSTOCK_ASSIGN(const Options options, Options::parse(info->options, words, "option"));
    return info->make(url, options);
  }
  void remake(const std::vector<OptionWord>& words = {}) {
    auto made = make(server.url() + "/some prefix", words);
    ASSERT_OK(made);
    backend = *std::move(made);
  }

  Result<void> put(std::string_view name, std::span<const std::byte> bytes,
                   IfExists if_exists = IfExists::replace) {
    PENSTOCK_ASSIGN(const auto writer, backend->create(name, bytes.size()));
    PENSTOCK_TRY(writer->append(bytes));
    return writer->publish(Durability::visible, if_exists);
  }
  Result<void> put(std::string_view name, std::string_view text) { return put(name, bytes_of(text)); }

  Result<Bytes> get(std::string_view name) {
    PENSTOCK_ASSIGN(const auto reader, backend->open(name));
    PENSTOCK_ASSIGN(const uint64_t size, reader->size());
    Bytes bytes(size);
    PENSTOCK_TRY(reader->read_at(0, bytes));
    return bytes;
  }

  // Puts the object into the server without using the back end.
  void store(const std::string& name, std::span<const std::byte> bytes) {
    server.replace("some prefix/" + name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  TestServer server;
  std::unique_ptr<Backend> backend;
};

}  // namespace penstock::s3
