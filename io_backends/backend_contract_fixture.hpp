// The common fixture of all parts of the back ends' contract test.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {

// The tested back end. main() sets it before any test runs.
struct ContractSubject {
  const BackendInfo* info = nullptr;
  std::filesystem::path scratch;
};
ContractSubject& contract_subject();

using Bytes = std::vector<std::byte>;

// The fixture of each test of the contract: a back end with a new, empty root. The test's parameter names the
// decorator around the back end, because a decorated back end must fulfil the contract, too.
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
  // Returns all bytes of the object, or the error.
  Result<std::string> get(std::string_view name);
  // The names in a folder, sorted; folders end in '/'.
  std::vector<std::string> listed(std::string_view folder);

 private:
  std::filesystem::path folder_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace penstock
