// The common part of all back ends whose objects are files in a folder of the operating system. Such a back
// end derives from PosixFiles and overrides the functions that differ. Back ends that read directly
// (O_DIRECT) or asynchronously derive from DirectFiles (direct_files.hpp).
#pragma once

#include <fcntl.h>

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
#include "io_backends/files/posix_root.hpp"

namespace penstock {

// The option `publish`, which all these back ends have in their option tables.
inline constexpr OptionSpec kPublishOption{.name = "publish",
                                           .role = OptionRole::work,
                                           .type = OptionType::choice,
                                           .value = "auto|rename",
                                           .fallback = "auto",
                                           .help =
                                               "how a finished object gets its name; auto: an unnamed file "
                                               "(O_TMPFILE) where supported, else rename"};

// A Reader that reads through the page cache.
class PosixReader : public Reader {
 public:
  PosixReader(Fd fd, std::string name, MovedCounter& moved)
      : fd_(std::move(fd)), name_(std::move(name)), moved_(moved) {}

  Result<uint64_t> size() override;
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override;

  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }  // the object's name for messages

 protected:
  MovedCounter& moved() { return moved_; }
  // Counts the bytes that were read. Returns an error if they are fewer than `length`.
  Result<void> check_read(const FullIo& io, uint64_t offset, uint64_t length);

 private:
  const Fd fd_;
  const std::string name_;
  MovedCounter& moved_;
};

class PosixFiles : public Backend {
 public:
  // `options` must come from a table with kPublishOption. `advice` is the POSIX_FADV_ constant for each file
  // that is opened to be read. With `eof_read`, a read of a whole object makes one more system call, which
  // finds the end of the file.
  PosixFiles(std::string_view path, const Options& options, int advice = POSIX_FADV_NORMAL,
             bool eof_read = false);

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Reader>> open(std::string_view name) override;
  Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint) override;
  Result<uint64_t> read_object(std::string_view name, uint64_t length_hint,
                               std::span<std::byte> out) override;
  Namespace& names() override { return *names_; }
  MovedBytes moved_bytes() const override { return moved_.sum(); }
  std::vector<std::string> remarks() const override;
  std::optional<std::filesystem::path> native_path(std::string_view name) const override;

  // Adds a sentence to remarks(), unless it is already there. The queues of the back end call this, too.
  void remark(std::string sentence);

 protected:
  // Opens with O_RDONLY and `more_flags`. May also return a folder or a special file.
  Result<Fd> open_to_read(std::string_view name, int more_flags = 0);
  // Like open_to_read(), but fails with EISDIR for a folder.
  Result<Fd> open_file(std::string_view name);
  // Returns the st_mode of an opened file; fails with EISDIR for a folder.
  Result<unsigned> mode_of(int fd, std::string_view name) const;
  // The two steps of read_object() before and after the read. object_length() returns how many bytes to read.
  // check_object_read() counts the bytes that were read, and returns an error if they are fewer than
  // `length`.
  Result<uint64_t> object_length(int fd, std::string_view name, size_t buffer_bytes) const;
  Result<void> check_object_read(const FullIo& io, std::string_view name, uint64_t length);

  PosixRoot root_;
  Caps caps_;
  MovedCounter moved_;
  const bool eof_read_;

 private:
  const int advice_;
  mutable std::mutex mutex_;  // guards remarks_
  std::vector<std::string> remarks_;
  const std::unique_ptr<Namespace> names_;
};

// Reads all of `out` through the page cache, or up to the end of the file.
FullIo pread_full(int fd, uint64_t offset, std::span<std::byte> out);

// Fails with invalid_argument if the path of the tier is empty.
Result<void> check_folder_given(std::string_view backend, std::string_view path);

}  // namespace penstock
