#include "profiling/session/transfers.hpp"

#include <algorithm>
#include <cmath>

#include "profiling/session/layers.hpp"
#include "profiling/session/named_files.hpp"
#include "profiling/session/session_segments.hpp"

namespace penstock {
namespace {

TransferKind kind_of(unsigned call) {
  if (call == PENSTOCK_CALL_READ) return TransferKind::read;
  return call == PENSTOCK_CALL_WRITE ? TransferKind::write : TransferKind::metadata;
}

void each_recorded_call(const Session& session, const NamedFiles& wanted, const EachTransfer& each) {
  each_segment(session, [&](const penstock_segment& segment, const ProcessFile& process_file) {
    if (segment.call >= PENSTOCK_CALLS || segment.failed != 0 || !moves_bytes_of_its_own(segment.layer) ||
        wanted.find(segment.file, process_file) == nullptr)
      return;
    const SessionClock& clock = process_file.view().clock();
    Transfer transfer{&process_file,
                      segment.layer,
                      kind_of(segment.call),
                      clock.realtime_at(segment.begin_ticks),
                      clock.realtime_at(segment.end_ticks),
                      segment.length,
                      1};
    transfer.end_ns = std::max(transfer.begin_ns, transfer.end_ns);
    // only reads and writes move bytes; for other calls `length` may mean something else, such as the size of
    // a mapping
    if (transfer.kind == TransferKind::metadata) transfer.bytes = 0;
    each(transfer);
  });
}

// Calls `each` for the reads, the writes and the metadata operations of one thread on one file: at most three
// transfers, made from the counters.
void each_counted_transfer(const penstock_counters& counters, const ProcessFile& process_file,
                           const EachTransfer& each) {
  const SessionClock& clock = process_file.view().clock();
  const auto add_transfer = [&](TransferKind kind, uint64_t first, uint64_t last, uint64_t bytes,
                                uint64_t operations) {
    if (bytes == 0 && operations == 0) return;
    if (first == PENSTOCK_NEVER) first = counters.first_ticks;
    if (last == PENSTOCK_NEVER) last = counters.last_ticks;
    Transfer transfer{&process_file, counters.layer, kind, clock.realtime_at(first), 0, bytes, operations};
    transfer.end_ns = std::max(transfer.begin_ns, clock.realtime_at(last));
    each(transfer);
  };
  LayerSum sum;
  sum.add(counters, clock);
  add_transfer(TransferKind::read, counters.first_read_ticks, counters.last_read_ticks, sum.bytes_read,
               sum.reads);
  add_transfer(TransferKind::write, counters.first_write_ticks, counters.last_write_ticks, sum.bytes_written,
               sum.writes);
  add_transfer(TransferKind::metadata, counters.first_ticks, counters.last_ticks, 0, sum.metadata());
}

}  // namespace

void each_transfer(const Session& session, const FileSums& sums, const SessionFilter& filter, bool every_call,
                   const EachTransfer& each) {
  const NamedFiles wanted(session, sums, filter);
  if (every_call) {
    each_recorded_call(session, wanted, each);
    return;
  }
  sums.each_entry([&](const penstock_counters& counters, const ProcessFile& process_file,
                      std::string_view path, unsigned kind) {
    // The filter's argument `moved_bytes` is true: find() has already checked whether any process moved bytes
    // of the file. The bytes of this single entry may be 0 although the file has some.
    if (moves_bytes_of_its_own(counters.layer) && wanted.find(counters.file, process_file) != nullptr &&
        filter.wants(path, kind, true, process_file))
      each_counted_transfer(counters, process_file, each);
  });
}

TransferSeries::TransferSeries(int64_t begin_ns, double wall_s, double most_points)
    : begin_ns_(begin_ns),
      interval_s_(series_interval(wall_s, most_points)),
      points_(size_t(std::clamp(std::ceil(wall_s / interval_s_), 1.0, most_points))) {}

void TransferSeries::add(std::vector<double>& series, const Transfer& transfer, uint64_t amount) const {
  if (amount == 0) return;
  const double total_s = interval_s_ * double(points_);
  const auto seconds = [&](int64_t ns) {
    return std::clamp((double(ns) - double(begin_ns_)) / 1e9, 0.0, total_s);
  };
  series.resize(points_);
  add_evenly(series, interval_s_, seconds(transfer.begin_ns), seconds(transfer.end_ns), double(amount));
}

}  // namespace penstock
