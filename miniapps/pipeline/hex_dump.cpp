#include "miniapps/pipeline/hex_dump.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace penstock {
namespace {

constexpr size_t kAddressDigits = 8;
constexpr size_t kLineOctets = 16;                               // bytes that a full line describes
constexpr size_t kLineChars = kAddressDigits + 3 * kLineOctets;  // characters without the line end

constexpr uint8_t kNoDigit = 0x80;
constexpr std::array<uint8_t, 256> make_digits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (uint8_t i = 0; i < 10; ++i) digits[size_t('0') + i] = i;
  for (uint8_t i = 0; i < 6; ++i) {
    digits[size_t('A') + i] = uint8_t(10 + i);
    digits[size_t('a') + i] = uint8_t(10 + i);
  }
  return digits;
}
constexpr std::array<uint8_t, 256> kDigits = make_digits();

// Returns the value of one byte, written as " 5D" or " ??". A wrong character sets bits in `errors`; the
// caller tests them after a whole line. So the check for errors needs no branch for each byte.
uint8_t parse_octet(const uint8_t* at, uint8_t& errors) {
  if (at[1] == '?' && at[2] == '?' && at[0] == ' ') return 0;
  const uint8_t high = kDigits[at[1]];
  const uint8_t low = kDigits[at[2]];
  errors = uint8_t(errors | high | low | (at[0] == ' ' ? 0 : kNoDigit));
  return uint8_t(high << 4U | low);
}

// The length of the line end after a full line: 1 for LF, 2 for CR LF. Returns 0 if this is not a full line.
size_t line_end_length(const uint8_t* line, size_t left) {
  if (left > kLineChars && line[kLineChars] == '\n') return 1;
  return left > kLineChars + 1 && line[kLineChars] == '\r' && line[kLineChars + 1] == '\n' ? 2 : 0;
}

// Parses a full line quickly; nearly all lines are full. Returns false if a character is wrong for its
// position.
bool parse_full_line(const uint8_t* line, uint8_t* out) {
  uint8_t errors = 0;
  for (size_t i = 0; i < kAddressDigits; ++i) errors = uint8_t(errors | kDigits[line[i]]);
  for (size_t i = 0; i < kLineOctets; ++i) out[i] = parse_octet(line + kAddressDigits + 3 * i, errors);
  return (errors & kNoDigit) == 0;
}

Error corrupt(size_t offset) {
  return make_error(
      Errc::corrupt,
      "the text at byte " + std::to_string(offset) +
          " is not a line of a hexadecimal dump: it needs an address and bytes, such as '00401000 56 8D'");
}

}  // namespace

Result<size_t> parse_hex_dump(std::span<const std::byte> text, std::vector<uint8_t>& octets) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(text.data());
  const size_t most_octets = text.size() / 3 + kLineOctets;
  if (octets.size() < most_octets) octets.resize(most_octets);
  uint8_t* out = octets.data();
  size_t at = 0;
  while (at < text.size()) {
    const size_t left = text.size() - at;
    const size_t end = line_end_length(begin + at, left);
    if (end != 0 && parse_full_line(begin + at, out)) {
      out += kLineOctets;
      at += kLineChars + end;
      continue;
    }
    const uint8_t* const line = begin + at;
    size_t length = size_t(std::find(line, line + left, '\n') - line);
    const size_t next = at + std::min(length + 1, left);
    if (length > 0 && line[length - 1] == '\r') --length;
    const size_t address = size_t(std::find(line, line + length, ' ') - line);
    if (address == 0 || (length - address) % 3 != 0) return corrupt(at);
    uint8_t errors = 0;
    for (size_t i = 0; i < address; ++i) errors = uint8_t(errors | kDigits[line[i]]);
    for (size_t i = address; i < length; i += 3) *out++ = parse_octet(line + i, errors);
    if ((errors & kNoDigit) != 0) return corrupt(at);
    at = next;
  }
  return size_t(out - octets.data());
}

}  // namespace penstock
