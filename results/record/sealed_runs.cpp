#include "results/record/sealed_runs.hpp"

#include <fmt/format.h>

namespace penstock {

std::string SealedRuns::missing(std::size_t first, std::size_t last, std::size_t of) {
  if (first > last) return "";
  if (first == last) return fmt::format("line {} of {} of a run is missing", first, of);
  return fmt::format("lines {} to {} of {} of a run are missing", first, last, of);
}

std::string SealedRuns::at(const Seal& seal) {
  std::string words;
  if (of_ != 0 && (seal.of != of_ || seal.line < next_)) {
    words = missing(next_, of_, of_);
    next_ = 1;
  }
  const std::string here = missing(next_, seal.line - 1, seal.of);
  if (!here.empty()) words += (words.empty() ? "" : "; ") + here;
  next_ = seal.line + 1;
  of_ = seal.of;
  if (next_ > of_) {
    next_ = 1;
    of_ = 0;
  }
  return words;
}

std::string SealedRuns::at_end() {
  return of_ == 0 ? "" : missing(next_, of_, of_);
}

void SealedRuns::damaged() {
  ++next_;
  if (of_ != 0 && next_ > of_) {
    next_ = 1;
    of_ = 0;
  }
}

}  // namespace penstock
