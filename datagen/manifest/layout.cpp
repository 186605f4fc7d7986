#include "datagen/manifest/layout.hpp"

#include <cstring>

#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock::manifest_layout {

uint32_t header_crc32c(Header header) {
  header.header_crc32c = 0;
  return crc32c(std::as_bytes(std::span(&header, 1)));
}

void put_varint(std::vector<std::byte>& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::byte>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<std::byte>(value));
}

uint64_t Cursor::read_varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
    const auto byte = std::to_integer<uint64_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  ok_ = false;
  bytes_ = {};
  return 0;
}

std::string_view Cursor::read_text(uint64_t length) {
  if (length > bytes_.size()) {
    ok_ = false;
    bytes_ = {};
    return {};
  }
  const auto taken = bytes_.first(size_t(length));
  bytes_ = bytes_.subspan(taken.size());
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

void Cursor::read_name(std::string& name) {
  const uint64_t shared_bytes = read_varint();
  const uint64_t suffix_bytes = read_varint();
  if (shared_bytes > name.size() || suffix_bytes > kLongestName || shared_bytes + suffix_bytes > kLongestName)
    ok_ = false;
  const std::string_view tail = ok_ ? read_text(suffix_bytes) : std::string_view{};
  if (!ok_) {
    name.clear();
    bytes_ = {};
    return;
  }
  name.resize(size_t(shared_bytes));
  name.append(tail);
}

void put_name(std::vector<std::byte>& out, std::string_view previous, std::string_view name) {
  size_t shared_bytes = 0;
  while (shared_bytes < previous.size() && shared_bytes < name.size() &&
         previous[shared_bytes] == name[shared_bytes])
    ++shared_bytes;
  put_varint(out, shared_bytes);
  put_varint(out, name.size() - shared_bytes);
  const auto suffix = std::as_bytes(std::span(name)).subspan(shared_bytes);
  out.insert(out.end(), suffix.begin(), suffix.end());
}

namespace {

void put_text(std::vector<std::byte>& out, std::string_view text) {
  put_varint(out, text.size());
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::string get_text(Cursor& in) {
  return std::string(in.read_text(in.read_varint()));
}

}  // namespace

std::vector<std::byte> encode_facts(const ManifestFacts& facts) {
  std::vector<std::byte> out;
  put_text(out, facts.recipe);
  put_text(out, facts.format);
  put_text(out, facts.codec);
  put_varint(out, facts.seed);
  put_varint(out, facts.settings.size());
  for (const auto& [key, value] : facts.settings) {
    put_text(out, key);
    put_text(out, value);
  }
  put_varint(out, facts.label_names.size());
  for (const std::string& name : facts.label_names) put_text(out, name);
  return out;
}

bool decode_facts(std::span<const std::byte> bytes, ManifestFacts& out) {
  Cursor in(bytes);
  out.recipe = get_text(in);
  out.format = get_text(in);
  out.codec = get_text(in);
  out.seed = in.read_varint();
  const uint64_t setting_count = in.read_varint();
  if (setting_count > kMostSettings) return false;
  for (uint64_t left = setting_count; left > 0 && in.ok(); --left) {
    std::string key = get_text(in);
    out.settings[std::move(key)] = get_text(in);
  }
  const uint64_t label_count = in.read_varint();
  if (label_count > in.left() || label_count > most_label_names(bytes.size())) return false;
  out.label_names.reserve(size_t(label_count));
  for (uint64_t left = label_count; left > 0 && in.ok(); --left) out.label_names.push_back(get_text(in));
  return in.ok() && in.at_end();
}

}  // namespace penstock::manifest_layout
