// Threads: any thread calls MpiFiles and its files.
// Lock: opening and closing hold the lock of MpiSerializer while they wait for the other ranks, because these
// calls must not overlap. Other calls hold it only if MPI does not allow several threads at once.
// Memory: errors and names allocate. MPI may allocate in any call.
// Ctrl-C: a signal does not end a call in this file.
// Crash: the other ranks wait for a dead rank until the launcher ends the job.
#include "io_backends/mpi/files.hpp"

#include <mpi.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <string>

#include "io_backends/mpi/lifetime.hpp"

namespace penstock {
namespace {

constexpr size_t kMaxReadBytes = INT_MAX;

class OpenedFile final : public MpiFile {
 public:
  OpenedFile(const MpiSerializer& serializer, MPI_File file, std::string_view name, MpiSharing sharing)
      : serializer_(serializer), file_(file), name_(name), sharing_(sharing) {}
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;
  ~OpenedFile() override {
    const auto call_lock = serializer_.lock_collective();
    MPI_File_close(&file_);
  }

  Result<uint64_t> size() override {
    const auto call_lock = serializer_.lock_call();
    MPI_Offset bytes = 0;
    const int code = MPI_File_get_size(file_, &bytes);
    if (code != MPI_SUCCESS) return mpi_error(code, "get from MPI-IO the size of '" + name_ + "'");
    return uint64_t(bytes);
  }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> out) override {
    const auto call_lock = serializer_.lock_call();
    if (sharing_ == MpiSharing::shared) {
      const bool fits = out.size() <= kMaxReadBytes;
      auto got =
          // if this rank's request is invalid, it still makes the collective call, because the other ranks
          // wait for it
          read_once(offset, fits ? out : std::span<std::byte>());
      if (fits) return got;
      return make_error(Errc::unsupported, "cannot read " + std::to_string(out.size()) + " bytes of '" +
                                               name_ + "': one collective read is limited to 2^31 - 1 bytes");
    }
    size_t done = 0;
    while (done < out.size()) {
      PENSTOCK_ASSIGN(const size_t got, read_once(offset + done, out.subspan(done)));
      if (got == 0) break;
      done += got;
    }
    return done;
  }

 private:
  // One call of MPI-IO. Returns the number of bytes read.
  Result<size_t> read_once(uint64_t offset, std::span<std::byte> out) {
    auto* const read_function = sharing_ == MpiSharing::shared ? &MPI_File_read_at_all : &MPI_File_read_at;
    const int wanted = int(std::min(out.size(), kMaxReadBytes));
    MPI_Status status{};
    int got = 0;
    int code = read_function(file_, static_cast<MPI_Offset>(offset), out.data(), wanted, MPI_BYTE, &status);
    if (code == MPI_SUCCESS) code = MPI_Get_count(&status, MPI_BYTE, &got);
    if (code != MPI_SUCCESS) return mpi_error(code, "read '" + name_ + "' by MPI-IO");
    return size_t(std::clamp(got, 0, wanted));
  }

  const MpiSerializer& serializer_;
  MPI_File file_;
  const std::string name_;
  const MpiSharing sharing_;
};

class MpiLibraryFiles final : public MpiFiles {
 public:
  MpiLibraryFiles(MpiHints hints, bool many_threads) : hints_(std::move(hints)), serializer_(many_threads) {}

  Result<std::unique_ptr<MpiFile>> open(const std::string& path, std::string_view name,
                                        MpiSharing sharing) override {
    // The kind of file is checked before it is opened: to open a pipe would block every rank until a writer
    // opens it.
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode))
      return errno_error(ESPIPE, "cannot read", name);
    const auto call_lock = serializer_.lock_collective();
    const bool shared = sharing == MpiSharing::shared;
    MPI_Comm ranks = shared ? MPI_COMM_WORLD : MPI_COMM_SELF;
    MPI_Info mpi_info = MPI_INFO_NULL;
    if (!hints_.empty()) {
      MPI_Info_create(&mpi_info);
      for (const auto& [key, value] : hints_) MPI_Info_set(mpi_info, key.c_str(), value.c_str());
    }
    const IgnoreMpiLeaks ignore_leaks;
    MPI_File file = MPI_FILE_NULL;
    const int opened = MPI_File_open(ranks, path.c_str(), MPI_MODE_RDONLY, mpi_info, &file);
    if (mpi_info != MPI_INFO_NULL) MPI_Info_free(&mpi_info);
    int any_failed = opened == MPI_SUCCESS ? 0 : 1;
    if (shared) MPI_Allreduce(MPI_IN_PLACE, &any_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (opened != MPI_SUCCESS) return mpi_error(opened, "open '" + std::string(name) + "' by MPI-IO");
    // If only other ranks failed, this rank's file stays open. Closing it is collective, and would wait for
    // the ranks that failed, which have no file to close.
    if (any_failed != 0)
      return make_error(Errc::io, "cannot open '" + std::string(name) +
                                      "' by MPI-IO: another rank of the job failed to open it");
    return std::unique_ptr<MpiFile>(std::make_unique<OpenedFile>(serializer_, file, name, sharing));
  }

  bool many_threads() const override { return serializer_.many_threads(); }

 private:
  const MpiHints hints_;
  const MpiSerializer serializer_;
};

}  // namespace

Result<std::unique_ptr<MpiFiles>> mpi_files(MpiHints hints) {
  PENSTOCK_ASSIGN(const int threads, start_mpi());
  if (threads < MPI_THREAD_SERIALIZED)
    return make_error(Errc::unsupported,
                      "this MPI allows calls from one thread only, and Penstock uses several: use an MPI "
                      "with MPI_THREAD_SERIALIZED or higher, or the back end posix");
  for (const auto& [key, value] : hints)
    if (key.size() >= MPI_MAX_INFO_KEY || value.size() >= MPI_MAX_INFO_VAL)
      return make_error(Errc::invalid_argument, "the hint '" + key + "' is longer than MPI allows");
  return std::unique_ptr<MpiFiles>(
      std::make_unique<MpiLibraryFiles>(std::move(hints), threads >= MPI_THREAD_MULTIPLE));
}

}  // namespace penstock
