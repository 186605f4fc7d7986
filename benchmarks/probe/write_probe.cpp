#include "benchmarks/probe/write_probe.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

constexpr uint64_t kWordBytes = sizeof(uint64_t);
// The clock is read again only after this many bytes. A clock read can take as long as several writes of 4
// KiB to memory.
constexpr uint64_t kBytesBetweenClockReads = 64U << 10U;

uint64_t round_up_to_word(uint64_t bytes) {
  return (bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
}

// XORs every 8 bytes with `mask`. `bytes` must be a multiple of 8. memcpy() makes a cast unnecessary, and
// compilers still vectorize this loop.
void xor_each_word(std::byte* at, uint64_t bytes, uint64_t mask) {
  for (std::byte* const end = at + bytes; at != end; at += kWordBytes) {
    uint64_t word = 0;
    std::memcpy(&word, at, kWordBytes);
    word ^= mask;
    std::memcpy(at, &word, kWordBytes);
  }
}

}  // namespace

BlockNoise::BlockNoise(uint64_t seed, uint64_t most_bytes)
    : buffer_(round_up_to_word(most_bytes)), random_(seed, "probe") {
  const RandomStream bytes = random_.substream(0);
  for (uint64_t at = 0; at < round_up_to_word(most_bytes); at += kWordBytes) {
    const uint64_t word = bytes.bits(at);
    std::memcpy(buffer_.data() + at, &word, kWordBytes);
  }
}

std::span<const std::byte> BlockNoise::next(uint64_t bytes) {
  xor_each_word(buffer_.data(), round_up_to_word(bytes), random_.bits(blocks_++));
  return std::as_const(buffer_).first(bytes);
}

WriteProbe::WriteProbe(Backend& backend, const WriteShape& shape, ObjectName name, const WriterSeed& seed)
    : backend_(backend), shape_(shape), name_(std::move(name)) {
  for (unsigned i = 0; i < shape.writers; ++i)
    noise_.emplace_back(seed(i), std::min(shape.block_bytes, shape.object_bytes));
}

RunTally WriteProbe::run(const ReadSpec& spec) {
  const uint64_t most_passes = spec.max_passes == 0 ? kMostPasses : spec.max_passes;
  RunTally tally;
  if (spec.at_gate) spec.at_gate();
  const Clock::time_point start = Clock::now();
  const std::chrono::nanoseconds limit = time_limit(spec.end);
  const Clock::time_point deadline = shape_.whole_passes ? Clock::time_point::max() : start + limit;
  do {
    Result<void> outcome = write_pass(deadline, tally);
    if (!outcome.ok()) {
      tally.failure = std::move(outcome).error();
      break;
    }
    ++tally.passes;
  } while (Clock::now() - start < limit && tally.passes < most_passes);
  tally.wall_s = tally.elapsed_s = std::chrono::duration<double>(Clock::now() - start).count();
  return tally;
}

Result<void> WriteProbe::write_pass(Clock::time_point deadline, RunTally& total) {
  std::vector<LoopDone> writer_results(shape_.writers);
  const auto write = [&](unsigned writer) -> Result<void> {
    LoopDone done;
    const uint64_t first_object = writer * shape_.objects_per_writer;
    Result<void> outcome = success();
    for (uint64_t n = first_object; outcome.ok() && n < first_object + shape_.objects_per_writer; ++n) {
      if (n > first_object && Clock::now() >= deadline) break;
      outcome = write_object(n, noise_[writer], deadline, done);
    }
    writer_results[writer] = done;
    return outcome;
  };
  Result<void> written =
      on_threads(shape_.writers, write, IfFewer::fail, {}, "fewer --threads or smaller --depths");
  for (const LoopDone& done : writer_results) {
    total.bytes += done.bytes;
    total.samples += done.samples;
  }
  return written;
}

Result<void> WriteProbe::write_object(uint64_t n, BlockNoise& noise, Clock::time_point deadline,
                                      LoopDone& done) {
  const uint64_t blocks = (shape_.object_bytes + shape_.block_bytes - 1) / shape_.block_bytes;
  const Permutation order(blocks, n);
  PENSTOCK_ASSIGN(const std::unique_ptr<Writer> writer, backend_.create(name_(n), shape_.object_bytes));
  uint64_t bytes = 0;
  uint64_t blocks_written = 0;
  for (uint64_t bytes_at_clock_read = 0; blocks_written < blocks; ++blocks_written) {
    if (blocks_written == 0 || bytes - bytes_at_clock_read >= kBytesBetweenClockReads) {
      PENSTOCK_TRY(check_interrupt());
      if (blocks_written > 0 && Clock::now() >= deadline) break;
      bytes_at_clock_read = bytes;
    }
    const uint64_t offset =
        (shape_.random_order ? order.at(blocks_written) : blocks_written) * shape_.block_bytes;
    const std::span<const std::byte> block =
        noise.next(std::min(shape_.block_bytes, shape_.object_bytes - offset));
    PENSTOCK_TRY(shape_.random_order ? writer->write_at(offset, block) : writer->append(block));
    bytes += block.size();
  }
  PENSTOCK_TRY(writer->publish(shape_.durability, IfExists::replace));
  done.bytes += bytes;
  done.samples += shape_.count_objects ? 1 : blocks_written;
  return success();
}

Result<void> WriteProbe::remove() {
  for (uint64_t n = 0; n < shape_.writers * shape_.objects_per_writer; ++n) {
    Result<void> removed = backend_.names().remove(name_(n));
    if (!removed.ok() && removed.error().code != Errc::not_found) return removed;
  }
  return success();
}

}  // namespace penstock
