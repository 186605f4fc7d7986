#include "benchmarks/read/arrivals.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace penstock {
namespace {

constexpr double kLeast = 1e-3;
constexpr double kMost = 1e9;

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

Result<ArrivalRate> parse_arrival_rate(std::string_view text) {
  ArrivalRate rate;
  std::string_view number = text;
  rate.poisson = take_suffix(number, ",poisson");
  take_suffix(number, "/s");
  double factor = 1;
  if (take_suffix(number, "k"))
    factor = 1e3;
  else if (take_suffix(number, "M"))
    factor = 1e6;
  const char* const end = number.data() + number.size();
  const auto [stopped, failed] = std::from_chars(number.data(), end, rate.per_second);
  rate.per_second *= factor;
  if (failed == std::errc() && stopped == end && rate.per_second >= kLeast && rate.per_second <= kMost)
    return rate;
  return make_error(
      Errc::invalid_argument,
      fmt::format("--rate: '{}' is no number of samples a second, such as 500, 2.5k/s or 500/s,poisson",
                  text));
}

Arrivals::Arrivals(const ArrivalRate& rate, std::uint64_t run)
    : rate_(rate),
      gap_ns_(1e9 * rate.ranks / rate.per_second),
      random_(RandomStream(rate.seed, "arrivals").substream(run).substream(rate.rank)) {}

// `at_ns` is where the one before was.
std::int64_t Arrivals::due_ns(std::uint64_t number, double& at_ns) const {
  if (rate_.poisson)
    at_ns -= gap_ns_ * portable_log(1 - random_.uniform(number));
  else
    // Amid its gap: a run of whole gaps has as many, and none is due at its end.
    at_ns = gap_ns_ * (static_cast<double>(number) + (rate_.rank + 0.5) / rate_.ranks);
  return static_cast<std::int64_t>(at_ns);
}

std::int64_t Arrivals::next_ns() {
  const std::lock_guard lock(mutex_);
  return due_ns(given_++, at_ns_);
}

std::uint64_t Arrivals::between(std::int64_t from_ns, std::int64_t to_ns) const {
  std::uint64_t count = 0;
  double at_ns = 0;
  for (std::uint64_t number = 0;; ++number) {
    const std::int64_t due = due_ns(number, at_ns);
    if (due >= to_ns) return count;
    if (due >= from_ns) ++count;
  }
}

}  // namespace penstock
