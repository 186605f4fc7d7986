// Reads and writes tar archives (POSIX.1-1988 ustar with the pax and GNU extensions), but only what samples
// need: it makes headers of regular files, and finds the members of an archive.
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

// Appends the header of a regular file. The header has mode 644, no owner and time 0 (1970), so that the same
// content makes the same archive. If the name does not fit into the header, a pax header with the name comes
// before it. A size of 8 GiB or more is written in base 256.
void put_tar_header(std::vector<std::byte>& out, std::string_view name, uint64_t bytes);

// Reads the regular files of an archive one after another. Only one thread at a time may use it. Skips links
// (which it counts), folders, devices and unknown entries. A file's name comes from a pax header or from
// GNU's long name if there is one, otherwise from the file's own header. Names are relative, without "./" in
// front and without a part "..".
//
// Errors name the object and the offset. `corrupt`: a checksum or size is wrong, or a name leads out of the
// archive. `truncated`: the archive ends too early, or the zeros at its end are missing. (Without the zeros,
// a cut between two members would not be noticed.) `unsupported`: a sparse file.
class TarReader {
 public:
  explicit TarReader(ObjectWindow& object) : object_(object) {}
  // The next file; nullptr at the end of the archive. The result is valid until the next call.
  Result<const ArchiveMember*> next();

  uint64_t links() const { return links_; }  // links that were skipped so far
  const std::string& first_link() const { return first_link_; }
  // After the end of the archive: how many bytes follow it, from the first one that is not zero. Like tar,
  // the reader ends there, also if another archive follows.
  Result<uint64_t> bytes_after_end();

 private:
  struct Header;
  Result<Header> read_header();
  Result<void> read_pax(Extent content);
  Result<void> apply_pax_record(uint64_t at, std::string_view key, std::string_view value);
  Result<void> set_name(uint64_t at, std::string_view name);

  ObjectWindow& object_;
  uint64_t offset_ = 0;
  std::optional<std::string> next_name_;  // from a pax header or a long name; for the next entry
  std::optional<uint64_t> next_bytes_;    // size of the next entry, from a pax header
  ArchiveMember member_;
  uint64_t links_ = 0;
  std::string first_link_;
};

}  // namespace penstock
