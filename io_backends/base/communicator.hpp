// The ranks of one job. One process by default; the MPI module supplies the other implementation under a
// launcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io_backends/base/result.hpp"

namespace penstock {

enum class Reduction : std::uint8_t { sum, min, max };

// Collective calls: every rank makes them in the same order, from one thread at a time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  bool root() const { return rank() == 0; }

  virtual Result<void> barrier() = 0;
  // In place, element by element; every rank gets the result.
  virtual Result<void> all_reduce(std::span<double> values, Reduction how) = 0;
  virtual Result<void> all_reduce(std::span<std::uint64_t> values, Reduction how) = 0;
  // Rank 0 gets one entry a rank, in rank order; the others get nothing.
  virtual Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> bytes) = 0;
  // Rank 0's bytes reach every rank.
  virtual Result<void> broadcast(std::vector<std::byte>& bytes) = 0;

  // This rank's monotonic clock minus rank 0's, by minimum-round-trip exchange, and how far off it may be.
  struct ClockOffset {
    std::int64_t offset_ns = 0;
    std::int64_t error_ns = 0;
  };
  virtual Result<ClockOffset> clock_offset() = 0;
};

std::unique_ptr<Communicator> single_process();

}  // namespace penstock
