// Back end: a folder of the operating system, read by MPI-IO: alone, or by all ranks of a job together.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/posix.hpp"

namespace penstock {

extern const BackendInfo backend_mpiio;

namespace {

constexpr OptionSpec kOptions[] = {
    kPublishOption,
    {.name = "hints",
     .role = OptionRole::work,
     .value = "KEY:VALUE[+KEY:VALUE]...",
     .help = "what the MPI library is told of each file that is opened to be read (MPI_Info)"},
};

// MPI libraries take what stands before a ':' for the name of a file system, and Open MPI writes longer
// paths, with an ending of its own, into 256 bytes: such files are opened by their descriptor's path.
constexpr std::size_t kLongestPath = 224;

Result<MpiHints> parse_hints(std::string_view text) {
  MpiHints hints;
  while (!text.empty()) {
    const std::string_view one = take_part(text, '+');
    const std::size_t colon = one.find(':');
    if (colon == 0 || colon >= one.size() - 1)
      return make_error(Errc::invalid_argument,
                        "'" + std::string(one) +
                            "' is no hint: hints=KEY:VALUE, several joined by '+', as in "
                            "hints=romio_cb_read:enable+cb_nodes:2");
    hints.emplace_back(one.substr(0, colon), one.substr(colon + 1));
  }
  return hints;
}

class MpiioFiles final : public PosixFiles {
 public:
  MpiioFiles(std::string_view path, const Options& options, std::unique_ptr<MpiFiles> files)
      : PosixFiles(path, PosixSettings{.nameless = options.text("publish") == "auto"}),
        files_(std::move(files)) {
    caps_.collective = true;
    if (files_->many_threads()) return;
    caps_.threads = 1;
    remark("this MPI takes calls of one thread at a time (MPI_THREAD_SERIALIZED): those of others wait");
  }

  Result<std::unique_ptr<Reader>> open(std::string_view name) override;
  Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint) override {
    if (!writes_.exchange(true, std::memory_order_relaxed))
      remark("only reads go through MPI-IO: what was written here went by the calls of the back end posix");
    return PosixFiles::create(name, bytes_hint);
  }
  Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                    std::span<std::byte> out) override {
    return Backend::read_object(name, length_hint, out);  // by a Reader  NOLINT(bugprone-parent-virtual-call)
  }

  Result<std::unique_ptr<MpiFile>> open_file_of_mpi(const std::string& name, MpiSharing sharing);
  // By calls to the system, which say what is wrong in the words of every other back end. Where nothing is,
  // `why` is remembered: what MPI-IO said, or that it said nothing.
  Result<void> read_without_mpi(const std::string& name, const std::string& why, std::uint64_t offset,
                                std::span<std::byte> out);
  std::string full(std::string_view name) const { return root_.full(name); }
  MovedCounter& moved() { return moved_; }

 private:
  const std::unique_ptr<MpiFiles> files_;
  std::atomic<bool> writes_ = false;
};

class MpiioReader final : public Reader {
 public:
  MpiioReader(MpiioFiles& files, std::string_view name, std::unique_ptr<MpiFile> alone)
      : files_(files), name_(name), alone_(std::move(alone)) {}

  Result<std::uint64_t> size() override { return alone_->size(); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (!possible(offset, out.size())) return truncated_error(files_.full(name_), offset, out.size());
    return settle(alone_->read_at(offset, out), offset, out);
  }
  Result<void> read_at_all(std::uint64_t offset, std::span<std::byte> out) override;

 private:
  static bool possible(std::uint64_t offset, std::uint64_t length) {
    constexpr auto kEnd = static_cast<std::uint64_t>(INT64_MAX);
    return offset <= kEnd && length <= kEnd - offset;
  }
  Result<void> settle(const Result<std::size_t>& got, std::uint64_t offset, std::span<std::byte> out);

  MpiioFiles& files_;
  const std::string name_;
  const std::unique_ptr<MpiFile> alone_;
  std::unique_ptr<MpiFile> together_;  // opened by the first collective read
};

// The ranks keep in step whatever happens to one of them: it asks for nothing and fails afterwards.
Result<void> MpiioReader::read_at_all(std::uint64_t offset, std::span<std::byte> out) {
  if (!together_) {
    PENSTOCK_ASSIGN(together_, files_.open_file_of_mpi(name_, MpiSharing::shared));
  }
  if (!possible(offset, out.size())) {
    PENSTOCK_TRY(together_->read_at(0, {}));
    return truncated_error(files_.full(name_), offset, out.size());
  }
  Result<std::size_t> got = together_->read_at(offset, out);
  // What a collective read of OMPIO says that it read is what it was asked for, also behind the file's end.
  PENSTOCK_ASSIGN(const std::uint64_t now, together_->size());
  if (got.ok() && offset + *got > now) got = now > offset ? now - offset : 0;
  return settle(got, offset, out);
}

// Open MPI's OMPIO takes an error of the system for the end of the file.
Result<void> MpiioReader::settle(const Result<std::size_t>& got, std::uint64_t offset,
                                 std::span<std::byte> out) {
  if (!got.ok()) return files_.read_without_mpi(name_, got.error().what, offset, out);
  if (*got != out.size()) return files_.read_without_mpi(name_, "it gave too few bytes", offset, out);
  files_.moved().add_read(*got);
  return success();
}

Result<std::unique_ptr<Reader>> MpiioFiles::open(std::string_view name) {
  PENSTOCK_TRY(check_object_name(name));
  std::string own(name);
  PENSTOCK_ASSIGN(auto alone, open_file_of_mpi(own, MpiSharing::alone));
  return std::make_unique<MpiioReader>(*this, name, std::move(alone));
}

// The system is asked first: a folder, a FIFO or a missing right is none of what MPI-IO tells apart.
Result<std::unique_ptr<MpiFile>> MpiioFiles::open_file_of_mpi(const std::string& name, MpiSharing sharing) {
  const Result<Fd> fd = open_file(name);
  if (!fd.ok() && sharing == MpiSharing::alone) return fd.error();
  std::string path = fd.ok() ? root_.full(name) : "";  // the other ranks wait for this one, and fail with it
  if (path.find(':') != std::string::npos || path.size() > kLongestPath)
    path = "/proc/self/fd/" + std::to_string(fd->get());
  auto file = files_->open(path, root_.full(name), sharing);
  if (!file.ok()) PENSTOCK_TRY(open_file(name));  // it vanished, or that was the last descriptor
  return file;
}

Result<void> MpiioFiles::read_without_mpi(const std::string& name, const std::string& why,
                                          std::uint64_t offset, std::span<std::byte> out) {
  PENSTOCK_ASSIGN(const auto reader, PosixFiles::open(name));
  PENSTOCK_TRY(reader->read_at(offset, out));
  remark("MPI-IO failed where the system did not, which read in its place: " + why);
  return success();
}

Result<std::unique_ptr<Backend>> make_mpiio(std::string_view path, const Options& options) {
  PENSTOCK_TRY(check_folder_given("mpiio", path));
  PENSTOCK_ASSIGN(MpiHints hints, parse_hints(options.text("hints")));
  PENSTOCK_ASSIGN(const MpiModule* const module, mpi_module());
  PENSTOCK_ASSIGN(auto files, module->files(std::move(hints)));
  return std::make_unique<MpiioFiles>(path, options, std::move(files));
}

}  // namespace

const BackendInfo backend_mpiio{
    .name = "mpiio",
    .summary = "files in a folder, by MPI-IO",
    .options = kOptions,
    .make = make_mpiio,
};

}  // namespace penstock
