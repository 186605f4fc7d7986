// The common part of all back ends whose objects are files in a folder of the operating system. Such a back
// end derives from PosixFiles and overrides the functions that differ.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/sharded_counter.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/files/direct_io.hpp"
#include "io_backends/files/posix_root.hpp"
#include "io_backends/files/posix_writer.hpp"

namespace penstock {

// Rows of the option tables of these back ends.
inline constexpr OptionSpec kDirectOption{.name = "direct",
                                          .role = OptionRole::work,
                                          .type = OptionType::boolean,
                                          .value = "0|1",
                                          .fallback = "0",
                                          .help = "bypass the page cache (O_DIRECT)"};
inline constexpr OptionSpec kFallbackOption{
    .name = "fallback",
    .role = OptionRole::work,
    .type = OptionType::choice,
    .value = "none|buffered",
    .fallback = "none",
    .help = "what direct=1 does where the file system has no direct I/O: fail, or use the page cache"};
inline constexpr OptionSpec kPublishOption{
    .name = "publish",
    .role = OptionRole::work,
    .type = OptionType::choice,
    .value = "auto|rename",
    .fallback = "auto",
    .help = "how a finished object gets its name: auto uses a nameless file where the system has them"};

// The settings for writing and reading files of a back end.
struct PosixSettings {
  bool direct = false;  // open files with O_DIRECT
  // use the page cache if the file system has no O_DIRECT; else reads and writes fail
  bool fallback_to_buffered = false;
  bool nameless = true;   // an unpublished object has no name, if the system supports that (O_TMPFILE)
  bool eof_read = false;  // after a whole object, make one more read to see its end
  int advice = 0;         // a POSIX_FADV_ constant, for each file that is opened for reading
};

// Reads the settings from options whose table has kDirectOption, kFallbackOption and kPublishOption.
PosixSettings posix_settings(const Options& options);

class PosixReader : public Reader {
 public:
  // `direct`: the alignment for a descriptor with O_DIRECT; none for buffered reads.
  PosixReader(Fd fd, std::optional<DirectAlignment> direct, std::string name, MovedCounter& moved)
      : fd_(std::move(fd)), direct_(direct), name_(std::move(name)), moved_(moved) {}

  Result<std::uint64_t> size() override;
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override;

  int fd() const { return fd_.get(); }
  const std::optional<DirectAlignment>& direct() const { return direct_; }
  const std::string& name() const { return name_; }  // the object's name for messages

 protected:
  MovedCounter& moved() { return moved_; }

 private:
  const Fd fd_;
  const std::optional<DirectAlignment> direct_;
  const std::string name_;
  MovedCounter& moved_;
};

class PosixFiles : public Backend {
 public:
  PosixFiles(std::string_view path, const PosixSettings& settings);
  PosixFiles(std::string_view path, const Options& options) : PosixFiles(path, posix_settings(options)) {}

  const Caps& caps() const override;
  Result<std::unique_ptr<Reader>> open(std::string_view name) override;
  Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint) override;
  Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                    std::span<std::byte> out) override;
  Namespace& names() override { return *names_; }
  MovedBytes moved_bytes() const override { return moved_.sum(); }
  std::vector<std::string> remarks() const override;
  std::optional<std::filesystem::path> native_path(std::string_view name) const override;

  // Adds a remark about this back end, also for its queues. An equal remark is added only once.
  void remark(std::string sentence);

  // Opens with O_RDONLY, and with O_DIRECT if direct I/O is on. May also return a folder or a special file.
  Result<Fd> open_to_read(std::string_view name);
  // The alignment for direct reads from a file of open_to_read(); none if reads are buffered. ask_alignment()
  // asks the system, and this back end keeps the largest answer. If the file has no direct I/O and
  // fallback=buffered, it also turns direct I/O off for all later reads. alignment() asks only if there is no
  // answer yet. likely_alignment() never asks. Another file system below the same root may need a larger
  // alignment. Then its reads fail with EINVAL.
  Result<std::optional<DirectAlignment>> ask_alignment(int fd, std::string_view name);
  Result<std::optional<DirectAlignment>> alignment(int fd, std::string_view name);
  std::optional<DirectAlignment> likely_alignment() const;

  // Finishes an asynchronous read. The system was asked for `aim` and returned `got` bytes, or a negative
  // errno. `bytes` of them are wanted. This function copies them to the operation's memory and counts them.
  // If the read was short, interrupted, would have had to wait, or was refused with EINVAL, blocking calls do
  // it again. Any other errno becomes the same error as that of a blocking call; `failed` names the
  // operation.
  Result<std::uint64_t> finish_read(const Operation& operation, const Aim& aim, std::size_t bytes,
                                    std::int64_t got, std::string_view failed = "cannot read");

  // The name of what an operation reads, for messages.
  std::string full_name(const Operation& operation) const;

 protected:
  // Like open_to_read(), but fails with EISDIR for a folder. `mode` is set to the file's st_mode.
  Result<Fd> open_file(std::string_view name, unsigned* mode = nullptr);

  PosixRoot root_;
  DirectMode direct_;
  Caps caps_;
  MovedCounter moved_;

 private:
  const bool eof_read_;
  const int advice_;
  std::atomic<DirectAlignment> alignment_{DirectAlignment{0, 0}};  // zeros: the system has not been asked yet
  mutable std::mutex mutex_;                                       // guards remarks_
  std::vector<std::string> remarks_;
  mutable std::once_flag left_direct_;
  mutable Caps buffered_caps_;  // the capabilities after direct I/O was turned off
  const std::unique_ptr<Namespace> names_;
  PosixWriting writing_{root_, moved_, direct_};
};

// Fails with invalid_argument if the path of the tier is empty.
Result<void> check_folder_given(std::string_view backend, std::string_view path);

}  // namespace penstock
