// Back end: a folder of the operating system, each object mapped into memory while it is open.
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <string>

#include "io_backends/base/mapped_file.hpp"
#include "io_backends/base/posix_files.hpp"

namespace penstock {

extern const BackendInfo backend_mmap;

namespace {

constexpr OptionSpec kOptions[] = {
    kPublishOption,
    {.name = "advice",
     .type = OptionType::choice,
     .value = "none|sequential|random|willneed",
     .fallback = "none",
     .help = "what the kernel is told of the touches to come (madvise)"},
    {.name = "populate",
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "bring the whole object into memory when it is opened (MAP_POPULATE)"},
    {.name = "hugepage",
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "ask for large pages (MADV_HUGEPAGE), which few file systems have"},
};

int advice(const std::string& word) {
  if (word == "sequential") return MADV_SEQUENTIAL;
  if (word == "random") return MADV_RANDOM;
  return word == "willneed" ? MADV_WILLNEED : MADV_NORMAL;
}

// The bytes that a file had when it was opened are mapped; what it got later is read.
class MmapReader final : public PosixReader {
 public:
  using PosixReader::PosixReader;

  // No more than once, before anything else.
  Result<void> map(const MapHow& how);
  std::span<const std::byte> mapped() const { return file_.bytes(); }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override;
  Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t length) override;

 private:
  bool holds(std::uint64_t offset, std::uint64_t length) const {
    return offset <= mapped().size() && length <= mapped().size() - offset;
  }
  Result<void> still_there(std::uint64_t offset, std::uint64_t length);

  MappedFile file_;
};

Result<void> MmapReader::map(const MapHow& how) {
  struct stat status {};
  if (::fstat(fd(), &status) != 0) return errno_error(errno, "cannot look at", name());
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return success();
  const int failed = file_.map(fd(), static_cast<std::size_t>(status.st_size), how);
  if (failed == ENODEV)
    return make_error(Errc::unsupported,
                      "the file system of '" + name() + "' has no mapped files; use the back end posix");
  return failed == 0 ? success() : errno_error(failed, "cannot map", name());
}

// Behind the end, but on its page, a shrunken file gives zeros without any signal: only its size tells.
Result<void> MmapReader::still_there(std::uint64_t offset, std::uint64_t length) {
  PENSTOCK_ASSIGN(const std::uint64_t now, size());
  if (offset + length > now) return truncated_error(name(), offset, length);
  if (!file_.lost()) return success();
  return errno_error(EIO, "cannot read (it shrank while it was mapped, or its device failed)", name());
}

Result<void> MmapReader::read_at(std::uint64_t offset, std::span<std::byte> out) {
  if (!holds(offset, out.size()) || file_.lost()) return PosixReader::read_at(offset, out);
  if (!out.empty()) std::memcpy(out.data(), mapped().data() + offset, out.size());
  PENSTOCK_ASSIGN(const std::uint64_t now, size());
  // By a call to the system, which says what is wrong in the words of every other back end.
  if (file_.lost() || offset + out.size() > now) return PosixReader::read_at(offset, out);
  moved().add_read(out.size());
  return success();
}

Result<std::span<const std::byte>> MmapReader::view(std::uint64_t offset, std::uint64_t length) {
  if (!holds(offset, length)) return truncated_error(name(), offset, length);
  PENSTOCK_TRY(still_there(offset, length));
  moved().add_read(length);
  return mapped().subspan(offset, length);
}

class MmapFiles final : public PosixFiles {
 public:
  MmapFiles(std::string_view path, const Options& options)
      : PosixFiles(path, PosixSettings{.nameless = options.text("publish") == "auto"}),
        how_{advice(options.text("advice")), options.boolean("populate")},
        hugepage_(options.boolean("hugepage")) {
    caps_.zero_copy = true;
  }

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_ASSIGN(Fd fd, open_file(name));
    auto reader = std::make_unique<MmapReader>(std::move(fd), std::nullopt, root_.full(name), moved_);
    PENSTOCK_TRY(reader->map(how_));
    if (hugepage_) ask_for_large_pages(reader->mapped());
    return reader;
  }

  Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                    std::span<std::byte> out) override {
    return Backend::read_object(name, length_hint, out);  // by a Reader  NOLINT(bugprone-parent-virtual-call)
  }

 private:
  void ask_for_large_pages(std::span<const std::byte> mapped) {
    if (mapped.empty()) return;
    void* const memory = const_cast<std::byte*>(mapped.data());  // NOLINT(*-const-cast)
    if (::madvise(memory, mapped.size(), MADV_HUGEPAGE) != 0)
      remark(std::string("the kernel has no large pages for mapped files (") + std::strerror(errno) +
             "): hugepage=1 changes nothing");
  }

  const MapHow how_;
  const bool hugepage_;
};

Result<std::unique_ptr<Backend>> make_mmap(std::string_view path, const Options& options) {
  PENSTOCK_TRY(check_folder_given("mmap", path));
  return std::make_unique<MmapFiles>(path, options);
}

std::string test_path(const std::filesystem::path& scratch) {
  return (scratch / "mmap").string();
}

}  // namespace

const BackendInfo backend_mmap{
    .name = "mmap",
    .summary = "files in a folder, mapped into memory",
    .options = kOptions,
    .make = make_mmap,
    .test_path = test_path,
};

}  // namespace penstock
