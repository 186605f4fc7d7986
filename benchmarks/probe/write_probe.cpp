#include "benchmarks/probe/write_probe.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);
// A read of the clock costs as much as several writes of 4 KiB.
constexpr std::uint64_t kBytesBetweenClockReads = 64U << 10U;

std::uint64_t round_up_to_word(std::uint64_t bytes) {
  return (bytes + kWord - 1) / kWord * kWord;
}

// XORs each 8 bytes with `by`. `bytes`: a multiple of 8. Compilers vectorize this loop, also with memcpy,
// which avoids a cast.
void xor_each_word(std::byte* at, std::uint64_t bytes, std::uint64_t by) {
  for (std::byte* const end = at + bytes; at != end; at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, kWord);
    word ^= by;
    std::memcpy(at, &word, kWord);
  }
}

}  // namespace

BlockNoise::BlockNoise(std::uint64_t seed, std::uint64_t most_bytes)
    : buffer_(round_up_to_word(most_bytes)), random_(seed, "probe") {
  const RandomStream bytes = random_.substream(0);
  for (std::uint64_t at = 0; at < round_up_to_word(most_bytes); at += kWord) {
    const std::uint64_t word = bytes.bits(at);
    std::memcpy(buffer_.data() + at, &word, kWord);
  }
}

std::span<const std::byte> BlockNoise::next(std::uint64_t bytes) {
  xor_each_word(buffer_.data(), round_up_to_word(bytes), random_.bits(blocks_++));
  return std::as_const(buffer_).first(bytes);
}

WriteProbe::WriteProbe(Backend& backend, const WriteShape& shape, Name name, const Seed& seed)
    : backend_(backend), shape_(shape), name_(std::move(name)) {
  for (unsigned i = 0; i < shape.writers; ++i)
    noise_.emplace_back(seed(i), std::min(shape.block, shape.object_bytes));
}

RunTally WriteProbe::run(const ReadSpec& spec) {
  const std::uint64_t most = spec.max_passes == 0 ? kMostPasses : spec.max_passes;
  RunTally tally;
  if (spec.at_gate) spec.at_gate();
  const Clock::time_point start = Clock::now();
  const std::chrono::nanoseconds limit = time_limit(spec.end);
  const Clock::time_point until = shape_.whole ? Clock::time_point::max() : start + limit;
  do {
    Result<void> written = write_pass(until, tally);
    if (!written.ok()) {
      tally.failure = std::move(written).error();
      break;
    }
    ++tally.passes;
  } while (Clock::now() - start < limit && tally.passes < most);
  tally.wall_s = tally.elapsed_s = std::chrono::duration<double>(Clock::now() - start).count();
  return tally;
}

Result<void> WriteProbe::write_pass(Clock::time_point until, RunTally& all) {
  std::vector<LoopDone> each(shape_.writers);
  const auto write = [&](unsigned writer) -> Result<void> {
    LoopDone done;
    const std::uint64_t first = writer * shape_.objects;
    Result<void> outcome = success();
    for (std::uint64_t n = first; outcome.ok() && n < first + shape_.objects; ++n) {
      if (n > first && Clock::now() >= until) break;
      outcome = write_object(n, noise_[writer], until, done);
    }
    each[writer] = done;
    return outcome;
  };
  Result<void> written = on_threads(shape_.writers, write, IfFewer::fail);
  for (const LoopDone& done : each) {
    all.bytes += done.bytes;
    all.samples += done.samples;
  }
  return written;
}

Result<void> WriteProbe::write_object(std::uint64_t n, BlockNoise& noise, Clock::time_point until,
                                      LoopDone& done) {
  const std::uint64_t blocks = (shape_.object_bytes + shape_.block - 1) / shape_.block;
  const Permutation order(blocks, n);
  PENSTOCK_ASSIGN(const std::unique_ptr<Writer> writer, backend_.create(name_(n), shape_.object_bytes));
  std::uint64_t bytes = 0;
  std::uint64_t written = 0;
  for (std::uint64_t bytes_at_check = 0; written < blocks; ++written) {
    if (written == 0 || bytes - bytes_at_check >= kBytesBetweenClockReads) {
      PENSTOCK_TRY(check_interrupt());
      if (written > 0 && Clock::now() >= until) break;
      bytes_at_check = bytes;
    }
    const std::uint64_t offset = (shape_.random ? order.at(written) : written) * shape_.block;
    const std::span<const std::byte> block = noise.next(std::min(shape_.block, shape_.object_bytes - offset));
    PENSTOCK_TRY(shape_.random ? writer->write_at(offset, block) : writer->append(block));
    bytes += block.size();
  }
  PENSTOCK_TRY(writer->publish(shape_.durability, IfExists::replace));
  done.bytes += bytes;
  done.samples += shape_.by_object ? 1 : written;
  return success();
}

Result<void> WriteProbe::remove() {
  for (std::uint64_t n = 0; n < shape_.writers * shape_.objects; ++n) {
    Result<void> removed = backend_.names().remove(name_(n));
    if (!removed.ok() && removed.error().code != Errc::not_found) return removed;
  }
  return success();
}

}  // namespace penstock
