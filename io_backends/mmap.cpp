// The back end `mmap`: a folder of the operating system. Each object is mapped into memory while it is open,
// and with keep=1 also after that.
//
// Threads: any thread calls the back end and an MmapReader.
// Lock: KeptMappings::mutex_ guards the kept mappings. It is not held during an access to mapped bytes.
// Memory: open() allocates, with keep=1 also under the lock. A read allocates only for an error.
// Signals: an access to bytes that were cut off, or that the device cannot deliver, raises SIGBUS. Its
// handler is in files/mapped_file.cpp.
// Ctrl-C: not checked. An access to mapped bytes waits for the device, and a signal does not end the wait.
// Crash: mapped files are only read. Objects are written as by the back end posix.
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/core/system/streaming_copy.hpp"
#include "io_backends/core/system/touching.hpp"
#include "io_backends/files/mapped_file.hpp"
#include "io_backends/posix.hpp"

namespace penstock {

extern const BackendInfo backend_mmap;

namespace {

constexpr OptionSpec kMmapOptions[] = {
    kPublishOption,
    {.name = "advice",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "none|sequential|random|willneed",
     .fallback = "none",
     .help = "access pattern passed to the kernel (madvise)"},
    {.name = "populate",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "read the whole object into memory on open (MAP_POPULATE)"},
    {.name = "hugepage",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "request huge pages (MADV_HUGEPAGE), which few file systems support"},
    {.name = "keep",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "keep objects mapped after the first open, for in-memory data that is read repeatedly"},
    {.name = "touch",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "line|page",
     .fallback = "line",
     .help = "how mapped bytes are used in place: read every cache line, or only one byte per page"},
};

int madvise_constant(const std::string& word) {
  if (word == "sequential") return MADV_SEQUENTIAL;
  if (word == "random") return MADV_RANDOM;
  return word == "willneed" ? MADV_WILLNEED : MADV_NORMAL;
}

using Mapping = std::shared_ptr<const MappedFile>;  // null for an empty file
using TouchFunction = void (*)(std::span<const std::byte> bytes);

// Reads from the mapping. If the file has grown since it was mapped, read_at() reads the new bytes by system
// calls, and view() fails for them. Any thread may call it.
class MmapReader final : public PosixReader {
 public:
  using PosixReader::PosixReader;

  // Gives the reader its mapping. Called at most once, before any other function.
  void set_mapping(Mapping mapping, TouchFunction touch) {
    file_ = std::move(mapping);
    touch_ = touch;
  }

  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override;
  Result<std::span<const std::byte>> view(uint64_t offset, uint64_t length) override;

 private:
  std::span<const std::byte> mapped() const { return file_ ? file_->bytes() : std::span<const std::byte>(); }
  bool lost() const { return file_ && file_->lost(); }
  bool is_mapped(uint64_t offset, uint64_t length) const {
    return offset <= mapped().size() && length <= mapped().size() - offset;
  }
  Result<void> check_valid(uint64_t offset, uint64_t length);

  Mapping file_;
  TouchFunction touch_ = touch_lines;
};

// Checks after an access whether all bytes were valid. lost(), which tells whether an access raised SIGBUS,
// is not enough: if a file has shrunk, the rest of its last page reads as zeros without a signal. So the size
// of the file is checked, too.
Result<void> MmapReader::check_valid(uint64_t offset, uint64_t length) {
  PENSTOCK_ASSIGN(const uint64_t current_size, size());
  if (offset + length > current_size) return truncated_error(name(), offset, length);
  if (!lost()) return success();
  return errno_error(EIO, "cannot read (it was truncated while it was mapped, or its device failed)", name());
}

Result<void> MmapReader::read_at(uint64_t offset, std::span<std::byte> out) {
  if (!is_mapped(offset, out.size()) || lost()) return PosixReader::read_at(offset, out);
  copy_streamed(out, mapped().subspan(size_t(offset), out.size()));
  PENSTOCK_ASSIGN(const uint64_t current_size, size());
  // Some of the bytes may be lost. So the read is repeated by a system call, which returns the same error as
  // in the other back ends.
  if (lost() || offset + out.size() > current_size) return PosixReader::read_at(offset, out);
  moved().add_read(out.size());
  return success();
}

Result<std::span<const std::byte>> MmapReader::view(uint64_t offset, uint64_t length) {
  if (!is_mapped(offset, length)) return truncated_error(name(), offset, length);
  const auto bytes = mapped().subspan(size_t(offset), size_t(length));
  touch_(bytes);
  PENSTOCK_TRY(check_valid(offset, length));
  moved().add_read(length);
  return bytes;
}

// Mappings that are kept after their Readers are destroyed (keep=1). Any thread may call this class.
// A mapping is found by the device and inode number of its file. So two names of one file share a mapping,
// and a file that replaces another under the same name gets its own. While a file is mapped, this machine
// gives its inode number to no other file. A network file system may give it to another file, but then the
// time of the last write differs.
class KeptMappings {
 public:
  // The largest number of kept mappings: half of the 65,530 mappings that a process may usually have. Further
  // objects are mapped only while they are open.
  static constexpr size_t kMaxKept = 32'768;

  // Returns the kept mapping of a file. Null if there is none, or if the file has grown, been written to or
  // lost bytes since it was mapped.
  Mapping find(const struct stat& file) {
    const std::lock_guard lock(mutex_);
    const auto found = by_file_.find({file.st_dev, file.st_ino});
    if (found == by_file_.end()) return nullptr;
    const KeptMapping& kept = found->second;
    const bool is_unwritten =
        kept.write_time.tv_sec == file.st_mtim.tv_sec && kept.write_time.tv_nsec == file.st_mtim.tv_nsec;
    const bool covers_file = kept.mapping->bytes().size() >= uint64_t(file.st_size);
    return is_unwritten && covers_file && !kept.mapping->lost() ? kept.mapping : nullptr;
  }
  void keep(const struct stat& file, const Mapping& mapping) {
    const std::lock_guard lock(mutex_);
    if (by_file_.size() < kMaxKept)
      by_file_.insert_or_assign({file.st_dev, file.st_ino}, KeptMapping{mapping, file.st_mtim});
  }

 private:
  struct KeptMapping {
    Mapping mapping;
    timespec write_time{};
  };
  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, KeptMapping> by_file_;
};

class MmapFiles final : public PosixFiles {
 public:
  MmapFiles(std::string_view path, const Options& options)
      : PosixFiles(path, options),
        advice_(madvise_constant(options.text("advice"))),
        populate_(options.boolean("populate")),
        hugepage_(options.boolean("hugepage")),
        keeps_mappings_(options.boolean("keep")),
        touch_(options.text("touch") == "page" ? touch_pages : touch_lines) {
    caps_.zero_copy = true;
  }

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_ASSIGN(Fd fd, open_file(name));
    auto reader = std::make_unique<MmapReader>(std::move(fd), root_.full_path(name), moved_);
    PENSTOCK_ASSIGN(Mapping mapping, mapping_of(*reader));
    reader->set_mapping(std::move(mapping), touch_);
    return reader;
  }

  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override {
    return Backend::read_object(name, length_hint, out);  // uses open()  NOLINT(bugprone-parent-virtual-call)
  }

 private:
  Result<Mapping> mapping_of(const PosixReader& reader) {
    struct stat status {};
    if (::fstat(reader.fd(), &status) != 0) return errno_error(errno, "cannot inspect", reader.name());
    if (!S_ISREG(status.st_mode) || status.st_size == 0) return Mapping();
    if (keeps_mappings_)
      if (Mapping kept = kept_.find(status)) return kept;
    auto file = std::make_shared<MappedFile>();
    const int map_errno = file->map(reader.fd(), size_t(status.st_size), advice_, populate_);
    if (map_errno == ENODEV)
      return make_error(Errc::unsupported, "the file system of '" + reader.name() +
                                               "' does not support mapped files; use the back end posix");
    if (map_errno != 0) return errno_error(map_errno, "cannot map", reader.name());
    if (hugepage_) ask_for_large_pages(file->bytes());
    Mapping mapping = std::move(file);
    if (keeps_mappings_) kept_.keep(status, mapping);
    return mapping;
  }

  void ask_for_large_pages(std::span<const std::byte> mapped) {
    void* const memory = const_cast<std::byte*>(mapped.data());  // NOLINT(*-const-cast)
    if (::madvise(memory, mapped.size(), MADV_HUGEPAGE) != 0)
      remark(std::string("the kernel does not support huge pages for mapped files (") + std::strerror(errno) +
             "): hugepage=1 has no effect");
  }

  const int advice_;
  const bool populate_;
  const bool hugepage_;
  const bool keeps_mappings_;
  const TouchFunction touch_;
  KeptMappings kept_;
};

Result<std::unique_ptr<Backend>> make_mmap(std::string_view path, const Options& options) {
  PENSTOCK_TRY(check_folder_given("mmap", path));
  return std::make_unique<MmapFiles>(path, options);
}

}  // namespace

const BackendInfo backend_mmap{
    .name = "mmap",
    .summary = "files in a folder, read through memory mappings",
    .options = kMmapOptions,
    .make = make_mmap,
};

}  // namespace penstock
