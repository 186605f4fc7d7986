// For tests of collective work: a job of several ranks in one process, each on a thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "io_backends/core/ranks/communicator.hpp"

namespace penstock {

class RankThreads {
 public:
  // Runs `body` on every rank of a job, and returns when all have ended.
  static void run(int ranks, const std::function<void(Communicator&)>& body) {
    Shared shared(ranks);
    std::vector<std::jthread> threads;
    threads.reserve(size_t(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&shared, &body, rank] {
        Member member(shared, rank);
        body(member);
      });
  }

 private:
  using Bytes = std::vector<std::byte>;

  struct Shared {
    explicit Shared(int ranks) : exchanged(size_t(ranks)), barrier(ranks) {}
    std::vector<Bytes> exchanged;  // the bytes that each rank gave to exchange()
    // each exchange() waits here twice; the barrier makes `exchanged` visible to all ranks
    std::barrier<> barrier;
    std::atomic<int> signal = 0;  // the first signal that a rank reported
  };

  class Member final : public Communicator {
   public:
    Member(Shared& shared, int rank) : shared_(shared), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return int(shared_.exchanged.size()); }
    int rank_on_node() const override { return rank_; }
    Result<void> barrier() override {
      shared_.barrier.arrive_and_wait();
      return success();
    }
    Result<void> all_reduce(std::span<double> values, Reduction how) override { return reduce(values, how); }
    Result<void> all_reduce(std::span<uint64_t> values, Reduction how) override {
      return reduce(values, how);
    }
    Result<std::vector<Bytes>> gather(std::span<const std::byte> bytes) override {
      std::vector<Bytes> all = exchange({bytes.begin(), bytes.end()});
      return root() ? all : std::vector<Bytes>();
    }
    Result<void> broadcast(Bytes& bytes) override {
      bytes = exchange(bytes).front();
      return success();
    }
    Result<ClockOffset> clock_offset() override { return ClockOffset{}; }
    void report_signal(int signal) override {
      int no_signal = 0;
      shared_.signal.compare_exchange_strong(no_signal, signal);
    }
    int heard_signal() override { return shared_.signal; }
    bool wait_for_all(std::chrono::milliseconds) override { return barrier().ok(); }
    void abandon(int exit_code) override { ADD_FAILURE() << "rank " << rank_ << " left with " << exit_code; }

   private:
    // Returns the bytes of all ranks. The first barrier waits until all ranks have stored theirs. The second
    // one waits until all have copied them, before the next exchange() overwrites them.
    std::vector<Bytes> exchange(Bytes own_bytes) {
      shared_.exchanged[size_t(rank_)] = std::move(own_bytes);
      shared_.barrier.arrive_and_wait();
      std::vector<Bytes> all = shared_.exchanged;
      shared_.barrier.arrive_and_wait();
      return all;
    }

    template <class T>
    Result<void> reduce(std::span<T> values, Reduction how) {
      const auto bytes = std::as_bytes(values);
      const std::vector<Bytes> all = exchange({bytes.begin(), bytes.end()});
      for (size_t i = 0; i < values.size(); ++i) {
        for (size_t rank = 0; rank < all.size(); ++rank) {
          T other{};
          std::copy_n(all[rank].begin() + ptrdiff_t(i * sizeof(T)), sizeof(T),
                      std::as_writable_bytes(std::span(&other, 1)).begin());
          if (rank == 0)
            values[i] = other;
          else if (how == Reduction::sum)
            values[i] += other;
          else
            values[i] = how == Reduction::min ? std::min(values[i], other) : std::max(values[i], other);
        }
      }
      return success();
    }

    Shared& shared_;
    const int rank_;
  };
};

}  // namespace penstock
