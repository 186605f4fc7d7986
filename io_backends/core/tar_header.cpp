#include "io_backends/core/tar_header.hpp"

#include <algorithm>

namespace penstock {
namespace {

void put_text(TarBlock& block, TarField field, std::string_view text) {
  std::copy(text.begin(), text.end(), block.begin() + ptrdiff_t(field.offset));
}

// Writes a number into a field, as octal digits and a zero byte. A number that is too large for that is
// written in base 256.
void put_number(TarBlock& block, TarField field, uint64_t value) {
  const bool octal = value >> (3 * (field.bytes - 1)) == 0;
  for (size_t i = field.bytes - (octal ? 1 : 0); i-- > 0; value >>= octal ? 3U : 8U)
    block[field.offset + i] = char(octal ? '0' + (value & 7U) : value & 0xFFU);
  if (!octal) block[field.offset] = '\x80';
}

// Finds the slash that splits a long name into prefix and name. Returns its position; 0 if no such slash
// exists.
size_t split_position(std::string_view name) {
  if (name.size() > kTarPrefix.bytes + 1 + kTarName.bytes) return 0;
  const size_t slash = name.find('/', name.size() - 1 - kTarName.bytes);
  // also 0 if there is no slash (then `slash` is npos)
  return slash > kTarPrefix.bytes || slash + 1 == name.size() ? 0 : slash;
}

}  // namespace

int64_t tar_checksum(std::string_view block, bool signed_bytes) {
  int64_t sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool in_checksum_field = i >= kTarChecksum.offset && i < kTarChecksum.offset + kTarChecksum.bytes;
    const char c = in_checksum_field ? ' ' : block[i];
    sum += signed_bytes ? int64_t{static_cast<signed char>(c)} : int64_t{static_cast<unsigned char>(c)};
  }
  return sum;
}

std::optional<TarBlock> tar_header(std::string_view name, const TarFacts& facts) {
  const size_t slash = name.size() > kTarName.bytes ? split_position(name) : 0;
  const std::string_view base_name = slash == 0 ? name : name.substr(slash + 1);
  if (name.empty() || base_name.size() > kTarName.bytes) return std::nullopt;
  TarBlock block{};
  put_text(block, kTarName, base_name);
  put_text(block, kTarPrefix, name.substr(0, slash));
  put_number(block, kTarMode, facts.mode);
  put_number(block, kTarUser, 0);
  put_number(block, kTarGroup, 0);
  put_number(block, kTarSize, facts.bytes);
  put_number(block, kTarTime, facts.time_s);
  block[kTarType.offset] = facts.type;
  put_text(block, kTarMagic, std::string_view("ustar\00000", 8));
  const auto sum = uint64_t(tar_checksum({block.data(), block.size()}, false));
  put_number(block, {kTarChecksum.offset, kTarChecksum.bytes - 1}, sum);
  block[kTarChecksum.offset + kTarChecksum.bytes - 1] = ' ';  // ustar wants digits, a zero byte and a blank
  return block;
}

}  // namespace penstock
