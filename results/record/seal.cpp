#include "results/record/seal.hpp"

#include <fmt/format.h>

#include <span>

#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {
namespace {

constexpr std::string_view kSumBegins = R"(,"crc32c":")";
constexpr std::string_view kSumEnds = R"("}})";
constexpr std::size_t kSumBytes = kSumBegins.size() + 8 + kSumEnds.size();

std::string sum_of(std::string_view text) {
  return fmt::format("{}{:08x}{}", kSumBegins, crc32c(std::as_bytes(std::span(text))), kSumEnds);
}

bool is_sum(std::string_view text) {
  return text.starts_with(kSumBegins) && text.ends_with(kSumEnds);
}

std::size_t count_at(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number_unsigned() ? at->get<std::size_t>() : 0;
}

}  // namespace

std::string seal_line(std::string_view record, const Seal& seal) {
  std::string line(record.substr(0, record.size() - 1));  // without its '}'
  line += fmt::format(R"(,"seal":{{"line":{},"of":{})", seal.line, seal.of);
  return line + sum_of(line);
}

Result<std::optional<Seal>> check_seal(std::string_view line, const Json& json) {
  line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  const std::size_t body = line.size() < kSumBytes ? 0 : line.size() - kSumBytes;
  const auto seal = json.find("seal");
  if (seal == json.end() && !is_sum(line.substr(body))) return std::optional<Seal>();
  const Error changed =
      make_error(Errc::corrupt,
                 "changed since it was written: its checksum does not hold (without the member 'seal' it is "
                 "read as it is)");
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  if (line.substr(body) != sum_of(line.substr(0, body))) return changed;
#endif
  if (seal == json.end() || !seal->is_object()) return changed;
  const Seal found{count_at(*seal, "line"), count_at(*seal, "of")};
  if (found.line == 0 || found.line > found.of) return changed;
  return std::optional<Seal>(found);
}

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
