// The ranks of one job. One process by default; the MPI module supplies the other implementation under a
// launcher (launcher.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  virtual int rank_on_node() const = 0;  // among the ranks that share this one's memory; 0 is there once
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

  // Says to all other ranks that this signal came here, and waits for none of them; only the first is said.
  // heard_signal() is what another one has said, or 0; rank 0 may have to ask for it before the others hear.
  // From any thread, whatever collective call is under way. Nothing is said nor heard where the transport is
  // for one thread alone (MPI below MPI_THREAD_SERIALIZED).
  virtual void report_signal(int signal) = 0;
  virtual int heard_signal() = 0;

  // Whether all ranks came here within `patience`; no collective call may follow one that did not succeed.
  virtual bool meet(std::chrono::milliseconds patience) = 0;
  // Ends every rank, for one that cannot go on alone: returns for a single process only.
  virtual void abandon(int exit_code) = 0;
};

std::unique_ptr<Communicator> single_process();

// Collective: the first rank's error on every rank, "on rank 2 of 4: ..." before it where only some ranks
// have one; success where none has.
Result<void> agree(Communicator& ranks, const Result<void>& mine);
// Collective: what rank 0 says of what it alone did, on every rank.
Result<void> outcome_of_root(Communicator& ranks, const Result<void>& roots);
// What agree() takes of what may be more than an outcome.
template <class T>
Result<void> outcome_of(const Result<T>& result) {
  return result.ok() ? success() : Result<void>(result.error());
}

// Collective: runs `work` on every rank and returns what they agree() on. Meanwhile the ranks hear of each
// other some ten times a second: as soon as one has failed, `stop` is called on each, by another thread than
// works, and perhaps more than once; stopped work is to return success soon. A signal that comes to one rank
// comes to all.
Result<void> work_together(Communicator& ranks, const std::function<Result<void>()>& work,
                           const std::function<void()>& stop);

// While it lives, a signal that comes to one rank comes to all in some tenths of a second, whatever they are
// at, without a collective call: every rank needs one. It asks ten times a second, on a thread of its own;
// nothing where there is one rank, or where report_signal() does nothing.
class SignalsForAll {
 public:
  explicit SignalsForAll(Communicator& ranks);

 private:
  std::jthread thread_;
};

}  // namespace penstock
