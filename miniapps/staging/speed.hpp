// Predicts how long reads of a given size take on a tier with a given number of threads, and how long an
// epoch takes whose files are on two tiers.
//
// The model. The files on a tier make a demand: how many reads of which sizes. With m threads that only read
// from this tier, the demand takes W(m) seconds; this was measured. Of the program's n threads, on average
// m_s read from the slow tier and m_f from the fast one. The others, m_z, do the other work, which takes Z
// thread-seconds per epoch. In an epoch of T seconds, the reads of both tiers and the other work end at the
// same time:
//
//   W_slow(m_s) = W_fast(m_f) = Z / m_z = T,     m_s + m_f + m_z = n
//
// With one thread, T is the sum of the times of both tiers and Z. With many threads, T is the time of the
// tier that takes longer: max(W_slow, W_fast). So the savings of single files must not be added up: if more
// files are moved than make both tiers end together, the epoch gets longer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock {

inline constexpr size_t kMostSizes = 8;

// Reads of any sizes, expressed as a number of reads of each size in a SpeedTable. The time of a demand is
// the sum of these numbers times the measured times. A size between two measured sizes is interpolated
// linearly.
using ReadDemand = std::array<double, kMostSizes>;
void add(ReadDemand& sum, const ReadDemand& more, double times = 1);

// The measurements of one tier. Does not change once it is filled; then any thread may read it.
struct SpeedTable {
  std::vector<double> sizes;      // bytes of a read, in ascending order; 1 to kMostSizes values
  std::vector<unsigned> threads;  // numbers of reading threads, ascending, each at least 1
  // read_s[thread count][size][repeat]: wall seconds divided by the number of reads of all threads.
  std::vector<std::vector<std::vector<double>>> read_s;
  // write_s[size]: seconds for a durable write of one file by the copying threads. Empty: not measured.
  std::vector<double> write_s;

  // One read of `bytes` bytes as a demand. A size above the largest measured size is extrapolated from the
  // two largest.
  ReadDemand reads_of(double bytes) const;
};

// One value for each number of threads and each size in a table's read_s (a cell), such as the median of the
// repeats.
using CellTimes = std::vector<std::vector<double>>;
CellTimes median_times(const SpeedTable& table);
// Returns, for each cell, the mean of repeats that are drawn at random. `draw(n)` returns a random number
// below n.
template <class Draw>
CellTimes drawn_times(const SpeedTable& table, Draw draw);

// The relative error of each cell's median, with 95% confidence. It follows from the variance of the repeats
// of this cell or, if that is larger, from the variance of the repeats of all cells. 0.1 if no cell has two
// repeats.
CellTimes time_errors(const SpeedTable& table);
// Multiplies each time by 1 + `error_count` * its error, but never by less than 0.1.
CellTimes shift_times(CellTimes times, const CellTimes& errors, double error_count);

// The reads of files of nearly one size: mean size and mean time.
struct MeasuredSize {
  double bytes = 0;
  double seconds = 0;  // per file
};
// Returns the time to read a file of each of `sizes`. `measurements` has one measurement for each size, in
// the same (ascending) order. The mean size of the files of a measurement may differ from its size in
// `sizes`. So its time is corrected along the line through this measurement and its neighbour, but by no
// larger factor than that between the two sizes.
std::vector<double> times_at(const std::vector<double>& sizes, const std::vector<MeasuredSize>& measurements);

// The latency and bandwidth of a tier with one number of threads: those of the line, time = latency + bytes /
// bandwidth, that fits the table with the smallest relative errors. With one size alone, the latency is set
// to 0.
struct LineFit {
  double latency_s = 0;
  double bytes_per_s = 0;
  double only_size = 0;  // bytes, if only one size was measured; else 0
};
LineFit fit_line(const SpeedTable& table, const CellTimes& times, size_t thread_index);

// The time W(m) of one demand on one tier.
class DemandTime {
 public:
  DemandTime(const SpeedTable& table, const CellTimes& times, const ReadDemand& demand);

  // The seconds that the demand takes with this many threads. Rates are interpolated between the measured
  // thread counts, and constant above the largest. 0 for an empty demand.
  double seconds(double threads) const;
  // The fewest threads that finish the demand within this many seconds; infinite if no number does.
  double threads_for(double seconds) const;
  double least_seconds() const;

 private:
  std::vector<std::pair<double, double>> rates_;  // thread count and 1 / W; empty for an empty demand
};

// The program whose epoch is predicted. It has `threads` threads, which in an epoch together spend think_s
// thread-seconds without reading.
struct ProgramThreads {
  double threads = 1;
  double think_s = 0;
};
double epoch_seconds(const DemandTime& slow, const DemandTime& fast, const ProgramThreads& program);
// Like epoch_seconds(), but without overlap: all threads read from one tier, then from the other. This is the
// longest time that an epoch can take.
double epoch_seconds_without_overlap(const DemandTime& slow, const DemandTime& fast,
                                     const ProgramThreads& program);

template <class Draw>
CellTimes drawn_times(const SpeedTable& table, Draw draw) {
  CellTimes times;
  for (const auto& of_threads : table.read_s) {
    auto& row = times.emplace_back();
    for (const std::vector<double>& repeats : of_threads) {
      double sum = 0;
      for (size_t i = 0; i < repeats.size(); ++i) sum += repeats[draw(repeats.size())];
      row.push_back(repeats.empty() ? 0.0 : sum / double(repeats.size()));
    }
  }
  return times;
}

}  // namespace penstock
