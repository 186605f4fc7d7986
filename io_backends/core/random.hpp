// Seeded random streams with random access: any thread can get the n-th number of a stream directly. So any
// thread can make any sample, and the bytes do not depend on the thread. The numbers are the same on every
// machine (no libm, no fused multiply-add).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

// Scrambles a number: equal inputs give equal outputs, and similar inputs give outputs that look random. This
// is the output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// OOPSLA 2014).
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// One stream of random numbers, which a seed and a name determine. It is cheap to copy. Streams of different
// names or numbers are independent.
class RandomStream {
 public:
  constexpr RandomStream(uint64_t seed, uint64_t stream)
      : key_(mix64(mix64(seed + kGamma) ^ (stream * 0xd1342543de82ef95U + kGamma))) {}
  RandomStream(uint64_t seed, std::string_view name);

  // A sub-stream of this stream, for example for sample n.
  constexpr RandomStream substream(uint64_t n) const { return RandomStream(key_, n); }

  constexpr uint64_t bits(uint64_t n) const { return mix64(key_ + (n + 1) * kGamma); }
  // The n-th number, in [0, bound), for bound > 0. The bias is below 2^-32 for bounds below 2^32.
  constexpr uint64_t below(uint64_t n, uint64_t bound) const {
    __extension__ using Wide = unsigned __int128;
    return uint64_t((static_cast<Wide>(bits(n)) * bound) >> 64);
  }
  // The n-th number, in [0, 1) with 53 random bits.
  constexpr double uniform(uint64_t n) const { return double(bits(n) >> 11) * 0x1.0p-53; }
  // A standard normal number, by the inverse distribution function (Acklam's rational approximation, relative
  // error 1.2e-9).
  double normal(uint64_t n) const;
  // A log-normal number: exp(mu + sigma * normal(n)), where exp(mu) is `median`.
  double log_normal(uint64_t n, double median, double sigma) const;

 private:
  static constexpr uint64_t kGamma = 0x9e3779b97f4a7c15U;
  uint64_t key_;
};

// A seeded permutation of [0, size) in O(1) memory: at(i) visits every number once (a four-round Feistel
// network with cycle walking). Any thread may use it.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed);
  uint64_t size() const { return size_; }
  uint64_t at(uint64_t i) const;

 private:
  uint64_t size_;
  unsigned half_bits_;
  std::array<uint64_t, 4> keys_;  // one key for each round
};

// portable_exp() and portable_log() give the same result on every machine to the last bit, because they
// compute series by exactly defined operations. The relative error is below 1e-13.
double portable_exp(double x);
double portable_log(double x);

// The value x such that a standard normal number is below x with probability `p`, for 0 < p < 1.
// RandomStream::normal() uses it.
double inverse_normal(double p);

// Returns `digits` hexadecimal digits from the system's random source, for names that must not occur twice.
// If the source fails, they come from the clock and the process id.
std::string random_id(size_t digits);

}  // namespace penstock
