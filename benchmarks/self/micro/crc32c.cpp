// Micro-benchmark: computes the CRC32C of buffers as large as samples and TFRecord headers. The baseline is
// the simplest loop, which looks up one byte at a time in a table. Two more cases combine the checksums of
// two buffers. Their baseline computes the checksum of the second buffer from its bytes.
#include "io_backends/core/checksums/crc32c.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "benchmarks/self/micro/in_turns.hpp"
#include "benchmarks/self/micro/microbench.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_crc32c;

namespace {

constexpr size_t kSizes[] = {64, 4096, size_t{112} << 10U, size_t{16} << 20U};

using Checksum = uint32_t (*)(std::span<const std::byte>, uint32_t);

constexpr uint32_t kPolynomial = 0x82f63b78U;  // the polynomial of CRC32C, with its bits reversed
constexpr size_t kBatchBytes = size_t{256} << 10U;
constexpr size_t kCombinedBytes = 4096;

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

uint32_t crc_by_table(std::span<const std::byte> bytes) {
  uint32_t crc = ~0U;
  for (const std::byte byte : bytes)
    crc = (crc >> 8U) ^ kTable[(crc ^ std::to_integer<unsigned>(byte)) & 255U];
  return ~crc;
}

void finish(benchmark::State& state, const Result<void>& done) {
  if (!done.ok()) give_up(state, done.error());
}

void measure(benchmark::State& state, Checksum checksum, size_t size, bool smoke) {
  const std::vector<std::byte> bytes(size, std::byte{0x5a});
  if (crc_by_table(bytes) != checksum(bytes, 0))
    return give_up(state, make_error(Errc::internal, "two calculations of a checksum differ"));
  finish(state, by_turns(
                    state, {.batch = smoke ? 1 : std::max<size_t>(kBatchBytes / size, 1), .bytes = size},
                    [&] { benchmark::DoNotOptimize(checksum(bytes, 0)); },
                    [&] { benchmark::DoNotOptimize(crc_by_table(bytes)); }));
}

template <class Combine>
void combine(benchmark::State& state, bool smoke, Combine combined) {
  const std::vector<std::byte> bytes(kCombinedBytes, std::byte{0x5a});
  uint32_t crc = 1;
  uint32_t other = 1;
  finish(state, by_turns(
                    state, {.batch = smoke ? 1U : 1000U},
                    [&] { benchmark::DoNotOptimize(crc = combined(crc, 0x1234U)); },
                    [&] { benchmark::DoNotOptimize(other = crc32c(bytes, other)); }));
}

void add(Microbench& to) {
  const bool smoke = to.smoke();
  for (const size_t size : kSizes) {
    const std::string bytes = std::to_string(size);
    to.add(std::string(crc32c_method()) + "/" + bytes, [size, smoke](benchmark::State& state) {
        measure(state, &crc32c, size, smoke);
      })->UseManualTime();
    if (size <= 4096)
      to.add("portable/" + bytes, [size, smoke](benchmark::State& state) {
          measure(state, &crc32c_portable, size, smoke);
        })->UseManualTime();
  }
  to.add("combine", [smoke](benchmark::State& state) {
      const uint32_t power = crc32c_power(kCombinedBytes);
      combine(state, smoke, [&](uint32_t a, uint32_t b) { return crc32c_shift(a, power) ^ b; });
    })->UseManualTime();
  to.add("combine_one_length", [smoke](benchmark::State& state) {
      const CrcShift shift = crc32c_fixed_shift(kCombinedBytes);
      combine(state, smoke, [&](uint32_t a, uint32_t b) { return shift.combine(a, b); });
    })->UseManualTime();
}

}  // namespace

const MicrobenchInfo microbench_crc32c{
    .name = "crc32c", .summary = "CRC32C of buffers, and of checksums combined", .add = add};

}  // namespace penstock
