#include "io_backends/core/random.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cmath>

namespace penstock {
namespace {

// ln 2 is the sum of kLn2High and kLn2Low. kLn2High has 21 trailing zero bits, so that k * kLn2High is exact
// for |k| < 2^20.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kInvLn2 = 1.44269504088896338700e+00;

uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325U;  // the start value of FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// Returns x * 2^exponent exactly, if the result is a normal number.
double scale_by_power(double x, int exponent) {
  return x * std::bit_cast<double>(uint64_t(exponent + 1023) << 52);
}

double horner(const double* coefficients, size_t count, double x) {
  double sum = coefficients[0];
  for (size_t i = 1; i < count; ++i) sum = sum * x + coefficients[i];
  return sum;
}

}  // namespace

double inverse_normal(double p) {
  constexpr std::array a{-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                         1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array b{-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                         6.680131188771972e+01,  -1.328068155288572e+01, 1.0};
  constexpr std::array c{-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                         -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array d{7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                         3.754408661907416e+00, 1.0};
  constexpr double kTailProbability = 0.02425;
  if (p < kTailProbability || p > 1.0 - kTailProbability) {
    const double tail = p < kTailProbability ? p : 1.0 - p;
    const double q = std::sqrt(-2.0 * portable_log(tail));
    const double x = horner(c.data(), c.size(), q) / horner(d.data(), d.size(), q);
    return p < kTailProbability ? x : -x;
  }
  const double q = p - 0.5;
  const double r = q * q;
  return horner(a.data(), a.size(), r) * q / horner(b.data(), b.size(), r);
}

RandomStream::RandomStream(uint64_t seed, std::string_view name) : RandomStream(seed, hash_name(name)) {}

double RandomStream::normal(uint64_t n) const {
  // p is the middle of one of the 2^52 equal intervals of [0, 1), so it is never 0 and never 1.
  const double p = (double(bits(n) >> 12) + 0.5) * 0x1.0p-52;
  return inverse_normal(p);
}

double RandomStream::log_normal(uint64_t n, double median, double sigma) const {
  return median * portable_exp(sigma * normal(n));
}

Permutation::Permutation(uint64_t size, uint64_t seed) : size_(size), half_bits_(1) {
  const RandomStream keys(seed, "permutation");
  for (size_t round = 0; round < keys_.size(); ++round) keys_[round] = keys.bits(round);
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
}

uint64_t Permutation::at(uint64_t i) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = i >> half_bits_;
    uint64_t right = i & mask;
    for (const uint64_t key : keys_) {
      const uint64_t mixed = left ^ (mix64(right + key) & mask);
      left = right;
      right = mixed;
    }
    i = (left << half_bits_) | right;
  } while (i >= size_);
  return i;
}

double portable_exp(double x) {
  if (x > 709.0) return HUGE_VAL;
  if (x < -708.0) return 0.0;
  const double k = std::floor(x * kInvLn2 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln 2 / 2
  double sum = 1.0;
  for (int n = 14; n >= 1; --n) sum = 1.0 + sum * r / n;  // Taylor series, remainder below 2e-19
  return scale_by_power(sum, int(k));
}

double portable_log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -HUGE_VAL : std::nan("");
  if (!std::isfinite(x)) return x;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // frexp() is exact and returns a number in [0.5, 1)
  if (mantissa < 0.70710678118654752440) {
    mantissa *= 2.0;
    --exponent;
  }
  // ln m = 2 atanh(z) with z = (m - 1) / (m + 1), for the mantissa m. Since |z| <= 0.1716, the remainder of
  // the series is below 1e-18.
  const double z = (mantissa - 1.0) / (mantissa + 1.0);
  const double z2 = z * z;
  double sum = 0.0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * z2 + 1.0 / n;
  return exponent * kLn2High + (2.0 * z * sum + exponent * kLn2Low);
}

std::string random_id(size_t digits) {
  std::string id;
  while (id.size() < digits) {
    uint64_t bits = 0;
    if (::getrandom(&bits, sizeof bits, 0) != ssize_t(sizeof bits))
      bits = uint64_t(std::chrono::steady_clock::now().time_since_epoch().count()) ^
             (uint64_t(::getpid()) << 40);
    for (int i = 0; i < 16 && id.size() < digits; ++i, bits >>= 4) id += "0123456789abcdef"[bits & 15];
  }
  return id;
}

}  // namespace penstock
