// A back end with an object to read, for micro-benchmarks.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend_info.hpp"

namespace penstock {

// In a folder of its own below the system's for temporary files, gone with its owner.
class BenchFolder {
 public:
  // The back end with its default options and an object "object" of that many bytes, warm.
  static Result<std::unique_ptr<BenchFolder>> make(const BackendInfo& info, uint64_t bytes);
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;

  Backend& backend() { return *backend_; }
  static constexpr std::string_view kObject = "object";

 private:
  BenchFolder() = default;
  std::filesystem::path path_;
  std::unique_ptr<Backend> backend_;
};

// Back ends that can be had here without a server.
std::vector<const BackendInfo*> benchable_backends();

}  // namespace penstock
