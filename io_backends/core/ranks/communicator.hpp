// The ranks of one job. One process by default; the MPI module supplies the other implementation under a
// launcher (launcher.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

enum class Reduction : std::uint8_t { sum, min, max };

// Collective calls: every rank makes them in the same order, from one thread at a time. An error is that of
// the transport.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int rank_on_node() const = 0;  // among the ranks of this node; exactly one of them is 0
  bool root() const { return rank() == 0; }

  virtual Result<void> barrier() = 0;
  // In place, element by element; every rank gets the result.
  virtual Result<void> all_reduce(std::span<double> values, Reduction how) = 0;
  virtual Result<void> all_reduce(std::span<std::uint64_t> values, Reduction how) = 0;
  // Rank 0 gets one entry a rank, in rank order; the others get nothing.
  virtual Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> bytes) = 0;
  // Rank 0's bytes reach every rank.
  virtual Result<void> broadcast(std::vector<std::byte>& bytes) = 0;

  // This rank's monotonic clock minus rank 0's, from the exchange with the shortest round trip, and its
  // error.
  struct ClockOffset {
    std::int64_t offset_ns = 0;
    std::int64_t error_ns = 0;
  };
  virtual Result<ClockOffset> clock_offset() = 0;

  // report_signal() sends a signal that came here to all other ranks and waits for none of them. Only the
  // first call sends. heard_signal() returns the signal that another rank sent, or 0; the other ranks may
  // hear it only after rank 0 has called heard_signal(). Any thread, also during a collective call. Both do
  // nothing if only one thread may use the transport (MPI below MPI_THREAD_SERIALIZED).
  virtual void report_signal(int signal) = 0;
  virtual int heard_signal() = 0;

  // Collective: whether all ranks called it within `patience`. After a false no collective call may follow.
  virtual bool meet(std::chrono::milliseconds patience) = 0;
  // Ends every rank, if this one cannot go on. Returns only for a single process.
  virtual void abandon(int exit_code) = 0;
};

std::unique_ptr<Communicator> single_process();

// While it lives, a signal at one rank reaches all within a few tenths of a second, also during a collective
// call. Every rank needs one. It asks ten times a second, on a thread of its own. Does nothing with one rank,
// or where report_signal() does nothing.
class SignalsForAll {
 public:
  explicit SignalsForAll(Communicator& ranks);

 private:
  std::jthread thread_;
};

}  // namespace penstock
