#include "results/record/sealed_runs.hpp"

#include <fmt/format.h>

namespace penstock {

std::string SealedRuns::missing(size_t first, size_t last, size_t lines) {
  if (first > last) return "";
  if (first == last) return fmt::format("line {} of {} of a run is missing", first, lines);
  return fmt::format("lines {} to {} of {} of a run are missing", first, last, lines);
}

std::string SealedRuns::next_line(const SealedPosition& seal) {
  std::string text;
  if (lines_ != 0 && (seal.lines != lines_ || seal.line < next_number_)) {
    text = missing(next_number_, lines_, lines_);
    next_number_ = 1;
  }
  const std::string before_line = missing(next_number_, seal.line - 1, seal.lines);
  if (!before_line.empty()) text += (text.empty() ? "" : "; ") + before_line;
  next_number_ = seal.line + 1;
  lines_ = seal.lines;
  if (next_number_ > lines_) {
    next_number_ = 1;
    lines_ = 0;
  }
  return text;
}

std::string SealedRuns::end_of_file() {
  return lines_ == 0 ? "" : missing(next_number_, lines_, lines_);
}

void SealedRuns::skip_unreadable_line() {
  ++next_number_;
  if (lines_ != 0 && next_number_ > lines_) {
    next_number_ = 1;
    lines_ = 0;
  }
}

}  // namespace penstock
