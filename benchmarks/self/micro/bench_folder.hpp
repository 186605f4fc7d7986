// A back end with an object to read, for micro-benchmarks.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend_info.hpp"

namespace penstock {

// Keeps the object in a new folder inside the system's folder for temporary files. The destructor removes
// this new folder.
class BenchFolder {
 public:
  // Makes the back end with its default options, and writes the object kObject with `bytes` bytes. The object
  // is warm, because it was just written.
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

// The back ends that work on this machine without a server.
std::vector<const BackendInfo*> benchable_backends();

}  // namespace penstock
