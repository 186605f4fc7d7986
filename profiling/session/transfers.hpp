// Lists the transfers of a session: what was moved, how much, from when to when. If every call was recorded
// (`profile run --trace`), a transfer is one call. Otherwise it is all reads, all writes or all metadata
// operations of one thread on one file, from the first to the last.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

enum class TransferKind { read, write, metadata };

// Operations of one kind. Charts show them as evenly distributed from begin_ns to end_ns. MPI-IO and HDF5
// have no transfers, because the layers below them count the same bytes (layers.hpp).
struct Transfer {
  const ProcessFile* process_file = nullptr;
  unsigned layer = PENSTOCK_POSIX;
  TransferKind kind = TransferKind::read;
  int64_t begin_ns = 0;  // since 1970
  int64_t end_ns = 0;    // not before begin_ns
  uint64_t bytes = 0;
  uint64_t operations = 0;
};
using EachTransfer = std::function<void(const Transfer&)>;

// Calls `each` for the transfers of all wanted files. Their bytes add up to the bytes of the files.
// `every_call`: each transfer is one call; must be true only if the session has all calls
// (SessionSummary::io_is_union).
void each_transfer(const Session& session, const FileSums& sums, const SessionFilter& filter, bool every_call,
                   const EachTransfer& each);

// Divides the `wall_s` seconds that begin at `begin_ns` into equal intervals, and adds up the bytes or
// operations in each. Amounts before the first interval are added to it, and amounts after the last interval
// to the last.
class TransferSeries {
 public:
  TransferSeries(int64_t begin_ns, double wall_s, double most_points);

  double interval_s() const { return interval_s_; }
  size_t points() const { return points_; }
  // Adds `amount` to a series of points() values, at the time of the transfer.
  void add(std::vector<double>& series, const Transfer& transfer, uint64_t amount) const;

 private:
  int64_t begin_ns_;
  double interval_s_;
  size_t points_;
};

}  // namespace penstock
