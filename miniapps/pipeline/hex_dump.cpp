#include "miniapps/pipeline/hex_dump.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace penstock {
namespace {

constexpr std::size_t kAddress = 8;
constexpr std::size_t kOctets = 16;                        // bytes of a full line
constexpr std::size_t kFullLine = kAddress + 3 * kOctets;  // characters without the line end

constexpr std::uint8_t kNoDigit = 0x80;
constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 10; ++i) digits[static_cast<std::size_t>('0') + i] = i;
  for (std::uint8_t i = 0; i < 6; ++i) {
    digits[static_cast<std::size_t>('A') + i] = static_cast<std::uint8_t>(10 + i);
    digits[static_cast<std::size_t>('a') + i] = static_cast<std::uint8_t>(10 + i);
  }
  return digits;
}
constexpr std::array<std::uint8_t, 256> kDigits = make_digits();

// One byte, written as " 5D" or " ??". Errors collect as bits in `wrong`, so the loop has no branch for them.
std::uint8_t octet(const std::uint8_t* at, std::uint8_t& wrong) {
  if (at[1] == '?' && at[2] == '?' && at[0] == ' ') return 0;
  const std::uint8_t high = kDigits[at[1]];
  const std::uint8_t low = kDigits[at[2]];
  wrong = static_cast<std::uint8_t>(wrong | high | low | (at[0] == ' ' ? 0 : kNoDigit));
  return static_cast<std::uint8_t>(high << 4U | low);
}

// The length of the line end after a full line: 1 for LF, 2 for CR LF. 0: the line is not a full one.
std::size_t line_end(const std::uint8_t* line, std::size_t left) {
  if (left > kFullLine && line[kFullLine] == '\n') return 1;
  return left > kFullLine + 1 && line[kFullLine] == '\r' && line[kFullLine + 1] == '\n' ? 2 : 0;
}

// The fast path: nearly all lines are full. False if this line has another form or is wrong.
bool parse_full_line(const std::uint8_t* line, std::uint8_t* out) {
  std::uint8_t wrong = 0;
  for (std::size_t i = 0; i < kAddress; ++i) wrong = static_cast<std::uint8_t>(wrong | kDigits[line[i]]);
  for (std::size_t i = 0; i < kOctets; ++i) out[i] = octet(line + kAddress + 3 * i, wrong);
  return (wrong & kNoDigit) == 0;
}

Error corrupt(std::size_t offset) {
  return make_error(Errc::corrupt,
                    "the text at byte " + std::to_string(offset) +
                        " is no line of a hexadecimal dump: an address and octets such as '00401000 56 8D'");
}

}  // namespace

Result<std::size_t> parse_hex_dump(std::span<const std::byte> text, std::vector<std::uint8_t>& octets) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(text.data());
  const std::size_t most = text.size() / 3 + kOctets;
  if (octets.size() < most) octets.resize(most);
  std::uint8_t* out = octets.data();
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t left = text.size() - at;
    const std::size_t end = line_end(begin + at, left);
    if (end != 0 && parse_full_line(begin + at, out)) {
      out += kOctets;
      at += kFullLine + end;
      continue;
    }
    const std::uint8_t* const line = begin + at;
    std::size_t length = static_cast<std::size_t>(std::find(line, line + left, '\n') - line);
    const std::size_t next = at + std::min(length + 1, left);
    if (length > 0 && line[length - 1] == '\r') --length;
    const std::size_t address = static_cast<std::size_t>(std::find(line, line + length, ' ') - line);
    if (address == 0 || (length - address) % 3 != 0) return corrupt(at);
    std::uint8_t wrong = 0;
    for (std::size_t i = 0; i < address; ++i) wrong = static_cast<std::uint8_t>(wrong | kDigits[line[i]]);
    for (std::size_t i = address; i < length; i += 3) *out++ = octet(line + i, wrong);
    if ((wrong & kNoDigit) != 0) return corrupt(at);
    at = next;
  }
  return static_cast<std::size_t>(out - octets.data());
}

}  // namespace penstock
