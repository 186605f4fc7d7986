// When operations were made and bytes moved: single calls where all of them were kept (`profile run
// --trace`), else what each thread did to each file, from its first operation of that kind to its last.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

enum class TransferKind { read, write, metadata };

// Operations of one kind, evenly spread over their time. Of layers that move bytes of their own.
struct Transfer {
  const SessionImage* image = nullptr;
  unsigned layer = PENSTOCK_POSIX;
  TransferKind kind = TransferKind::read;
  std::int64_t begin_ns = 0;  // realtime
  std::int64_t end_ns = 0;    // not before it
  std::uint64_t bytes = 0;
  std::uint64_t operations = 0;
};
using EachTransfer = std::function<void(const Transfer&)>;

// Their bytes add up to those of the files that are wanted. `every_call`: as SessionSummary says.
void each_transfer(const Session& session, const FileSums& sums, const SessionFilter& filter, bool every_call,
                   const EachTransfer& each);

// What moved in each interval of a time that begins at `begin_ns`; nothing that is added falls out of it.
class TransferSeries {
 public:
  TransferSeries(std::int64_t begin_ns, double wall_s, double most_points);

  double interval_s() const { return interval_s_; }
  std::size_t points() const { return points_; }
  // Adds to a series of points() values.
  void add(std::vector<double>& series, const Transfer& transfer, std::uint64_t amount) const;

 private:
  std::int64_t begin_ns_;
  double interval_s_;
  std::size_t points_;
};

}  // namespace penstock
