// Micro-benchmark: checksums, as samples and TFRecord framing need them.
#include "io_backends/base/crc32c.hpp"

#include <string>

#include "benchmarks/micro/microbench.hpp"

namespace penstock {

extern const MicrobenchInfo microbench_crc32c;

namespace {

constexpr std::size_t kSizes[] = {64, 4096, std::size_t{112} << 10U, std::size_t{16} << 20U};

using Checksum = std::uint32_t (*)(std::span<const std::byte>, std::uint32_t);

void measure(benchmark::State& state, Checksum checksum, std::size_t size) {
  const std::vector<std::byte> bytes(size, std::byte{0x5a});
  for (auto _ : state) benchmark::DoNotOptimize(checksum(bytes, 0));
  state.SetBytesProcessed(static_cast<std::int64_t>(size) * state.iterations());
}

void combine(benchmark::State& state) {
  const std::uint32_t power = crc32c_power(4096);
  std::uint32_t crc = 1;
  for (auto _ : state) benchmark::DoNotOptimize(crc = crc32c_shift(crc, power) ^ 0x1234U);
}

void combine_one_length(benchmark::State& state) {
  const Crc32cShift shift(4096);
  std::uint32_t crc = 1;
  for (auto _ : state) benchmark::DoNotOptimize(crc = shift.combine(crc, 0x1234U));
}

void add(Microbench& to) {
  for (const std::size_t size : kSizes) {
    const std::string bytes = std::to_string(size);
    to.add(std::string(crc32c_method()) + "/" + bytes,
           [size](benchmark::State& state) { measure(state, &crc32c, size); });
    if (size <= 4096)
      to.add("portable/" + bytes,
             [size](benchmark::State& state) { measure(state, &crc32c_portable, size); });
  }
  to.add("combine", &combine);
  to.add("combine_one_length", &combine_one_length);
}

}  // namespace

const MicrobenchInfo microbench_crc32c{
    .name = "crc32c", .summary = "CRC32C of buffers, and of checksums combined", .add = add};

}  // namespace penstock
