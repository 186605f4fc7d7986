#include "profiling/serve/tar_stream.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "io_backends/core/tar_header.hpp"
#include "profiling/session/session_files.hpp"
#include "profiling/session_abi.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kEndBytes = 2 * kTarBlockBytes;
constexpr uint64_t kMostNoteBytes = 16U << 20U;
constexpr std::string_view kNoteFile = "session.json";

uint64_t padded_size(uint64_t size) {
  return size + tar_padding(size);
}

Result<std::string> read_whole(int fd, uint64_t size, const std::string& path) {
  std::string text(size, '\0');
  for (size_t copied = 0; copied < text.size();) {
    const ssize_t got =
        retry_eintr([&] { return ::pread(fd, text.data() + copied, text.size() - copied, off_t(copied)); });
    if (got < 0) return errno_error(errno, "cannot read", path);
    if (got == 0) break;
    copied += size_t(got);
  }
  return text;
}

}  // namespace

Result<void> TarStream::add_member(const fs::path& file, const std::string& name, bool read_now) {
  const Fd fd(retry_eintr([&] { return ::open(file.c_str(), O_RDONLY | kSessionOpenFlags); }));
  if (!fd && (errno == ELOOP || errno == ENOENT)) return success();
  if (!fd) return errno_error(errno, "cannot read", file.string());
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) return errno_error(errno, "cannot inspect", file.string());
  if (!S_ISREG(about.st_mode)) return success();
  Member member;
  member.path = file.string();
  member.size = uint64_t(about.st_size);
  member.device = about.st_dev;
  member.inode = about.st_ino;
  if (read_now && member.size <= kMostNoteBytes) {
    PENSTOCK_ASSIGN(member.text, read_whole(fd.get(), member.size, member.path));
  }
  const auto header = tar_header(
      name,
      {.bytes = member.size, .mode = 0600, .time_s = uint64_t(std::max<int64_t>(about.st_mtim.tv_sec, 0))});
  if (!header) return make_error(Errc::invalid_argument, "'{}' is too long for an archive", name);
  member.header.assign(header->data(), header->size());
  bytes_ += kTarBlockBytes + padded_size(member.size);
  members_.push_back(std::move(member));
  return success();
}

Result<std::unique_ptr<TarStream>> TarStream::of_session(const fs::path& folder, const std::string& prefix) {
  PENSTOCK_ASSIGN(const std::vector<fs::path> files, session_files(folder));
  std::unique_ptr<TarStream> stream(new TarStream);
  for (const fs::path& file : files)
    PENSTOCK_TRY(stream->add_member(file, prefix + "/" + file.filename().string(), false));
  if (stream->members_.empty())
    return make_error(Errc::not_found, "there is no session file in '{}'", folder.string());
  PENSTOCK_TRY(stream->add_member(folder / kNoteFile, prefix + "/" + std::string(kNoteFile), true));
  stream->bytes_ += kEndBytes;
  return stream;
}

Result<void> TarStream::open_member(const Member& member) {
  fd_ = Fd(retry_eintr([&] { return ::open(member.path.c_str(), O_RDONLY | kSessionOpenFlags); }));
  if (!fd_) return errno_error(errno, "cannot read", member.path);
  struct stat about {};
  if (::fstat(fd_.get(), &about) != 0) return errno_error(errno, "cannot inspect", member.path);
  if (about.st_dev != member.device || about.st_ino != member.inode)
    return make_error(Errc::corrupt, "'{}' was replaced by another file: download the session again",
                      member.path);
  return success();
}

Result<size_t> TarStream::read_member(const Member& member, uint64_t from, std::span<char> out) {
  if (member.text) return member.text->copy(out.data(), out.size(), from);
  if (!fd_) PENSTOCK_TRY(open_member(member));
  const ssize_t got = retry_eintr([&] { return ::pread(fd_.get(), out.data(), out.size(), off_t(from)); });
  if (got < 0) return errno_error(errno, "cannot read", member.path);
  if (got > 0) return size_t(got);
  // the file has become shorter since its size was written to the header: zeros replace the missing bytes
  std::fill(out.begin(), out.end(), '\0');
  return out.size();
}

// Fills `out` with the next bytes of the archive. offset_in_member_ moves through a member: its header, its
// content, and zeros up to a whole block. Then member_index_ moves to the next member. After the last member
// come the zeros that end an archive.
Result<size_t> TarStream::read(std::span<char> out) {
  size_t copied = 0;
  while (copied < out.size()) {
    std::span<char> room = out.subspan(copied);
    const auto limit_room = [&](uint64_t left) {
      room = room.first(size_t(std::min<uint64_t>(room.size(), left)));
    };
    if (member_index_ == members_.size()) {
      limit_room(kEndBytes - offset_in_member_);
      if (room.empty()) break;
      std::fill(room.begin(), room.end(), '\0');
    } else if (const Member& member = members_[member_index_]; offset_in_member_ < kTarBlockBytes) {
      limit_room(kTarBlockBytes - offset_in_member_);
      member.header.copy(room.data(), room.size(), offset_in_member_);
    } else if (offset_in_member_ < kTarBlockBytes + member.size) {
      limit_room(kTarBlockBytes + member.size - offset_in_member_);
      PENSTOCK_ASSIGN(const size_t got, read_member(member, offset_in_member_ - kTarBlockBytes, room));
      room = room.first(got);
    } else if (offset_in_member_ < kTarBlockBytes + padded_size(member.size)) {
      limit_room(kTarBlockBytes + padded_size(member.size) - offset_in_member_);
      std::fill(room.begin(), room.end(), '\0');
    } else {
      ++member_index_;
      offset_in_member_ = 0;
      fd_.close();
      continue;
    }
    copied += room.size();
    offset_in_member_ += room.size();
  }
  return copied;
}

}  // namespace penstock
