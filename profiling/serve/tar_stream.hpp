// Files as one ustar archive that is made while it is read: no more than a block of it is ever held.
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

// What an archive of a session has: the files that its processes wrote, and its note. Links and other files
// of the folder are none of its.
class TarStream : public BodySource {
 public:
  // `prefix`: the folder that all is in. Looks at all of them now: an archive has of each file as many
  // bytes as it has at this moment, however it grows meanwhile; what is cut off it is zeros. The note, which
  // may be written anew, is taken now. not_found where there is no such folder, or no session in it.
  static Result<std::unique_ptr<TarStream>> of_session(const std::filesystem::path& folder,
                                                       const std::string& prefix);

  std::uint64_t bytes() const override { return bytes_; }
  // An error where a file has gone, or is another one now.
  Result<std::size_t> read(std::span<char> out) override;

 private:
  struct Member {
    std::string path;    // to open it by
    std::string header;  // finished
    std::uint64_t size = 0;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::optional<std::string> text;  // all of it, where it is short and was taken
  };
  TarStream() = default;
  Result<void> add(const std::filesystem::path& file, const std::string& name, bool take);
  Result<void> open(const Member& member);
  Result<std::size_t> read_member(const Member& member, std::uint64_t from, std::span<char> out);

  std::vector<Member> members_;
  std::uint64_t bytes_ = 0;
  std::size_t at_ = 0;       // which member
  std::uint64_t place_ = 0;  // within its header, bytes and padding; behind the last one: within the end
  Fd fd_;                    // of that member
};

}  // namespace penstock
