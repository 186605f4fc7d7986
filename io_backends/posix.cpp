// Back end: a folder of the operating system, by plain system calls.
#include <fcntl.h>

#include <memory>
#include <string>

#include "io_backends/files/posix_files.hpp"

namespace penstock {

extern const BackendInfo backend_posix;

namespace {

constexpr OptionSpec kOptions[] = {
    kDirectOption,
    kFallbackOption,
    kPublishOption,
    {.name = "eof_read",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "read on until a read gives nothing, as TensorFlow does: one more call for each whole object"},
    {.name = "readahead",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "normal|sequential|random|willneed",
     .fallback = "normal",
     .help = "what the kernel is told of the reads to come when an object is opened (posix_fadvise)"}};

int advice(const std::string& readahead) {
  if (readahead == "sequential") return POSIX_FADV_SEQUENTIAL;
  if (readahead == "random") return POSIX_FADV_RANDOM;
  return readahead == "willneed" ? POSIX_FADV_WILLNEED : POSIX_FADV_NORMAL;
}

Result<std::unique_ptr<Backend>> make_posix(std::string_view path, const Options& options) {
  PENSTOCK_TRY(check_folder_given("posix", path));
  PosixSettings settings = posix_settings(options);
  settings.eof_read = options.boolean("eof_read");
  settings.advice = advice(options.text("readahead"));
  return std::make_unique<PosixFiles>(path, settings);
}

}  // namespace

const BackendInfo backend_posix{
    .name = "posix",
    .summary = "files in a folder, by open, read and close",
    .options = kOptions,
    .make = make_posix,
};

}  // namespace penstock
