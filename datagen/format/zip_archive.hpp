// Makes ZIP archives of stored (uncompressed) members, with ZIP64 if sizes require it, and finds the members
// of archives, which may also be compressed with deflate (PKWARE's APPNOTE 6.3.10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/object_window.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct ZipMember {
  std::string name;
  uint64_t header_offset = 0;  // offset of the member's local header in the archive
  uint64_t bytes = 0;
  uint32_t crc32 = 0;
  bool is_streamed = false;  // size and CRC are stored in a trailer after its bytes
};

// The functions below make the parts of an archive, which the caller writes in this order. Each member has a
// local header, its bytes and, if it is streamed, a trailer. After all members comes the directory. No part
// contains a time, so the same members give the same bytes.
inline constexpr size_t kZipAlignment = 64;  // members' bytes begin at multiples of this number

// The local header of a member. It begins at member.header_offset and ends before the member's first byte.
std::vector<std::byte> zip_local_header(const ZipMember& member);
// The trailer of a streamed member. It follows the member's bytes.
std::vector<std::byte> zip_trailer(const ZipMember& member);
// The directory. It begins at `offset` and is the archive's last part.
std::vector<std::byte> zip_directory(std::span<const ZipMember> members, uint64_t offset);

// Finds the members that are files, in the order of the directory. All of them are inside the object.
// `corrupt` and `truncated` give the offset of the damage. `unsupported` names a member that is encrypted, or
// compressed by another method than deflate. `skips` gets the name of a member that cannot be read, and why;
// it returns whether to skip it.
Result<std::vector<ArchiveMember>> read_zip(
    ObjectWindow& window,
    const std::function<bool(std::string_view name, const Error& error)>& skips = nullptr);

}  // namespace penstock
