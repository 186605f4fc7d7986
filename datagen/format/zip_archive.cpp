#include "datagen/format/zip_archive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "datagen/format/byte_order.hpp"

namespace penstock {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kTrailerSignature = 0x08074b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kEntryBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64RecordBytes = 56;
constexpr size_t kLocator64Bytes = 20;
constexpr size_t kMostCommentBytes = 0xffff;
// A 32-bit number with this value means that the real number is in the ZIP64 field.
constexpr uint64_t kSeeZip64 = 0xffffffff;
constexpr uint16_t kZip64ExtraId = 0x0001;  // the id of the extra field with ZIP64 numbers
// The id of the extra field that Android's zipalign uses for padding: the alignment, then zeros.
constexpr uint16_t kPaddingExtraId = 0xd935;
constexpr uint16_t kFirstDate = 0x0021;  // 1980-01-01, the first possible date
constexpr uint16_t kVersionNeeded = 20;
constexpr uint16_t kVersionForZip64 = 45;
constexpr uint16_t kEncryptedFlag = 1U << 0U;
constexpr uint64_t kDeflated = 8;  // compression method
constexpr uint16_t kStreamedFlag = 1U << 3U;
constexpr uint16_t kUtf8Flag = 1U << 11U;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

uint16_t flags_of(const ZipMember& member) {
  return uint16_t((member.is_streamed ? kStreamedFlag : 0U) | (is_ascii(member.name) ? 0U : kUtf8Flag));
}

// Whether the local header needs the ZIP64 field. A streamed member always gets it, because its size is not
// known yet when the header is written.
bool needs_local_zip64(const ZipMember& member) {
  return member.is_streamed || member.bytes >= kSeeZip64;
}

}  // namespace

std::vector<std::byte> zip_local_header(const ZipMember& member) {
  const bool needs_zip64 = needs_local_zip64(member);
  HeaderBytes extra;
  if (needs_zip64) {
    const uint64_t bytes = member.is_streamed ? 0 : member.bytes;
    extra.u16(kZip64ExtraId).u16(16).u64(bytes).u64(bytes);
  }
  const uint64_t begin = member.header_offset + kLocalHeaderBytes + member.name.size() + extra.size();
  constexpr size_t kPaddingHeaderBytes = 6;  // size of the padding field's own header
  size_t padding = (kZipAlignment - begin % kZipAlignment) % kZipAlignment;
  if (padding > 0 && padding < kPaddingHeaderBytes) padding += kZipAlignment;
  if (padding > 0)
    extra.u16(kPaddingExtraId).u16(padding - 4).u16(kZipAlignment).zeros(padding - kPaddingHeaderBytes);
  const uint64_t size = needs_zip64 ? kSeeZip64 : member.bytes;
  HeaderBytes header;
  header.u32(kLocalSignature).u16(needs_zip64 ? kVersionForZip64 : kVersionNeeded).u16(flags_of(member));
  header.u16(0).u16(0).u16(kFirstDate);  // method (stored), time and date
  header.u32(member.is_streamed ? 0 : member.crc32).u32(size).u32(size);
  header.u16(member.name.size()).u16(extra.size());
  return header.text(member.name).append(extra.view()).take();
}

std::vector<std::byte> zip_trailer(const ZipMember& member) {
  return HeaderBytes().u32(kTrailerSignature).u32(member.crc32).u64(member.bytes).u64(member.bytes).take();
}

std::vector<std::byte> zip_directory(std::span<const ZipMember> members, uint64_t offset) {
  HeaderBytes directory;
  for (const ZipMember& member : members) {
    HeaderBytes extra;
    const bool needs_zip64 = member.bytes >= kSeeZip64;
    const bool is_far = member.header_offset >= kSeeZip64;
    if (needs_zip64 || is_far) extra.u16(kZip64ExtraId).u16((needs_zip64 ? 16U : 0U) + (is_far ? 8U : 0U));
    if (needs_zip64) extra.u64(member.bytes).u64(member.bytes);
    if (is_far) extra.u64(member.header_offset);
    const uint64_t size = needs_zip64 ? kSeeZip64 : member.bytes;
    directory.u32(kEntrySignature).u16(kVersionForZip64);  // version of the writer
    directory.u16(needs_local_zip64(member) || is_far ? kVersionForZip64 : kVersionNeeded)
        .u16(flags_of(member));
    directory.u16(0).u16(0).u16(kFirstDate);  // method (stored), time and date
    directory.u32(member.crc32).u32(size).u32(size).u16(member.name.size()).u16(extra.size());
    directory.zeros(2 + 2 + 2 + 4);  // comment length, disk, internal and external attributes
    directory.u32(is_far ? kSeeZip64 : member.header_offset).text(member.name).append(extra.view());
  }
  const uint64_t bytes = directory.size();
  const uint64_t count = members.size();
  const bool needs_zip64 = offset >= kSeeZip64 || bytes >= kSeeZip64 || count >= 0xffff;
  if (needs_zip64) {
    directory.u32(kEnd64Signature).u64(kEnd64RecordBytes - 12).u16(kVersionForZip64).u16(kVersionForZip64);
    directory.zeros(8).u64(count).u64(count);
    directory.u64(bytes).u64(offset).u32(kLocator64Signature).u32(0).u64(offset + bytes).u32(1);
  }
  const uint64_t short_count = std::min<uint64_t>(count, needs_zip64 ? 0xffff : count);
  directory.u32(kEndSignature).zeros(4).u16(short_count).u16(short_count);
  return directory.u32(std::min(bytes, kSeeZip64)).u32(std::min(offset, kSeeZip64)).u16(0).take();
}

// ---- Reading -------------------------------------------------------------------------------------------
namespace {

struct Directory {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t member_count = 0;
};

// Finds the end record, which is the last part of the archive. Only a comment of up to 64 KiB can follow it;
// the record contains the comment's length. If no record ends where the object does, takes the last record
// that more bytes follow: other programs, such as NumPy, ignore what was added after an archive.
Result<uint64_t> find_end(ObjectWindow& window) {
  if (window.size() < kEndBytes) return window.error(Errc::truncated, 0, "too short for a ZIP archive");
  const auto tail = size_t(std::min<uint64_t>(window.size(), kEndBytes + kMostCommentBytes));
  const uint64_t begin = window.size() - tail;
  PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, window.at(begin, tail));
  std::optional<uint64_t> followed;
  for (size_t at = tail - kEndBytes + 1; at-- > 0;) {
    if (number_at(bytes, at, 4) != kEndSignature) continue;
    const uint64_t bytes_after = tail - at - kEndBytes;
    const uint64_t comment_bytes = number_at(bytes, at + 20, 2);
    if (comment_bytes == bytes_after) return begin + at;
    if (comment_bytes < bytes_after && !followed) followed = begin + at;
  }
  if (followed) return *followed;
  return window.error(Errc::truncated, window.size(),
                      "there is no end-of-archive record: the object is truncated, or not a ZIP archive");
}

Result<void> read_zip64_end(ObjectWindow& window, uint64_t end, Directory& directory) {
  if (end < kLocator64Bytes + kEnd64RecordBytes) return success();
  PENSTOCK_ASSIGN(std::span<const std::byte> bytes, window.at(end - kLocator64Bytes, kLocator64Bytes));
  if (number_at(bytes, 0, 4) != kLocator64Signature) return success();
  const uint64_t end64_offset = number_at(bytes, 8, 8);
  if (end64_offset > end - kLocator64Bytes - kEnd64RecordBytes)
    return window.corrupt(end - kLocator64Bytes, fmt::format("a ZIP64 end record at byte {}", end64_offset));
  PENSTOCK_ASSIGN(bytes, window.at(end64_offset, kEnd64RecordBytes));
  if (number_at(bytes, 0, 4) != kEnd64Signature) return window.corrupt(end64_offset, "no ZIP64 end record");
  directory = {.offset = number_at(bytes, 48, 8),
               .bytes = number_at(bytes, 40, 8),
               .member_count = number_at(bytes, 32, 8)};
  return success();
}

Result<Directory> find_directory(ObjectWindow& window) {
  PENSTOCK_ASSIGN(const uint64_t end, find_end(window));
  PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, window.at(end, kEndBytes));
  Directory directory{.offset = number_at(bytes, 16, 4),
                      .bytes = number_at(bytes, 12, 4),
                      .member_count = number_at(bytes, 10, 2)};
  PENSTOCK_TRY(read_zip64_end(window, end, directory));
  if (directory.offset > end || directory.bytes > end - directory.offset ||
      directory.member_count > directory.bytes / kEntryBytes)
    return window.corrupt(end, fmt::format("a ZIP directory of {} members in {} bytes at byte {}",
                                           directory.member_count, directory.bytes, directory.offset));
  return directory;
}

// Replaces each number that is kSeeZip64 by the real number from the ZIP64 field. The field contains only the
// numbers to replace, in the order of the parameters.
bool read_zip64_numbers(std::span<const std::byte> extra, uint64_t& bytes, uint64_t& stored_bytes,
                        uint64_t& header_offset) {
  while (extra.size() >= 4) {
    const size_t length = number_at(extra, 2, 2);
    if (length > extra.size() - 4) return false;
    if (number_at(extra, 0, 2) == kZip64ExtraId) {
      std::span<const std::byte> rest = extra.subspan(4, length);
      for (uint64_t* number : {&bytes, &stored_bytes, &header_offset}) {
        if (*number != kSeeZip64) continue;
        if (rest.size() < 8) return false;
        *number = number_at(rest, 0, 8);
        rest = rest.subspan(8);
      }
      return true;
    }
    extra = extra.subspan(4 + length);
  }
  return true;
}

// Finds the content of a member that has a name so far. `entry` is its entry in the directory, which is at
// `at`; the directory begins at `end`, after the members. The member must not have more than `bytes_left`
// stored bytes.
Result<void> find_content(ObjectWindow& window, uint64_t end, uint64_t at, std::span<const std::byte> entry,
                          uint64_t bytes_left, ArchiveMember& member) {
  const std::string& name = member.name;
  uint64_t bytes = number_at(entry, 24, 4);
  uint64_t stored_bytes = number_at(entry, 20, 4);
  uint64_t header_offset = number_at(entry, 42, 4);
  const auto extra = entry.subspan(kEntryBytes + name.size(), number_at(entry, 30, 2));
  if (!read_zip64_numbers(extra, bytes, stored_bytes, header_offset))
    return window.corrupt(at, fmt::format("the extra field of '{}'", name));
  if ((number_at(entry, 8, 2) & kEncryptedFlag) != 0)
    return window.error(Errc::unsupported, at, fmt::format("'{}' is encrypted", name));
  // `entry` is valid only until the window reads again.
  member.crc32 = uint32_t(number_at(entry, 16, 4));
  const uint64_t method = number_at(entry, 10, 2);
  member.is_deflated = method == kDeflated;
  if (method != 0 && !member.is_deflated)
    return window.error(
        Errc::unsupported, at,
        fmt::format(
            "'{}' uses ZIP compression method {}: write it with numpy.savez_compressed or numpy.savez", name,
            method));
  if (!member.is_deflated && bytes != stored_bytes)
    return window.corrupt(at, fmt::format("'{}' has {} bytes, but {} are stored", name, bytes, stored_bytes));
  if (header_offset > end)
    return window.corrupt(at, fmt::format("'{}' starts after the members, at byte {}", name, header_offset));
  PENSTOCK_ASSIGN(const std::span<const std::byte> header, window.at(header_offset, kLocalHeaderBytes));
  // The extra field there may be longer or shorter than the one in the directory.
  if (number_at(header, 0, 4) != kLocalSignature)
    return window.corrupt(header_offset,
                          fmt::format("there is no ZIP member here, and '{}' should start here", name));
  const uint64_t begin =
      header_offset + kLocalHeaderBytes + number_at(header, 26, 2) + number_at(header, 28, 2);
  if (begin > end || stored_bytes > end - begin)
    return window.corrupt(at, fmt::format("'{}' has {} bytes, more than the archive", name, stored_bytes));
  if (stored_bytes > bytes_left) return window.corrupt(at, fmt::format("'{}' overlaps other members", name));
  member.content = {begin, stored_bytes};
  member.bytes = bytes;
  return success();
}

}  // namespace

Result<std::vector<ArchiveMember>> read_zip(
    ObjectWindow& window, const std::function<bool(std::string_view, const Error&)>& skips) {
  PENSTOCK_ASSIGN(const Directory directory, find_directory(window));
  std::vector<ArchiveMember> members;
  uint64_t at = directory.offset;
  const uint64_t end = directory.offset + directory.bytes;
  // The most bytes that the remaining members can have together. Members share no bytes, so an archive whose
  // members have more bytes must be damaged.
  uint64_t bytes_left = directory.offset;
  for (uint64_t i = 0; i < directory.member_count; ++i) {
    if (end - at < kEntryBytes) return window.corrupt(at, "the ZIP directory ends within a member");
    PENSTOCK_ASSIGN(std::span<const std::byte> entry, window.at(at, kEntryBytes));
    const size_t name_bytes = number_at(entry, 28, 2);
    const size_t entry_bytes = kEntryBytes + name_bytes + number_at(entry, 30, 2) + number_at(entry, 32, 2);
    if (number_at(entry, 0, 4) != kEntrySignature || entry_bytes > end - at)
      return window.corrupt(at, fmt::format("no entry {} of the ZIP directory", i));
    PENSTOCK_ASSIGN(entry, window.at(at, entry_bytes));
    ArchiveMember member;
    member.name = HeaderReader(entry.subspan(kEntryBytes)).text(name_bytes);
    if (!member.name.ends_with('/')) {  // else it is a folder
      const Result<void> content = find_content(window, directory.offset, at, entry, bytes_left, member);
      if (content.ok()) {
        bytes_left -= member.content.length;
        members.push_back(std::move(member));
      } else if (!skips || !skips(member.name, content.error())) {
        return content.error();
      }
    }
    at += entry_bytes;
  }
  return members;
}

}  // namespace penstock
