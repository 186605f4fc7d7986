// Threads: one thread at a time makes the collective calls. Any thread may call report_signal(),
// heard_signal() and abandon(), also during a collective call.
// Locks: signals_mutex_ guards signals_, signal_receives_ and heard_signal_. The lock of a call
// (MpiSerializer) is a mutex only if MPI does not allow several threads at once. In this file only join()
// holds it while it waits for other ranks. Other functions hold it for one MPI call that does not wait for
// other ranks; the destructor holds it while it cancels the receives. The order is signals_mutex_, then the
// lock of a call.
// Memory: gather() and broadcast() allocate. MPI may allocate in any call.
// Ctrl-C: a signal does not end a wait in this file. SignalsForAll passes the signal to the other ranks by
// report_signal() and heard_signal().
// Crash: the other ranks wait for a rank that died until the launcher ends the job.
#include "io_backends/mpi/communicator.hpp"

#include <mpi.h>

#include <climits>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "io_backends/mpi/lifetime.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

// a wait tests again and again for this time before it begins to sleep
constexpr std::chrono::milliseconds kSpinTime{1};
// how long a wait sleeps between two tests after kSpinTime
constexpr std::chrono::microseconds kPollSleep{200};
constexpr std::chrono::hours kForever{24 * 365 * 100};
constexpr int kClockRounds = 64;
constexpr int kClockTag = 1;
constexpr int kSignalTag = 2;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

MPI_Op mpi_operation(Reduction reduction) {
  if (reduction == Reduction::min) return MPI_MIN;
  return reduction == Reduction::max ? MPI_MAX : MPI_SUM;
}

class MpiRanks final : public Communicator {
 public:
  static Result<std::unique_ptr<Communicator>> join();

  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;
  ~MpiRanks() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int rank_on_node() const override { return rank_on_node_; }

  Result<void> barrier() override {
    wait_for_ranks();
    return wait_until_done("wait for the ranks",
                           [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  }
  Result<void> all_reduce(std::span<double> values, Reduction reduction) override {
    return reduce(values.data(), values.size(), MPI_DOUBLE, reduction);
  }
  Result<void> all_reduce(std::span<uint64_t> values, Reduction reduction) override {
    return reduce(values.data(), values.size(), MPI_UINT64_T, reduction);
  }
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> bytes) override;
  Result<void> broadcast(std::vector<std::byte>& bytes) override;
  Result<ClockOffset> clock_offset() override;
  void report_signal(int signal) override;
  int heard_signal() override;
  bool wait_for_all(std::chrono::milliseconds timeout) override;
  // Ends all ranks of the job. It takes no lock: a thread that holds the lock may be waiting for another
  // rank, which waits for this rank.
  void abandon(int exit_code) override { MPI_Abort(MPI_COMM_WORLD, exit_code); }

 private:
  explicit MpiRanks(bool many_threads) : serializer_(many_threads) {}

  // Starts the receives for the signals of other ranks. Each rank other than 0 sends its signal to rank 0,
  // and rank 0 sends it to all. A rank sends at most one such message to another rank. So one receive for
  // each sender is enough.
  Result<void> receive_signals();
  // Calls `start`, which starts one nonblocking operation. Then tests again and again whether the operation
  // has ended. Returns whether it ended within `timeout`. Holds the lock of a call only while it starts or
  // tests the operation, because other ranks may be waiting for another thread of this rank.
  template <class Start>
  Result<bool> wait_for(std::chrono::milliseconds timeout, std::string_view what, const Start& start);
  template <class Start>
  Result<void> wait_until_done(std::string_view what, const Start& start) {
    PENSTOCK_TRY(wait_for(kForever, what, start));
    return success();
  }
  // Waits for all ranks. It sleeps most of the time: a wait inside MPI would use a whole processor, which
  // ranks that still work may need.
  void wait_for_ranks() { wait_for_all(kForever); }
  Result<void> reduce(void* values, size_t count, MPI_Datatype type, Reduction reduction) {
    wait_for_ranks();
    return wait_until_done("reduce over the ranks", [&](MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, values, int(count), type, mpi_operation(reduction), comm_, request);
    });
  }
  Result<void> send_clock(int rank);
  Result<ClockOffset> measure_offset();

  const MpiSerializer serializer_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  int rank_on_node_ = 0;
  std::once_flag reported_once_;
  std::vector<int> signals_;  // the receives write the signals of the other ranks here
  // One receive for each entry of signals_. Empty if only one thread may call MPI.
  std::vector<MPI_Request> signal_receives_;
  int heard_signal_ = 0;      // the first signal that arrived; 0: none
  std::mutex signals_mutex_;  // guards the three members above
};

Result<std::unique_ptr<Communicator>> MpiRanks::join() {
  PENSTOCK_ASSIGN(const int threads, start_mpi());
  std::unique_ptr<MpiRanks> ranks(new MpiRanks(threads >= MPI_THREAD_MULTIPLE));
  const auto call_lock = ranks->serializer_.lock_call();
  PENSTOCK_TRY(check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &ranks->comm_), "join the ranks"));
  MPI_Comm_set_errhandler(ranks->comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(ranks->comm_, &ranks->rank_);
  MPI_Comm_size(ranks->comm_, &ranks->size_);
  MPI_Comm node_comm = MPI_COMM_NULL;
  PENSTOCK_TRY(check_mpi(
      MPI_Comm_split_type(ranks->comm_, MPI_COMM_TYPE_SHARED, ranks->rank_, MPI_INFO_NULL, &node_comm),
      "find the ranks of this node"));
  MPI_Comm_rank(node_comm, &ranks->rank_on_node_);
  MPI_Comm_free(&node_comm);
  if (threads >= MPI_THREAD_SERIALIZED) PENSTOCK_TRY(ranks->receive_signals());
  return ranks;
}

Result<void> MpiRanks::receive_signals() {
  const size_t sources = root() ? size_t(size_) - 1 : 1;
  signals_.resize(sources);
  signal_receives_.assign(sources, MPI_REQUEST_NULL);
  for (size_t i = 0; i < sources; ++i) {
    const int source = root() ? int(i) + 1 : 0;
    PENSTOCK_TRY(
        check_mpi(MPI_Irecv(&signals_[i], 1, MPI_INT, source, kSignalTag, comm_, &signal_receives_[i]),
                  "join the ranks"));
  }
  return success();
}

template <class Start>
Result<bool> MpiRanks::wait_for(std::chrono::milliseconds timeout, std::string_view what,
                                const Start& start) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const auto call_lock = serializer_.lock_call();
    PENSTOCK_TRY(check_mpi(start(&request), what));
  }
  const Clock::time_point began = Clock::now();
  while (true) {
    int done = 0;
    {
      const auto call_lock = serializer_.lock_call();
      PENSTOCK_TRY(check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what));
    }
    if (done != 0) return true;
    const Clock::duration waited = Clock::now() - began;
    if (waited >= timeout) return false;
    if (waited < kSpinTime)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPollSleep);
  }
}

Result<std::vector<std::vector<std::byte>>> MpiRanks::gather(std::span<const std::byte> bytes) {
  wait_for_ranks();
  // Every rank learns the sizes of all ranks. So if the sum is too large, every rank returns the error, and
  // no rank waits for others in the gather.
  const uint64_t own_bytes = bytes.size();
  std::vector<uint64_t> sizes(static_cast<size_t>(size_));
  PENSTOCK_TRY(wait_until_done("gather over the ranks", [&](MPI_Request* request) {
    return MPI_Iallgather(&own_bytes, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, comm_, request);
  }));
  // MPI counts the bytes of a call in an int, so the limit is 2 GiB. Ranks gather figures and histograms,
  // which are far smaller.
  const uint64_t all_bytes = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  if (all_bytes > INT_MAX) return make_error(Errc::internal, "the ranks gathered more than 2 GiB at once");
  if (!root()) sizes.clear();
  const size_t ranks = sizes.size();
  std::vector<int> counts(ranks);
  std::vector<int> starts(ranks);
  uint64_t sum = 0;
  for (size_t i = 0; i < ranks; ++i) {
    counts[i] = int(sizes[i]);
    starts[i] = int(sum);
    sum += sizes[i];
  }
  std::vector<std::byte> joined(sum);
  PENSTOCK_TRY(wait_until_done("gather over the ranks", [&](MPI_Request* request) {
    return MPI_Igatherv(bytes.data(), int(own_bytes), MPI_BYTE, joined.data(), counts.data(), starts.data(),
                        MPI_BYTE, 0, comm_, request);
  }));
  std::vector<std::vector<std::byte>> bytes_by_rank(ranks);
  for (size_t i = 0; i < ranks; ++i)
    bytes_by_rank[i].assign(joined.begin() + starts[i], joined.begin() + starts[i] + counts[i]);
  return bytes_by_rank;
}

Result<void> MpiRanks::broadcast(std::vector<std::byte>& bytes) {
  wait_for_ranks();
  uint64_t size = bytes.size();
  PENSTOCK_TRY(wait_until_done("broadcast to the ranks", [&](MPI_Request* request) {
    return MPI_Ibcast(&size, 1, MPI_UINT64_T, 0, comm_, request);
  }));
  if (size > INT_MAX) return make_error(Errc::internal, "rank 0 sent the others more than 2 GiB at once");
  bytes.resize(size);
  return wait_until_done("broadcast to the ranks", [&](MPI_Request* request) {
    return MPI_Ibcast(bytes.data(), int(size), MPI_BYTE, 0, comm_, request);
  });
}

// Rank 0 exchanges its time with one rank after the other, so that no two exchanges delay each other.
Result<Communicator::ClockOffset> MpiRanks::clock_offset() {
  PENSTOCK_TRY(barrier());
  if (rank_ != 0) return measure_offset();
  for (int rank = 1; rank < size_; ++rank) PENSTOCK_TRY(send_clock(rank));
  return ClockOffset{};
}

Result<void> MpiRanks::send_clock(int rank) {
  char question = 0;
  for (int i = 0; i < kClockRounds; ++i) {
    PENSTOCK_TRY(wait_until_done("compare clocks with a rank", [&](MPI_Request* request) {
      return MPI_Irecv(&question, 1, MPI_CHAR, rank, kClockTag, comm_, request);
    }));
    const int64_t clock_ns = now_ns();
    PENSTOCK_TRY(wait_until_done("compare clocks with a rank", [&](MPI_Request* request) {
      return MPI_Isend(&clock_ns, 1, MPI_INT64_T, rank, kClockTag, comm_, request);
    }));
  }
  return success();
}

Result<Communicator::ClockOffset> MpiRanks::measure_offset() {
  ClockOffset best{.error_ns = INT64_MAX};
  const char question = 0;
  for (int i = 0; i < kClockRounds; ++i) {
    int64_t other_clock_ns = 0;
    const int64_t sent_ns = now_ns();
    PENSTOCK_TRY(wait_until_done("compare clocks with rank 0", [&](MPI_Request* request) {
      return MPI_Isend(&question, 1, MPI_CHAR, 0, kClockTag, comm_, request);
    }));
    PENSTOCK_TRY(wait_until_done("compare clocks with rank 0", [&](MPI_Request* request) {
      return MPI_Irecv(&other_clock_ns, 1, MPI_INT64_T, 0, kClockTag, comm_, request);
    }));
    const int64_t received_ns = now_ns();
    const int64_t error_ns = (received_ns - sent_ns + 1) / 2;
    if (error_ns < best.error_ns)
      best = {.offset_ns = sent_ns + (received_ns - sent_ns) / 2 - other_clock_ns, .error_ns = error_ns};
  }
  return best;
}

MpiRanks::~MpiRanks() {
  const auto call_lock = serializer_.lock_call();
  for (MPI_Request& request : signal_receives_) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// Sends the signal to the other ranks. It does not wait until the messages have arrived: a rank that has left
// the job needs no signal. Any thread may call it.
void MpiRanks::report_signal(int signal) {
  if (signal_receives_.empty()) return;
  std::call_once(reported_once_, [&] {
    static int sent_signal = 0;  // static, so that it exists until MPI ends: a send may read it until then
    sent_signal = signal;
    const int last_rank = root() ? size_ - 1 : 0;
    for (int rank = root() ? 1 : 0; rank <= last_rank; ++rank) {
      const auto call_lock = serializer_.lock_call();
      MPI_Request sent = MPI_REQUEST_NULL;
      if (MPI_Isend(&sent_signal, 1, MPI_INT, rank, kSignalTag, comm_, &sent) == MPI_SUCCESS)
        MPI_Request_free(&sent);
    }
  });
}

// Returns the signal that another rank sent, or 0. On rank 0 it also sends that signal to all ranks, by
// report_signal(), which sends only once. Any thread may call it.
int MpiRanks::heard_signal() {
  const std::lock_guard lock(signals_mutex_);
  if (signal_receives_.empty() || heard_signal_ != 0) return heard_signal_;
  int receive_index = MPI_UNDEFINED;
  int any_arrived = 0;
  {
    const auto call_lock = serializer_.lock_call();
    const int test_code = MPI_Testany(int(signal_receives_.size()), signal_receives_.data(), &receive_index,
                                      &any_arrived, MPI_STATUS_IGNORE);
    if (test_code != MPI_SUCCESS || any_arrived == 0 || receive_index == MPI_UNDEFINED) return 0;
  }
  heard_signal_ = signals_[size_t(receive_index)];
  if (root()) report_signal(heard_signal_);
  return heard_signal_;
}

bool MpiRanks::wait_for_all(std::chrono::milliseconds timeout) {
  const Result<bool> all_called = wait_for(
      timeout, "wait for the ranks", [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  return all_called.ok() && *all_called;
}

}  // namespace

Result<std::unique_ptr<Communicator>> join_mpi() {
  return MpiRanks::join();
}

}  // namespace penstock
