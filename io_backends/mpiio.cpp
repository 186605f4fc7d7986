// The back end `mpiio`: a folder of the operating system, read by MPI-IO. One rank reads alone, or all ranks
// of a job read together.
//
// Threads: any thread calls the back end. If MPI allows only one thread at a time (MPI_THREAD_SERIALIZED),
// the calls of other threads wait.
// Ranks: read_at_all() is collective. All ranks of the job must call it, and it may block until they do.
// Lock: none in this file. The lock of MPI's calls is in mpi/files.cpp (MpiSerializer).
// Memory: opening a file and errors allocate. MPI may allocate in any call.
// Ctrl-C: it ends no call here.
// Crash: reads write nothing. Objects are written as by the back end posix. The other ranks wait for a dead
// rank until the launcher ends the job.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/posix.hpp"

namespace penstock {

extern const BackendInfo backend_mpiio;

namespace {

constexpr OptionSpec kMpiioOptions[] = {
    kPublishOption,
    {.name = "hints",
     .role = OptionRole::work,
     .value = "KEY:VALUE[+KEY:VALUE]...",
     .help = "hints passed to MPI-IO when a file is opened for reading (MPI_Info)"},
};

// The longest path, in bytes, that is passed to MPI-IO: Open MPI copies a path and a suffix into 256 bytes. A
// file with a longer path is opened by the path of a descriptor in /proc. That is also done for a path with a
// ':', because MPI libraries take the part before it for the name of a file system.
constexpr size_t kMaxPathBytes = 224;

Result<MpiHints> parse_hints(std::string_view text) {
  MpiHints hints;
  while (!text.empty()) {
    const std::string_view hint = take_part(text, '+');
    const size_t colon = hint.find(':');
    if (colon == 0 || colon >= hint.size() - 1)
      return make_error(Errc::invalid_argument,
                        "'{}' is not a hint: write hints=KEY:VALUE, several joined by '+', as in "
                        "hints=romio_cb_read:enable+cb_nodes:2",
                        hint);
    hints.emplace_back(hint.substr(0, colon), hint.substr(colon + 1));
  }
  return hints;
}

class MpiioFiles final : public PosixFiles {
 public:
  MpiioFiles(std::string_view path, const Options& options, std::unique_ptr<MpiFiles> files)
      : PosixFiles(path, options), files_(std::move(files)) {
    caps_.collective_reads = true;
    if (files_->many_threads()) return;
    caps_.max_useful_threads = 1;
    remark("this MPI allows one call at a time (MPI_THREAD_SERIALIZED): other threads wait");
  }

  Result<std::unique_ptr<Reader>> open(std::string_view name) override;
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override {
    if (!has_written_.exchange(true, std::memory_order_relaxed))
      remark("only reads use MPI-IO: writes used the back end posix");
    return PosixFiles::create(name, bytes_hint);
  }
  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override {
    return Backend::read_object(name, length_hint, out);  // uses open()  NOLINT(bugprone-parent-virtual-call)
  }

  Result<std::unique_ptr<MpiFile>> open_mpi_file(const std::string& name, MpiSharing sharing);
  // Reads by system calls after a failure of MPI-IO. If they fail, the error is the same as in the other back
  // ends. If they succeed, a remark says why MPI-IO failed (`why`).
  Result<void> read_without_mpi(const std::string& name, const std::string& why, uint64_t offset,
                                std::span<std::byte> out);
  std::string full_path(std::string_view name) const { return root_.full_path(name); }
  MovedCounter& moved() { return moved_; }

 private:
  const std::unique_ptr<MpiFiles> files_;
  std::atomic<bool> has_written_ = false;
};

class MpiioReader final : public Reader {
 public:
  MpiioReader(MpiioFiles& files, std::string_view name, std::unique_ptr<MpiFile> own_file)
      : files_(files), name_(name), own_file_(std::move(own_file)) {}

  Result<uint64_t> size() override { return own_file_->size(); }
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
    if (!is_valid_range(offset, out.size()))
      return truncated_error(files_.full_path(name_), offset, out.size());
    return finish_read(own_file_->read_at(offset, out), offset, out);
  }
  Result<void> read_at_all(uint64_t offset, std::span<std::byte> out) override;

 private:
  static bool is_valid_range(uint64_t offset, uint64_t length) {
    constexpr auto kMaxOffset = uint64_t(INT64_MAX);
    return offset <= kMaxOffset && length <= kMaxOffset - offset;
  }
  Result<void> finish_read(const Result<size_t>& got, uint64_t offset, std::span<std::byte> out);

  MpiioFiles& files_;
  const std::string name_;
  const std::unique_ptr<MpiFile> own_file_;
  std::unique_ptr<MpiFile> shared_file_;  // opened by the first collective read; null until then
};

// Reads together with all other ranks (collective). All ranks must make the same MPI calls. So even if the
// request of this rank is invalid, it first makes an empty collective read, and then returns the error.
Result<void> MpiioReader::read_at_all(uint64_t offset, std::span<std::byte> out) {
  if (!shared_file_) {
    PENSTOCK_ASSIGN(shared_file_, files_.open_mpi_file(name_, MpiSharing::shared));
  }
  if (!is_valid_range(offset, out.size())) {
    PENSTOCK_TRY(shared_file_->read_at(0, {}));
    return truncated_error(files_.full_path(name_), offset, out.size());
  }
  Result<size_t> got = shared_file_->read_at(offset, out);
  // The MPI-IO of Open MPI (OMPIO) always reports as many bytes as requested for a collective read, also
  // after the end of the file. So the size is checked.
  PENSTOCK_ASSIGN(const uint64_t current_size, shared_file_->size());
  if (got.ok() && offset + *got > current_size) got = current_size > offset ? current_size - offset : 0;
  return finish_read(got, offset, out);
}

// Handles the result of MPI-IO. If the read failed or was short, repeats it by system calls. A short read
// need not mean that the file has ended: the MPI-IO of Open MPI (OMPIO) also reports one if a system call
// failed.
Result<void> MpiioReader::finish_read(const Result<size_t>& got, uint64_t offset, std::span<std::byte> out) {
  if (!got.ok()) return files_.read_without_mpi(name_, got.error().what, offset, out);
  if (*got != out.size()) return files_.read_without_mpi(name_, "it returned too few bytes", offset, out);
  files_.moved().add_read(*got);
  return success();
}

Result<std::unique_ptr<Reader>> MpiioFiles::open(std::string_view name) {
  PENSTOCK_TRY(check_object_name(name));
  std::string name_text(name);
  PENSTOCK_ASSIGN(auto own_file, open_mpi_file(name_text, MpiSharing::alone));
  return std::make_unique<MpiioReader>(*this, name, std::move(own_file));
}

// The file is first opened by a system call, because MPI-IO does not distinguish a folder, a FIFO and a
// missing permission.
Result<std::unique_ptr<MpiFile>> MpiioFiles::open_mpi_file(const std::string& name, MpiSharing sharing) {
  const Result<Fd> fd = open_file(name);
  if (!fd.ok() && sharing == MpiSharing::alone) return fd.error();
  // If this rank cannot open the file, it still makes the collective call, because the other ranks wait for
  // it. Its empty path makes that call fail on all ranks.
  std::string path = fd.ok() ? root_.full_path(name) : "";
  if (path.find(':') != std::string::npos || path.size() > kMaxPathBytes)
    path = "/proc/self/fd/" + std::to_string(fd->get());
  auto file = files_->open(path, root_.full_path(name), sharing);
  // After a failure of MPI-IO, a system call opens the file once more. Its error names the cause, for example
  // that the file was removed, or that no descriptor is free.
  if (!file.ok()) PENSTOCK_TRY(open_file(name));
  return file;
}

Result<void> MpiioFiles::read_without_mpi(const std::string& name, const std::string& why, uint64_t offset,
                                          std::span<std::byte> out) {
  PENSTOCK_ASSIGN(const auto reader, PosixFiles::open(name));
  PENSTOCK_TRY(reader->read_at(offset, out));
  remark("MPI-IO failed; these reads succeeded through the system instead: " + why);
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
    .summary = "files in a folder, read through MPI-IO",
    .options = kMpiioOptions,
    .make = make_mpiio,
};

}  // namespace penstock
