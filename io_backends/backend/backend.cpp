#include "io_backends/backend/backend.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace penstock {
namespace {

constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxPartBytes = 255;

Error bad_name(std::string_view name, std::string_view why) {
  return make_error(Errc::invalid_argument,
                    "not an object name: '" + std::string(name) + "' " + std::string(why));
}

// Does all checks of check_object_name() in one simple loop, because it runs for every sample.
bool is_object_name(std::string_view name) {
  if (name.size() > kMaxNameBytes) return false;
  size_t part_bytes = 0;  // bytes in the current part, between two '/'
  bool only_dots = true;
  const auto is_part_valid = [&] { return part_bytes > (only_dots ? 2 : 0) && part_bytes <= kMaxPartBytes; };
  for (const char c : name) {
    if (c == '/') {
      if (!is_part_valid()) return false;
      part_bytes = 0;
      only_dots = true;
      continue;
    }
    if (c == '\0') return false;
    only_dots = only_dots && c == '.';
    ++part_bytes;
  }
  return is_part_valid();
}

}  // namespace

Result<std::span<const std::byte>> Reader::view(uint64_t /*offset*/, uint64_t /*length*/) {
  return make_error(Errc::unsupported, "this back end cannot map its objects into memory");
}

Result<void> Reader::read_at_all(uint64_t /*offset*/, std::span<std::byte> /*out*/) {
  return make_error(Errc::unsupported, "this back end has no collective reads");
}

Error truncated_error(std::string_view name, uint64_t offset, uint64_t length) {
  const uint64_t rest = std::numeric_limits<uint64_t>::max() - offset;
  return make_error(Errc::truncated, "'{}' ends before byte {}", name, offset + std::min(length, rest));
}

Result<void> Writer::append(std::span<const std::span<const std::byte>> pieces) {
  for (const auto& piece : pieces) PENSTOCK_TRY(append(piece));
  return success();
}

Result<void> Writer::write_at(uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {
  return make_error(Errc::unsupported, "this back end cannot write at an offset");
}

Error finished_writer_error(std::string_view name) {
  return make_error(Errc::invalid_argument,
                    "the writer of '" + std::string(name) + "' has failed or published before");
}

Result<uint64_t> Backend::read_object(std::string_view name, uint64_t length_hint, std::span<std::byte> out) {
  PENSTOCK_TRY(check_read_object(name, length_hint, out.size()));
  PENSTOCK_ASSIGN(const auto reader, open(name));
  uint64_t length = length_hint;
  if (length == 0) {
    PENSTOCK_ASSIGN(length, reader->size());
    PENSTOCK_TRY(check_fits(name, length, out.size()));
  }
  PENSTOCK_TRY(reader->read_at(0, out.first(length)));
  return length;
}

Result<std::unique_ptr<Queue>> Backend::queue(size_t depth) {
  return blocking_queue(*this, depth);
}

std::optional<std::filesystem::path> Backend::native_path(std::string_view /*name*/) const {
  return std::nullopt;
}

Result<void> put_object(Backend& backend, std::string_view name, std::span<const std::byte> bytes,
                        Durability durability) {
  PENSTOCK_ASSIGN(const auto writer, backend.create(name, bytes.size()));
  PENSTOCK_TRY(writer->append(bytes));
  return writer->publish(durability);
}

Result<std::string> read_text(Backend& backend, std::string_view name, uint64_t max_bytes) {
  PENSTOCK_ASSIGN(const auto reader, backend.open(name));
  PENSTOCK_ASSIGN(const uint64_t size, reader->size());
  if (size > max_bytes) return make_error(Errc::corrupt, "'{}' is too large", name);
  std::string text(size_t(size), '\0');
  PENSTOCK_TRY(reader->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<void> check_object_name(std::string_view name) {
  if (is_object_name(name)) return success();
  if (name.empty()) return bad_name(name, "is empty");
  if (name.size() > kMaxNameBytes) return bad_name(name.substr(0, 40), "... is longer than 1024 bytes");
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty()) return bad_name(name, "starts or ends with '/' or contains '//'");
    if (part == "." || part == "..") return bad_name(name, "contains '.' or '..'");
    if (part.size() > kMaxPartBytes) return bad_name(name, "contains a part longer than 255 bytes");
    begin = end + 1;
  }
  if (name.find('\0') != std::string_view::npos) return bad_name(name, "contains a zero byte");
  return success();
}

Result<void> check_folder_name(std::string_view name) {
  return name.empty() ? success() : check_object_name(name);
}

Result<void> check_read_object(std::string_view name, uint64_t length_hint, size_t buffer_bytes) {
  PENSTOCK_TRY(check_object_name(name));
  return check_fits(name, length_hint, buffer_bytes);
}

Result<void> check_fits(std::string_view name, uint64_t length, size_t buffer_bytes) {
  if (length <= buffer_bytes) return success();
  return make_error(Errc::invalid_argument, "'{}' has {} bytes, more than the buffer of {}", name, length,
                    buffer_bytes);
}

}  // namespace penstock
