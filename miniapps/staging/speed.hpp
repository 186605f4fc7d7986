// How long reads of that many bytes take on a tier, by the threads that read at once; and how long an epoch
// takes whose files lie on two tiers.
//
// The model. What lies on a tier is a demand: how many reads of which sizes. By itself, with m threads at it
// all the time, the tier works it off in W(m) seconds, which was measured. Of a program's n threads, m_s are
// on the slow tier on average, m_f on the fast one, and the rest are in neither (Z thread-seconds an epoch).
// In an epoch of T seconds all three end together:
//
//   W_slow(m_s) = W_fast(m_f) = Z / m_z = T,     m_s + m_f + m_z = n
//
// With one thread this is the sum of both tiers' times, with many it is the time of the tier that has more to
// do: max(W_slow, W_fast). Savings are never summed over files, for what is moved beyond the point at which
// both end together makes the epoch longer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock {

inline constexpr std::size_t kMostKnots = 8;

// Reads of any sizes, as numbers of reads of each of a table's sizes: their time is a linear combination of
// the times measured there. (The time of a size between two of them is on the line between theirs.)
using Demand = std::array<double, kMostKnots>;
void add(Demand& sum, const Demand& more, double times = 1);

// What was measured of one tier. Immutable once filled; any thread.
struct SpeedTable {
  std::vector<double> sizes;      // bytes a read, rising, 1 to kMostKnots of them
  std::vector<unsigned> threads;  // that read at once, rising, each at least 1
  // [thread count][size][repeat]: seconds of wall time a read, all threads together.
  std::vector<std::vector<std::vector<double>>> read_s;
  std::vector<double> write_s;  // [size], durably, by the threads that copy; empty: not measured

  // A read of that many bytes. Behind the largest size the line through the last two goes on.
  Demand reads_of(double bytes) const;
};

// One value for each cell of a table's read_s: medians, or some repeats drawn at random.
using CellTimes = std::vector<std::vector<double>>;
CellTimes median_times(const SpeedTable& table);
// `draw(n)` gives a number below n.
template <class Draw>
CellTimes drawn_times(const SpeedTable& table, Draw draw);

// How far each of a table's medians may be off, as a part of it, with 95% confidence: by how far the repeats
// lie apart, of all cells, or of its own where those lie farther apart. 0.1 where no cell has two.
CellTimes time_errors(const SpeedTable& table);
// Each time longer by that many of its errors, but never by so much that nothing is left.
CellTimes off_by(CellTimes times, const CellTimes& errors, double many);

// What was read of a size, in the mean.
struct SizeSeen {
  double bytes = 0;
  double seconds = 0;  // a file
};
// Times of files of `sizes`, each on the line through what was seen of it and of its neighbour: of a few
// files of a size the mean is another than that of all. Never further off than in proportion to the bytes. As
// many of both, in ascending order.
std::vector<double> times_at(const std::vector<double>& sizes, const std::vector<SizeSeen>& seen);

// Latency and bandwidth of a table with these threads: the line that fits best, relative to each time. Of one
// size alone the latency is taken for 0.
struct LineFit {
  double latency_s = 0;
  double bytes_per_s = 0;
  double only_size = 0;  // bytes; where one size alone was measured
};
LineFit fit_line(const SpeedTable& table, const CellTimes& times, std::size_t thread_index);

// A demand on a tier: W(m).
class Work {
 public:
  Work(const SpeedTable& table, const CellTimes& times, const Demand& demand);

  // Seconds that this many threads take. Rates are interpolated between the measured thread counts, and
  // constant beyond the last. 0 where there is nothing to do.
  double seconds(double threads) const;
  // The fewest threads that do it in that many seconds; infinite where none do.
  double threads_for(double seconds) const;
  double least_seconds() const;

 private:
  std::vector<std::pair<double, double>> rates_;  // threads, 1 / W; empty: nothing to do
};

// An epoch by `threads` threads that spend think_s thread-seconds elsewhere.
struct StagingReader {
  double threads = 1;
  double think_s = 0;
};
double epoch_seconds(const Work& slow, const Work& fast, const StagingReader& reader);
// The same where nothing overlaps: all threads work off one tier, then the other. No epoch takes longer.
double epoch_seconds_apart(const Work& slow, const Work& fast, const StagingReader& reader);

template <class Draw>
CellTimes drawn_times(const SpeedTable& table, Draw draw) {
  CellTimes times;
  for (const auto& of_threads : table.read_s) {
    auto& row = times.emplace_back();
    for (const std::vector<double>& repeats : of_threads) {
      double sum = 0;
      for (std::size_t i = 0; i < repeats.size(); ++i) sum += repeats[draw(repeats.size())];
      row.push_back(repeats.empty() ? 0.0 : sum / static_cast<double>(repeats.size()));
    }
  }
  return times;
}

}  // namespace penstock
