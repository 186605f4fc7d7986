// Threads: one thread at a time makes the collective calls. Any thread may call report_signal(),
// heard_signal() and abandon(), also during a collective call.
// Locks: hearing_ guards arriving_, listening_ and heard_. A turn (Turns) is a mutex only if MPI does not
// allow several threads at once. The order is hearing_, then a turn. A turn is held for one MPI call that
// does not block, never while waiting for other ranks.
// Memory: gather() and broadcast() allocate. MPI may allocate in any call.
// Ctrl-C: no wait here ends because of it. SignalsForAll passes the signal to the other ranks by
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

constexpr std::chrono::milliseconds kSpin{1};   // a wait spins this long before it sleeps
constexpr std::chrono::microseconds kNap{200};  // sleep between two tests after that
constexpr std::chrono::hours kForever{24 * 365 * 100};
constexpr int kClockRounds = 64;
constexpr int kClockTag = 1;
constexpr int kSignalTag = 2;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

MPI_Op operation(Reduction how) {
  if (how == Reduction::min) return MPI_MIN;
  return how == Reduction::max ? MPI_MAX : MPI_SUM;
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
    arrive();
    return whole("wait for the ranks", [&](MPI_Request* request) { return MPI_Ibarrier(all_, request); });
  }
  Result<void> all_reduce(std::span<double> values, Reduction how) override {
    return reduce(values.data(), values.size(), MPI_DOUBLE, how);
  }
  Result<void> all_reduce(std::span<std::uint64_t> values, Reduction how) override {
    return reduce(values.data(), values.size(), MPI_UINT64_T, how);
  }
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> bytes) override;
  Result<void> broadcast(std::vector<std::byte>& bytes) override;
  Result<ClockOffset> clock_offset() override;
  void report_signal(int signal) override;
  int heard_signal() override;
  bool meet(std::chrono::milliseconds patience) override;
  // Takes no turn: the thread that has the turn may be waiting for a rank that waits for this one.
  void abandon(int exit_code) override { MPI_Abort(MPI_COMM_WORLD, exit_code); }

 private:
  explicit MpiRanks(bool many_threads) : turns_(many_threads) {}

  // Starts to receive signals. A rank sends its signal to rank 0, and rank 0 sends it to all. Each rank sends
  // at most one, and each message is received.
  Result<void> listen();
  // Calls `start`, which starts one nonblocking operation, and tests it again and again until it ends.
  // Returns whether it ended within `patience`. Holds the turn only for each test, because other ranks may be
  // waiting for another thread of this rank.
  template <class Start>
  Result<bool> within(std::chrono::milliseconds patience, std::string_view what, const Start& start);
  template <class Start>
  Result<void> whole(std::string_view what, const Start& start) {
    PENSTOCK_TRY(within(kForever, what, start));
    return success();
  }
  // Waits for all ranks without using a processor that working ranks need: MPI's own waiting spins.
  void arrive() { meet(kForever); }
  Result<void> reduce(void* values, std::size_t count, MPI_Datatype type, Reduction how) {
    arrive();
    return whole("reduce over the ranks", [&](MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, values, static_cast<int>(count), type, operation(how), all_,
                            request);
    });
  }
  Result<void> answer(int rank);
  Result<ClockOffset> ask();

  const Turns turns_;
  MPI_Comm all_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  int rank_on_node_ = 0;
  std::once_flag reported_once_;
  std::vector<int> arriving_;  // receives the signals of the other ranks
  // One receive for each entry of arriving_. Empty if only one thread may call MPI.
  std::vector<MPI_Request> listening_;
  int heard_ = 0;       // the first signal that arrived; 0: none
  std::mutex hearing_;  // guards the three members above
};

Result<std::unique_ptr<Communicator>> MpiRanks::join() {
  PENSTOCK_ASSIGN(const int threads, start_mpi());
  std::unique_ptr<MpiRanks> ranks(new MpiRanks(threads >= MPI_THREAD_MULTIPLE));
  const auto turn = ranks->turns_.for_any();
  PENSTOCK_TRY(check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &ranks->all_), "join the ranks"));
  MPI_Comm_set_errhandler(ranks->all_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(ranks->all_, &ranks->rank_);
  MPI_Comm_size(ranks->all_, &ranks->size_);
  MPI_Comm node = MPI_COMM_NULL;
  PENSTOCK_TRY(
      check_mpi(MPI_Comm_split_type(ranks->all_, MPI_COMM_TYPE_SHARED, ranks->rank_, MPI_INFO_NULL, &node),
                "find the ranks of this node"));
  MPI_Comm_rank(node, &ranks->rank_on_node_);
  MPI_Comm_free(&node);
  if (threads >= MPI_THREAD_SERIALIZED) PENSTOCK_TRY(ranks->listen());
  return ranks;
}

Result<void> MpiRanks::listen() {
  const std::size_t sources = root() ? static_cast<std::size_t>(size_) - 1 : 1;
  arriving_.resize(sources);
  listening_.assign(sources, MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < sources; ++i) {
    const int source = root() ? static_cast<int>(i) + 1 : 0;
    PENSTOCK_TRY(check_mpi(MPI_Irecv(&arriving_[i], 1, MPI_INT, source, kSignalTag, all_, &listening_[i]),
                           "join the ranks"));
  }
  return success();
}

template <class Start>
Result<bool> MpiRanks::within(std::chrono::milliseconds patience, std::string_view what, const Start& start) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const auto turn = turns_.for_any();
    PENSTOCK_TRY(check_mpi(start(&request), what));
  }
  const Clock::time_point began = Clock::now();
  while (true) {
    int done = 0;
    {
      const auto turn = turns_.for_any();
      PENSTOCK_TRY(check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what));
    }
    if (done != 0) return true;
    const Clock::duration gone = Clock::now() - began;
    if (gone >= patience) return false;
    if (gone < kSpin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kNap);
  }
}

Result<std::vector<std::vector<std::byte>>> MpiRanks::gather(std::span<const std::byte> bytes) {
  arrive();
  // Every rank learns the sizes of all ranks. So if the sum is too large, each rank returns the error and
  // none waits for the others.
  const std::uint64_t mine = bytes.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(size_));
  PENSTOCK_TRY(whole("gather over the ranks", [&](MPI_Request* request) {
    return MPI_Iallgather(&mine, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, all_, request);
  }));
  // An int counts the bytes of an MPI call. The figures and histograms that ranks gather are far smaller.
  const std::uint64_t everybodys = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (everybodys > INT_MAX) return make_error(Errc::internal, "the ranks gathered more than 2 GiB at once");
  if (!root()) sizes.clear();
  const std::size_t ranks = sizes.size();
  std::vector<int> counts(ranks);
  std::vector<int> starts(ranks);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    counts[i] = static_cast<int>(sizes[i]);
    starts[i] = static_cast<int>(sum);
    sum += sizes[i];
  }
  std::vector<std::byte> flat(sum);
  PENSTOCK_TRY(whole("gather over the ranks", [&](MPI_Request* request) {
    return MPI_Igatherv(bytes.data(), static_cast<int>(mine), MPI_BYTE, flat.data(), counts.data(),
                        starts.data(), MPI_BYTE, 0, all_, request);
  }));
  std::vector<std::vector<std::byte>> all(ranks);
  for (std::size_t i = 0; i < ranks; ++i)
    all[i].assign(flat.begin() + starts[i], flat.begin() + starts[i] + counts[i]);
  return all;
}

Result<void> MpiRanks::broadcast(std::vector<std::byte>& bytes) {
  arrive();
  std::uint64_t size = bytes.size();
  PENSTOCK_TRY(whole("broadcast to the ranks", [&](MPI_Request* request) {
    return MPI_Ibcast(&size, 1, MPI_UINT64_T, 0, all_, request);
  }));
  if (size > INT_MAX) return make_error(Errc::internal, "rank 0 told the others more than 2 GiB at once");
  bytes.resize(size);
  return whole("broadcast to the ranks", [&](MPI_Request* request) {
    return MPI_Ibcast(bytes.data(), static_cast<int>(size), MPI_BYTE, 0, all_, request);
  });
}

// Rank 0 answers one rank after the other, so that no exchange is delayed by another one.
Result<Communicator::ClockOffset> MpiRanks::clock_offset() {
  PENSTOCK_TRY(barrier());
  if (rank_ != 0) return ask();
  for (int rank = 1; rank < size_; ++rank) PENSTOCK_TRY(answer(rank));
  return ClockOffset{};
}

Result<void> MpiRanks::answer(int rank) {
  char question = 0;
  for (int i = 0; i < kClockRounds; ++i) {
    PENSTOCK_TRY(whole("compare clocks with a rank", [&](MPI_Request* request) {
      return MPI_Irecv(&question, 1, MPI_CHAR, rank, kClockTag, all_, request);
    }));
    const std::int64_t here = now_ns();
    PENSTOCK_TRY(whole("compare clocks with a rank", [&](MPI_Request* request) {
      return MPI_Isend(&here, 1, MPI_INT64_T, rank, kClockTag, all_, request);
    }));
  }
  return success();
}

Result<Communicator::ClockOffset> MpiRanks::ask() {
  ClockOffset best{.error_ns = INT64_MAX};
  const char question = 0;
  for (int i = 0; i < kClockRounds; ++i) {
    std::int64_t there = 0;
    const std::int64_t sent = now_ns();
    PENSTOCK_TRY(whole("compare clocks with rank 0", [&](MPI_Request* request) {
      return MPI_Isend(&question, 1, MPI_CHAR, 0, kClockTag, all_, request);
    }));
    PENSTOCK_TRY(whole("compare clocks with rank 0", [&](MPI_Request* request) {
      return MPI_Irecv(&there, 1, MPI_INT64_T, 0, kClockTag, all_, request);
    }));
    const std::int64_t back = now_ns();
    const std::int64_t error = (back - sent + 1) / 2;
    if (error < best.error_ns) best = {.offset_ns = sent + (back - sent) / 2 - there, .error_ns = error};
  }
  return best;
}

MpiRanks::~MpiRanks() {
  const auto turn = turns_.for_any();
  for (MPI_Request& request : listening_) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// Any thread. Does not wait for its sends: a rank that has left the job needs no signal.
void MpiRanks::report_signal(int signal) {
  if (listening_.empty()) return;
  std::call_once(reported_once_, [&] {
    static int told = 0;  // static, so that it is valid until MPI ends: a send may end as late as that
    told = signal;
    const int last = root() ? size_ - 1 : 0;
    for (int rank = root() ? 1 : 0; rank <= last; ++rank) {
      const auto turn = turns_.for_any();
      MPI_Request sent = MPI_REQUEST_NULL;
      if (MPI_Isend(&told, 1, MPI_INT, rank, kSignalTag, all_, &sent) == MPI_SUCCESS) MPI_Request_free(&sent);
    }
  });
}

// Any thread. Holds hearing_ while it sends at rank 0, so each signal is passed on once.
int MpiRanks::heard_signal() {
  const std::lock_guard lock(hearing_);
  if (listening_.empty() || heard_ != 0) return heard_;
  int which = MPI_UNDEFINED;
  int arrived = 0;
  {
    const auto turn = turns_.for_any();
    const int tested = MPI_Testany(static_cast<int>(listening_.size()), listening_.data(), &which, &arrived,
                                   MPI_STATUS_IGNORE);
    if (tested != MPI_SUCCESS || arrived == 0 || which == MPI_UNDEFINED) return 0;
  }
  heard_ = arriving_[static_cast<std::size_t>(which)];
  if (root()) report_signal(heard_);
  return heard_;
}

bool MpiRanks::meet(std::chrono::milliseconds patience) {
  const Result<bool> met = within(patience, "wait for the ranks",
                                  [&](MPI_Request* request) { return MPI_Ibarrier(all_, request); });
  return met.ok() && *met;
}

}  // namespace

Result<std::unique_ptr<Communicator>> join_mpi() {
  return MpiRanks::join();
}

}  // namespace penstock
