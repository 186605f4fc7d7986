// Files in a folder as objects: what every back end over the operating system's files has in common. One that
// reads in another way of its own derives from this and overrides what it does otherwise.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io_backends/base/backend.hpp"
#include "io_backends/base/fd.hpp"
#include "io_backends/base/posix_root.hpp"
#include "io_backends/base/posix_writer.hpp"
#include "io_backends/base/sharded_counter.hpp"

namespace penstock {

// Rows for the option tables of such back ends.
inline constexpr OptionSpec kDirectOption{.name = "direct",
                                          .type = OptionType::boolean,
                                          .value = "0|1",
                                          .fallback = "0",
                                          .help = "bypass the page cache (O_DIRECT)"};
inline constexpr OptionSpec kPublishOption{
    .name = "publish",
    .type = OptionType::choice,
    .value = "auto|rename",
    .fallback = "auto",
    .help = "how a finished object gets its name: auto uses a nameless file where the system has them"};

class PosixReader : public Reader {
 public:
  PosixReader(Fd fd, bool direct, std::string name, MovedCounter& moved)
      : fd_(std::move(fd)), direct_(direct), name_(std::move(name)), moved_(moved) {}

  Result<std::uint64_t> size() override;
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override;

  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }  // for messages

 private:
  const Fd fd_;
  const bool direct_;
  const std::string name_;
  MovedCounter& moved_;
};

class PosixFiles : public Backend {
 public:
  // `options` from a table with kDirectOption and kPublishOption.
  PosixFiles(std::string_view path, const Options& options);

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Reader>> open(std::string_view name) override;
  Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint) override;
  Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                    std::span<std::byte> out) override;
  Namespace& names() override { return *names_; }
  MovedBytes moved_bytes() const override { return moved_.sum(); }
  std::optional<std::filesystem::path> native_path(std::string_view name) const override;

 protected:
  // O_RDONLY, with O_DIRECT where that is asked for. What is no file may come back too.
  Result<Fd> open_to_read(std::string_view name);
  // As open_to_read(), and `is a directory` for folders.
  Result<Fd> open_file(std::string_view name);

  PosixRoot root_;
  const bool direct_;
  Caps caps_;
  MovedCounter moved_;

 private:
  const std::unique_ptr<Namespace> names_;
  PosixWriting writing_{root_, moved_};
};

// invalid_argument where the path part of a TIER is empty.
Result<void> check_folder_given(std::string_view backend, std::string_view path);

}  // namespace penstock
