// Makes a tar archive (format ustar) of files while it is read. The contents of the files are not kept in
// memory, except that of session.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io_backends/core/system/fd.hpp"
#include "profiling/serve/http_response.hpp"

namespace penstock {

// The archive of a session: the files of its processes, and its session.json. Links and other files of the
// folder are left out.
class TarStream : public BodySource {
 public:
  // Makes the archive of the session in `folder`. In the archive, its files are in the folder `prefix`.
  // Error: not_found if the folder does not exist or contains no session.
  // The size of each file is fixed at this call. Bytes that are added to a file later are not in the archive.
  // If a file is truncated later, zeros replace the missing bytes. A session.json of at most 16 MiB is read
  // completely at this call, because it may be rewritten later.
  static Result<std::unique_ptr<TarStream>> of_session(const std::filesystem::path& folder,
                                                       const std::string& prefix);

  uint64_t bytes() const override { return bytes_; }
  // Reads the next bytes of the archive (see BodySource). Fails if a file of the session was deleted or
  // replaced meanwhile.
  Result<size_t> read(std::span<char> out) override;

 private:
  struct Member {
    std::string path;    // path of the file on disk
    std::string header;  // the tar header of this member
    uint64_t size = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    std::optional<std::string> text;  // the content, if the whole file was read in advance
  };
  TarStream() = default;
  Result<void> add_member(const std::filesystem::path& file, const std::string& name, bool read_now);
  Result<void> open_member(const Member& member);
  Result<size_t> read_member(const Member& member, uint64_t from, std::span<char> out);

  std::vector<Member> members_;
  uint64_t bytes_ = 0;
  size_t member_index_ = 0;  // index of the present member
  // offset in the present member: its header, content and padding; after the last member: in the final zeros
  uint64_t offset_in_member_ = 0;
  Fd fd_;  // the file of the present member
};

}  // namespace penstock
