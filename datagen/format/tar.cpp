#include "datagen/format/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "io_backends/core/text.hpp"

namespace penstock {

namespace {

constexpr std::string_view kPosixMagic("ustar\0", 6);
// The most bytes of a pax header or a long name. Both are read in one piece, so they must fit into
// ObjectWindow.
constexpr uint64_t kMostExtensionBytes = 512 << 10;

std::string_view header_field(std::string_view block, TarField field) {
  return block.substr(field.offset, field.bytes);
}

// The text up to the first NUL.
std::string_view text_before_nul(std::string_view bytes) {
  return bytes.substr(0, std::min(bytes.find('\0'), bytes.size()));
}

// The number in a header field: octal digits between spaces and NULs, or base 256 if the first byte is 0x80.
std::optional<uint64_t> parse_tar_number(std::string_view field) {
  if (static_cast<unsigned char>(field.front()) == 0x80) {
    uint64_t value = 0;
    for (const char c : field.substr(1)) {
      if (value >> 55U != 0) return std::nullopt;  // the number would be 2^63 or more
      value = value << 8U | static_cast<unsigned char>(c);
    }
    return value;
  }
  constexpr std::string_view kBlank(" \0", 2);
  const size_t begin = std::min(field.find_first_not_of(kBlank), field.size());
  const size_t end = std::min(field.find_first_of(kBlank, begin), field.size());
  uint64_t value = 0;
  for (const char c : field.substr(begin, end - begin)) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value << 3U | uint64_t(c - '0');  // cannot overflow: a field has at most 12 digits
  }
  if (field.find_first_not_of(kBlank, end) != std::string_view::npos) return std::nullopt;
  return value;
}

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Makes a record of a pax header, such as "21 path=a/long/name\n". The number is the length of the whole
// record, including the number's own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const size_t other_chars = key.size() + value.size() + 3;
  size_t length = other_chars + 1;
  while (other_chars + fmt::formatted_size("{}", length) != length)
    length = other_chars + fmt::formatted_size("{}", length);
  return fmt::format("{} {}={}\n", length, key, value);
}

}  // namespace

void put_tar_header(std::vector<std::byte>& out, std::string_view name, uint64_t bytes) {
  std::optional<TarBlock> block = tar_header(name, {.bytes = bytes});
  if (!block) {
    const std::string record = pax_record("path", name);
    block = tar_header("././@PaxHeader", {.bytes = record.size(), .type = 'x'});
    append(out, std::as_bytes(std::span(*block)));
    append(out, std::as_bytes(std::span(record)));
    out.resize(out.size() + tar_padding(record.size()));
    block = tar_header(name.substr(0, kTarName.bytes), {.bytes = bytes});
  }
  append(out, std::as_bytes(std::span(*block)));
}

struct TarReader::Header {
  bool is_end = false;
  char type = '\0';
  std::string name;
  Extent content;
};

Result<TarReader::Header> TarReader::read_header() {
  if (offset_ == object_.size())
    return object_.error(Errc::truncated, offset_, "the zeros that close a tar archive are missing");
  PENSTOCK_ASSIGN(const auto bytes, object_.at(offset_, kTarBlockBytes));
  const std::string_view block = as_text(bytes);
  Header header;
  header.is_end = block.find_first_not_of('\0') == std::string_view::npos;
  if (header.is_end) return header;
  const auto sum = parse_tar_number(header_field(block, kTarChecksum));
  const auto is_sum = [&](int64_t value) { return sum && *sum == uint64_t(value); };
  const bool is_valid = is_sum(tar_checksum(block, false)) || is_sum(tar_checksum(block, true));
  if (kVerifyChecksums && !is_valid)
    return object_.corrupt(offset_, "not a tar archive, or a damaged one: the checksum of a header is wrong");
  header.type = block[kTarType.offset];
  if (header_field(block, kTarMagic).starts_with(kPosixMagic) && block[kTarPrefix.offset] != '\0')
    header.name = std::string(text_before_nul(header_field(block, kTarPrefix))) + "/";
  header.name += text_before_nul(header_field(block, kTarName));
  const auto size = parse_tar_number(header_field(block, kTarSize));
  if (!size) return object_.corrupt(offset_, "a tar header whose size is not a number");
  header.content = {offset_ + kTarBlockBytes, *size};
  return header;
}

Result<const ArchiveMember*> TarReader::next() {
  for (;;) {
    PENSTOCK_ASSIGN(Header header, read_header());
    if (header.is_end) return nullptr;
    const uint64_t begin = offset_;
    const bool is_extension = std::string_view("xgLK").find(header.type) != std::string_view::npos;
    if (!is_extension && next_bytes_) header.content.length = *next_bytes_;
    // Links, devices and folders have no content, whatever their size field says.
    if (header.type >= '1' && header.type <= '6') header.content.length = 0;
    const uint64_t bytes_left = object_.size() - header.content.offset;
    const uint64_t bytes = header.content.length;
    if (bytes > bytes_left || tar_padding(bytes) > bytes_left - bytes)
      return object_.error(
          Errc::truncated, begin,
          fmt::format("a tar member of {} bytes, but the object ends at {}", bytes, object_.size()));
    offset_ = header.content.offset + bytes + tar_padding(bytes);
    if (is_extension) {
      if (bytes > kMostExtensionBytes)
        return object_.corrupt(begin, fmt::format("a tar extension header of {} bytes", bytes));
      if (header.type == 'x') PENSTOCK_TRY(read_pax(header.content));
      if (header.type == 'L') {
        PENSTOCK_ASSIGN(const auto name, object_.at(header.content.offset, size_t(bytes)));
        next_name_ = text_before_nul(as_text(name));
      }
      continue;
    }
    if (header.type == 'S')
      return object_.error(Errc::unsupported, begin, "a sparse file; create the archive without --sparse");
    const std::string name = next_name_ ? *std::move(next_name_) : std::move(header.name);
    next_name_.reset();
    next_bytes_.reset();
    PENSTOCK_TRY(set_name(begin, name));
    if ((header.type == '1' || header.type == '2') && links_++ == 0) first_link_ = member_.name;
    const bool is_file = header.type == '0' || header.type == '\0' || header.type == '7';
    if (!is_file || name.ends_with('/')) continue;
    member_.content = header.content;
    return &member_;
  }
}

Result<uint64_t> TarReader::bytes_after_end() {
  for (uint64_t at = offset_; at < object_.size();) {
    const auto piece_bytes = size_t(std::min<uint64_t>(object_.size() - at, ObjectWindow::kMostReadBytes));
    PENSTOCK_ASSIGN(const auto piece, object_.at(at, piece_bytes));
    const size_t zeros = as_text(piece).find_first_not_of('\0');
    if (zeros != std::string_view::npos) return object_.size() - at - zeros;
    at += piece_bytes;
  }
  return 0;
}

Result<void> TarReader::read_pax(Extent content) {
  PENSTOCK_ASSIGN(const auto bytes, object_.at(content.offset, size_t(content.length)));
  std::string_view rest = as_text(bytes);
  while (!rest.empty()) {
    const uint64_t at = content.offset + content.length - rest.size();
    const char* const begin = rest.data();
    size_t length = 0;
    const auto [stop, failure] = std::from_chars(begin, begin + rest.size(), length);
    const auto digits = size_t(stop - begin);
    if (failure != std::errc{} || length > rest.size() || length < digits + 3 || *stop != ' ' ||
        rest[length - 1] != '\n')
      return object_.corrupt(at, "a damaged pax header");
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    const size_t equals_sign = record.find('=');
    if (equals_sign == std::string_view::npos) return object_.corrupt(at, "a damaged pax header");
    PENSTOCK_TRY(apply_pax_record(at, record.substr(0, equals_sign), record.substr(equals_sign + 1)));
    rest.remove_prefix(length);
  }
  return success();
}

Result<void> TarReader::apply_pax_record(uint64_t at, std::string_view key, std::string_view value) {
  if (key == "path") next_name_ = value;
  if (key.starts_with("GNU.sparse."))
    return object_.error(Errc::unsupported, at, "a sparse file; create the archive without --sparse");
  if (key != "size") return success();
  next_bytes_ = parse_digits<uint64_t>(value);
  if (!next_bytes_ || *next_bytes_ > uint64_t(std::numeric_limits<int64_t>::max()))
    return object_.corrupt(at, "a pax header whose size is not a number");
  return success();
}

// Sets the name of member_ to `name`, made relative to the archive. Fails if the name leads out of the folder
// into which an archive is unpacked.
Result<void> TarReader::set_name(uint64_t at, std::string_view name) {
  std::string_view rest = name;
  while (rest.starts_with("./")) rest.remove_prefix(2);
  member_.name = rest;
  bool leads_out = name.starts_with('/') || name.find('\0') != std::string_view::npos;
  while (!rest.empty()) leads_out = take_part(rest, '/') == ".." || leads_out;
  if (!leads_out) return success();
  return object_.corrupt(at, fmt::format("a tar member named '{}', which leads outside the archive", name));
}

}  // namespace penstock
