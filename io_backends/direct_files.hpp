// The common part of the back ends over files that can read directly (O_DIRECT) or asynchronously: `posix`
// with direct=1, `uring` and `libaio`.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/files/direct_io.hpp"
#include "io_backends/posix.hpp"

namespace penstock {

// The options `direct` and `fallback`, which the back ends above have in their option tables.
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
    .help = "with direct=1 on a file system without direct I/O: fail, or use the page cache"};

class DirectReader : public PosixReader {
 public:
  // `direct`: the alignment for direct reads, if the descriptor has O_DIRECT; empty for buffered reads.
  DirectReader(Fd fd, std::optional<DirectAlignment> direct, std::string name, MovedCounter& moved)
      : PosixReader(std::move(fd), std::move(name), moved), direct_(direct) {}

  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override;
  const std::optional<DirectAlignment>& direct() const { return direct_; }

 private:
  const std::optional<DirectAlignment> direct_;
};

class DirectFiles : public PosixFiles {
 public:
  // `options` must come from a table with kDirectOption and kFallbackOption. With direct=0 the back end uses
  // the page cache. See PosixFiles (posix.hpp) for the other parameters.
  DirectFiles(std::string_view path, const Options& options, int advice = POSIX_FADV_NORMAL,
              bool eof_read = false);

  const Caps& caps() const override;
  Result<std::unique_ptr<Reader>> open(std::string_view name) override;
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override;
  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override;
  std::vector<std::string> remarks() const override;

  // Opens with O_RDONLY, and with O_DIRECT if direct I/O is on. May also return a folder or a special file.
  Result<Fd> open_direct(std::string_view name);
  // The three functions below return the alignment for direct reads from a file of open_direct(). They return
  // no value if reads go through the page cache.
  // ask_alignment() asks the system, and this back end keeps the largest answer. If the file has no direct
  // I/O and fallback=buffered, it also turns direct I/O off for all later opens.
  // alignment() asks the system only if this back end has no answer yet.
  // likely_alignment() never asks the system. So if another file system below the same root needs a larger
  // alignment, a read there fails with EINVAL.
  Result<std::optional<DirectAlignment>> ask_alignment(int fd, std::string_view name);
  Result<std::optional<DirectAlignment>> alignment(int fd, std::string_view name);
  std::optional<DirectAlignment> likely_alignment() const;

  // Finishes an asynchronous read. The system did `read` and returned `got`: a number of bytes, or a negative
  // errno. This function copies the `bytes` bytes that the operation wants to its memory and counts them. If
  // the read was short or failed with EINTR, EAGAIN or EINVAL, blocking calls repeat it. Any other errno
  // becomes the same error as that of a blocking call; `failed_operation` names what failed.
  Result<uint64_t> finish_read(const Operation& operation, const AlignedRead& read, size_t bytes, int64_t got,
                               std::string_view failed_operation = "cannot read");

  // The full name of what an operation reads, for messages.
  std::string full_name(const Operation& operation) const;

 protected:
  DirectMode direct_;

 private:
  std::atomic<DirectAlignment> alignment_{DirectAlignment{0, 0}};  // zeros: the system has not been asked yet
  mutable std::once_flag buffered_caps_once_;
  mutable Caps buffered_caps_;  // the capabilities after direct I/O was turned off
};

}  // namespace penstock
