// What the parts of the back ends' contract test share.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/base/backend.hpp"

namespace penstock {

// Named by main() before any test runs.
struct ContractSubject {
  const BackendInfo* info = nullptr;
  std::filesystem::path scratch;
};
ContractSubject& contract_subject();

using Bytes = std::vector<std::byte>;

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += static_cast<char>(byte);
  return text;
}
// Bytes that differ from place to place and from seed to seed.
Bytes pattern(std::size_t count, unsigned seed = 1);

#define EXPECT_OK(...)                                                        \
  do {                                                                        \
    const auto& expect_ok_result = (__VA_ARGS__);                             \
    EXPECT_TRUE(expect_ok_result.ok()) << expect_ok_result.error().message(); \
  } while (false)
#define ASSERT_OK(...)                                                        \
  do {                                                                        \
    const auto& assert_ok_result = (__VA_ARGS__);                             \
    ASSERT_TRUE(assert_ok_result.ok()) << assert_ok_result.error().message(); \
  } while (false)
// The call fails with this Errc, and its message is not empty.
#define EXPECT_ERRC(errc, ...)                                                                        \
  do {                                                                                                \
    const auto& expect_errc_result = (__VA_ARGS__);                                                   \
    EXPECT_FALSE(expect_errc_result.ok()) << #__VA_ARGS__ << " should fail with " << errc_name(errc); \
    if (!expect_errc_result.ok()) {                                                                   \
      EXPECT_EQ(errc_name(expect_errc_result.error().code), errc_name(errc))                          \
          << #__VA_ARGS__ << ": " << expect_errc_result.error().message();                            \
      EXPECT_FALSE(expect_errc_result.error().what.empty());                                          \
    }                                                                                                 \
  } while (false)

// Each test has a fresh root; the parameter says what is wrapped around the back end: every decorator must
// keep the contract.
class Contract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void TearDown() override;

  Backend& backend() { return *backend_; }
  const Caps& caps() { return backend_->caps(); }
  Namespace& names() { return backend_->names(); }

  // Publishes an object.
  void put(std::string_view name, std::span<const std::byte> bytes, IfExists if_exists = IfExists::replace);
  void put(std::string_view name, std::string_view text) { put(name, bytes_of(text)); }
  // The whole object, or why not.
  Result<std::string> get(std::string_view name);
  // The names in a folder, sorted; folders end in '/'.
  std::vector<std::string> listed(std::string_view folder);

 private:
  std::filesystem::path folder_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace penstock
