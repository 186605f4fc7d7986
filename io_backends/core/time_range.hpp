// An expected time: a range in seconds.
#pragma once

namespace penstock {

struct TimeRange {
  double low_s = 0;
  double high_s = 0;

  double middle_s() const { return (low_s + high_s) / 2; }
  TimeRange& operator+=(const TimeRange& other) {
    low_s += other.low_s;
    high_s += other.high_s;
    return *this;
  }
};
inline TimeRange operator+(TimeRange a, const TimeRange& b) {
  return a += b;
}
inline TimeRange operator*(double factor, const TimeRange& range) {
  return {factor * range.low_s, factor * range.high_s};
}

}  // namespace penstock
