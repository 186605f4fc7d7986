// Connects the ranks of one job. By default the job is one process. Under a launcher the MPI module supplies
// the implementation (launcher.hpp).
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

enum class Reduction : uint8_t { sum, min, max };

// The calls by which the ranks of a job exchange values and wait for each other. Every rank makes the
// collective calls in the same order, from one thread at a time. Errors are those of the transport, such as
// MPI.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int rank_on_node() const = 0;  // number of this rank among the ranks of its node, from 0
  bool root() const { return rank() == 0; }

  virtual Result<void> barrier() = 0;
  // Combines the values of all ranks element by element, for example to their sums. Every rank gets the
  // result in `values`.
  virtual Result<void> all_reduce(std::span<double> values, Reduction how) = 0;
  virtual Result<void> all_reduce(std::span<uint64_t> values, Reduction how) = 0;
  // Sends each rank's bytes to rank 0. Rank 0 gets one entry for each rank, in rank order. The other ranks
  // get nothing.
  virtual Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> bytes) = 0;
  // Copies rank 0's bytes into `bytes` of every rank.
  virtual Result<void> broadcast(std::vector<std::byte>& bytes) = 0;

  // The monotonic clock of this rank minus that of rank 0, with the largest possible error. This rank and
  // rank 0 exchange several messages. The exchange with the shortest round trip gives the result.
  struct ClockOffset {
    int64_t offset_ns = 0;
    int64_t error_ns = 0;
  };
  virtual Result<ClockOffset> clock_offset() = 0;

  // report_signal() sends a signal of this process to all other ranks and waits for none of them. Only its
  // first call sends anything. Rank 0 sends to every rank directly. Any other rank sends to rank 0, which
  // forwards the signal when it calls heard_signal().
  // heard_signal() returns the signal that another rank sent, or 0.
  // Any thread may call these two functions, also during a collective call. They do nothing if only one
  // thread may use the transport (MPI below MPI_THREAD_SERIALIZED).
  virtual void report_signal(int signal) = 0;
  virtual int heard_signal() = 0;

  // Collective. Returns whether all ranks called it within `timeout`. If it returns false, no collective
  // call may follow.
  virtual bool wait_for_all(std::chrono::milliseconds timeout) = 0;
  // Ends all ranks of the job. A rank that cannot continue calls it. It returns only if the job has a single
  // process.
  virtual void abandon(int exit_code) = 0;
};

std::unique_ptr<Communicator> single_process();

// While a SignalsForAll exists, a signal at one rank reaches all ranks within a few tenths of a second, also
// during a collective call. Every rank needs one. Its own thread checks for a signal ten times a second. It
// does nothing in a job of one rank, or if report_signal() does nothing.
class SignalsForAll {
 public:
  explicit SignalsForAll(Communicator& ranks);

 private:
  std::jthread thread_;
};

}  // namespace penstock
