// tar archives (POSIX.1-1988 ustar with the pax and GNU extensions), as far as samples need them: headers of
// regular files are made, members are found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/object_window.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/tar_header.hpp"

namespace penstock {

// Appends the header of a regular file: mode 644, no owner, time 0 (1970), so that the same content makes the
// same archive. Names that do not fit into the header get a pax header in front, sizes from 8 GiB on are in
// base 256.
void put_tar_header(std::vector<std::byte>& out, std::string_view name, std::uint64_t bytes);

// Walks over the regular files of an archive. Names come from the header, a pax header or GNU's long name,
// whichever says most: relative, no part of them "..", without "./" in front. Links, folders, devices and
// what it does not know are stepped over. `corrupt` for wrong checksums, sizes, and names that lead out of
// the archive; `truncated` where it ends too early (also for want of the zeros that close an archive: what
// was cut off between members would be missing unnoticed); `unsupported` for sparse files. Each names object
// and offset. One thread.
class TarReader {
 public:
  explicit TarReader(ObjectWindow& object) : object_(object) {}
  // Nothing at the end of the archive. The member's memory is reused by the next call.
  Result<const ArchiveMember*> next();

 private:
  struct Header;
  Result<Header> read_header();
  Result<void> read_pax(Extent content);
  Result<void> set_pax(std::uint64_t at, std::string_view key, std::string_view value);
  Result<void> set_name(std::uint64_t at, std::string_view name);

  ObjectWindow& object_;
  std::uint64_t at_ = 0;
  std::optional<std::string> next_name_;  // by extension headers, of the member that follows them
  std::optional<std::uint64_t> next_bytes_;
  ArchiveMember member_;
};

}  // namespace penstock
