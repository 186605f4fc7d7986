// Back end: a folder of the operating system, by plain system calls.
#include <memory>
#include <string>

#include "io_backends/base/posix_files.hpp"

namespace penstock {

extern const BackendInfo backend_posix;

namespace {

constexpr OptionSpec kOptions[] = {kDirectOption, kPublishOption};

Result<std::unique_ptr<Backend>> make_posix(std::string_view path, const Options& options) {
  PENSTOCK_TRY(check_folder_given("posix", path));
  return std::make_unique<PosixFiles>(path, options);
}

std::string test_path(const std::filesystem::path& scratch) {
  return (scratch / "posix").string();
}

}  // namespace

const BackendInfo backend_posix{
    .name = "posix",
    .summary = "files in a folder, by open, read and close",
    .options = kOptions,
    .make = make_posix,
    .test_path = test_path,
};

}  // namespace penstock
