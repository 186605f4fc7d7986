// ZIP archives of stored (uncompressed) members, with ZIP64 where sizes ask for it: PKWARE's APPNOTE 6.3.10.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/object_window.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct ZipMember {
  std::string name;
  std::uint64_t header = 0;  // offset of its local header
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
  bool streamed = false;  // size and CRC follow its bytes
};

// The archive's parts, in the order of the file: local header and bytes of each member (and trailer of a
// streamed one), then the directory. No time is in them: the same members, the same bytes.
inline constexpr std::size_t kZipAlignment = 64;  // where members' bytes begin

// At offset member.header, up to the member's first byte.
std::vector<std::byte> zip_local_header(const ZipMember& member);
// Behind the bytes of a streamed member.
std::vector<std::byte> zip_trailer(const ZipMember& member);
// At `offset`, the archive's last part.
std::vector<std::byte> zip_directory(std::span<const ZipMember> members, std::uint64_t offset);

// Members whose name ends in `suffix`, in the order of the directory; all lie inside the object. `corrupt`
// and `truncated` say where; `unsupported` names a member that is compressed or encrypted.
Result<std::vector<ArchiveMember>> read_zip(ObjectWindow& window, std::string_view suffix);

}  // namespace penstock
