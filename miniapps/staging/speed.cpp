#include "miniapps/staging/speed.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "results/record/statistics.hpp"

namespace penstock {
namespace {

constexpr int kHalvings = 60;
constexpr double kShortestSeconds = 1e-12;  // shorter times count as this, so that none is 0
constexpr double kUnknownError = 0.1;
// The standard error of the median divided by that of the mean, for normally distributed samples: sqrt(pi/2).
constexpr double kMedianOverMean = 1.2533;

// The 97.5% quantile of Student's t distribution; above 10 degrees of freedom an approximation.
double student_t_quantile(size_t degrees) {
  // Element d - 1 is the quantile for d degrees of freedom.
  constexpr std::array<double, 10> kQuantiles{12.706, 4.303, 3.182, 2.776, 2.571,
                                              2.447,  2.365, 2.306, 2.262, 2.228};
  if (degrees <= kQuantiles.size()) return kQuantiles[degrees - 1];
  return 1.96 + 2.5 / double(degrees);
}

}  // namespace

void add(ReadDemand& sum, const ReadDemand& more, double times) {
  for (size_t i = 0; i < kMostSizes; ++i) sum[i] += more[i] * times;
}

ReadDemand SpeedTable::reads_of(double bytes) const {
  ReadDemand demand{};
  if (sizes.size() == 1) {
    demand[0] = 1;
    return demand;
  }
  const auto upper = std::lower_bound(sizes.begin() + 1, sizes.end() - 1, bytes);
  const auto high = size_t(upper - sizes.begin());
  const double upper_share = (bytes - sizes[high - 1]) / (sizes[high] - sizes[high - 1]);
  // Below the smallest size nothing was measured; fewer bytes are assumed to take the same time.
  demand[high] = std::max(upper_share, 0.0);
  demand[high - 1] = 1 - demand[high];
  return demand;
}

CellTimes median_times(const SpeedTable& table) {
  CellTimes times;
  for (const auto& of_threads : table.read_s) {
    auto& row = times.emplace_back();
    for (const std::vector<double>& repeats : of_threads) row.push_back(median(repeats));
  }
  return times;
}

CellTimes time_errors(const SpeedTable& table) {
  CellTimes errors;  // at first the relative variances of one repeat, at the end the errors
  double squares = 0;
  size_t degrees = 0;
  for (const auto& of_threads : table.read_s) {
    auto& row = errors.emplace_back();
    for (const std::vector<double>& repeats : of_threads) {
      row.push_back(-1);
      if (repeats.size() < 2) continue;
      const double sum = std::accumulate(repeats.begin(), repeats.end(), 0.0);
      const double mean = std::max(sum / double(repeats.size()), kShortestSeconds);
      double square_sum = 0;
      for (const double one : repeats) square_sum += (one / mean - 1) * (one / mean - 1);
      row.back() = square_sum / double(repeats.size() - 1);
      squares += square_sum;
      degrees += repeats.size() - 1;
    }
  }
  const double pooled = degrees == 0 ? 0 : squares / double(degrees);
  for (size_t t = 0; t < errors.size(); ++t)
    for (size_t k = 0; k < errors[t].size(); ++k) {
      double& cell = errors[t][k];
      const auto repeats = double(std::max<size_t>(table.read_s[t][k].size(), 1));
      cell = degrees == 0 ? kUnknownError
                          : student_t_quantile(degrees) * kMedianOverMean *
                                std::sqrt(std::max(cell, pooled) / repeats);
    }
  return errors;
}

CellTimes shift_times(CellTimes times, const CellTimes& errors, double error_count) {
  constexpr double kSmallestFactor = 0.1;
  for (size_t t = 0; t < times.size(); ++t)
    for (size_t k = 0; k < times[t].size(); ++k)
      times[t][k] *= std::max(1 + error_count * errors[t][k], kSmallestFactor);
  return times;
}

std::vector<double> times_at(const std::vector<double>& sizes,
                             const std::vector<MeasuredSize>& measurements) {
  std::vector<double> times;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const MeasuredSize& measured = measurements[i];
    double time = measured.seconds;
    if (measurements.size() > 1 && measured.bytes > 0) {
      const MeasuredSize& low = measurements[i == 0 ? 0 : i - 1];
      const MeasuredSize& high = measurements[i == 0 ? 1 : i];
      const double slope = high.bytes > low.bytes
                               ? std::max((high.seconds - low.seconds) / (high.bytes - low.bytes), 0.0)
                               : 0.0;
      const double in_proportion = measured.seconds * sizes[i] / measured.bytes;
      time = std::clamp(measured.seconds + slope * (sizes[i] - measured.bytes),
                        std::min(measured.seconds, in_proportion), std::max(measured.seconds, in_proportion));
    }
    times.push_back(time);
  }
  return times;
}

// Minimizes the squares of the relative errors (a + b s - t) / t: a is the latency, b the seconds per byte, s
// a size and t its time.
LineFit fit_line(const SpeedTable& table, const CellTimes& times, size_t thread_index) {
  const std::vector<double>& seconds = times[thread_index];
  double w0 = 0;
  double w1 = 0;
  double w2 = 0;
  double y0 = 0;
  double y1 = 0;
  for (size_t i = 0; i < table.sizes.size(); ++i) {
    const double t = std::max(seconds[i], kShortestSeconds);
    const double s = table.sizes[i];
    w0 += 1 / (t * t);
    w1 += s / (t * t);
    w2 += s * s / (t * t);
    y0 += 1 / t;
    y1 += s / t;
  }
  const double determinant = w0 * w2 - w1 * w1;
  const double slope = table.sizes.size() > 1 && determinant > 0 ? (w0 * y1 - w1 * y0) / determinant : 0.0;
  if (slope > 0) {
    const double latency = (y0 - slope * w1) / w0;
    if (latency >= 0) return {.latency_s = latency, .bytes_per_s = 1 / slope};
    return {.latency_s = 0, .bytes_per_s = w2 / y1};
  }
  if (table.sizes.size() > 1)
    return {.latency_s = y0 / w0, .bytes_per_s = std::numeric_limits<double>::infinity()};
  return {.latency_s = 0,
          .bytes_per_s = table.sizes.front() / std::max(seconds.front(), kShortestSeconds),
          .only_size = table.sizes.front()};
}

DemandTime::DemandTime(const SpeedTable& table, const CellTimes& times, const ReadDemand& demand) {
  const bool is_empty = std::all_of(demand.begin(), demand.end(), [](double part) { return part == 0; });
  if (is_empty) return;
  for (size_t i = 0; i < table.threads.size(); ++i) {
    double seconds = 0;
    for (size_t k = 0; k < table.sizes.size(); ++k) seconds += demand[k] * times[i][k];
    rates_.emplace_back(table.threads[i], 1 / std::max(seconds, kShortestSeconds));
  }
}

double DemandTime::seconds(double threads) const {
  if (rates_.empty()) return 0;
  if (threads <= 0) return std::numeric_limits<double>::infinity();
  std::pair<double, double> previous(0, 0);
  for (const auto& [count, rate] : rates_) {
    if (threads <= count)
      return 1 / (previous.second +
                  (rate - previous.second) * (threads - previous.first) / (count - previous.first));
    previous = {count, rate};
  }
  return 1 / rates_.back().second;
}

double DemandTime::threads_for(double seconds) const {
  if (rates_.empty()) return 0;
  const double wanted_rate = 1 / seconds;
  std::pair<double, double> previous(0, 0);
  for (const auto& [count, rate] : rates_) {
    if (rate >= wanted_rate)
      return previous.first +
             (count - previous.first) * (wanted_rate - previous.second) / (rate - previous.second);
    previous = {count, rate};
  }
  return std::numeric_limits<double>::infinity();
}

double DemandTime::least_seconds() const {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [count, rate] : rates_) best = std::min(best, 1 / rate);
  return rates_.empty() ? 0.0 : best;
}

double epoch_seconds(const DemandTime& slow, const DemandTime& fast, const ProgramThreads& program) {
  const double n = std::max(program.threads, 1.0);
  const auto needed = [&](double seconds) {
    return slow.threads_for(seconds) + fast.threads_for(seconds) + program.think_s / seconds;
  };
  double low = std::max({slow.least_seconds(), fast.least_seconds(), program.think_s / n, kShortestSeconds});
  double high = std::max(slow.seconds(1) + fast.seconds(1) + program.think_s, low);
  for (int i = 0; i < kHalvings && needed(low) > n; ++i) {
    const double middle = std::sqrt(low * high);
    (needed(middle) > n ? low : high) = middle;
  }
  double seconds = needed(low) <= n ? low : high;
  // The other tier and the work without reads get the threads that they need. All threads that are left read
  // from the tier that takes longer. With that number of threads this tier may be slower than with fewer.
  const DemandTime& busiest = slow.least_seconds() >= fast.least_seconds() ? slow : fast;
  const DemandTime& other = &busiest == &slow ? fast : slow;
  const double threads_left = n - other.threads_for(seconds) - program.think_s / seconds;
  if (threads_left > 0) seconds = std::max(seconds, busiest.seconds(threads_left));
  return seconds;
}

double epoch_seconds_without_overlap(const DemandTime& slow, const DemandTime& fast,
                                     const ProgramThreads& program) {
  const double n = std::max(program.threads, 1.0);
  return slow.seconds(n) + fast.seconds(n) + program.think_s / n;
}

}  // namespace penstock
