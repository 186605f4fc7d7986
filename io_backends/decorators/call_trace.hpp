// The calls that a traced back end saw, one by one, and the file that trace viewers open. Only traced.cpp
// includes this.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {

struct TracedCall {
  std::int64_t started_ns = 0;  // since the trace began
  std::int64_t took_ns = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lane = 0;    // trace_lane()
  std::uint32_t object = 0;  // its number among the names
  std::uint8_t call = 0;     // CallKind
  std::uint8_t errc = 0;     // Errc + 1; 0: it did not fail
};

// The row that a viewer draws a call in: of the calling thread, or of a place in a queue of its (from 1; 0: a
// blocking call). In decimal, so that the number shows whose a place is.
constexpr std::uint64_t trace_lane(std::uint32_t thread, std::uint32_t place) {
  return std::uint64_t{thread} * 100'000 + place;
}

// Those of one shard; whoever holds its lock.
class CallTrace {
 public:
  void add(TracedCall call, std::string_view object);
  const std::deque<TracedCall>& calls() const { return calls_; }
  std::string_view object(const TracedCall& call) const { return *names_[call.object]; }

 private:
  std::deque<TracedCall> calls_;
  ByName<std::uint32_t> numbers_;
  std::vector<const std::string*> names_;  // keys of numbers_, which stay where they are
};

class TraceFile {
 public:
  // Makes it, or empties what is there; `busy` where another one writes it. Under a launcher each rank has
  // one: PATH.RANK.
  static Result<TraceFile> create(const std::string& path);

  Result<void> write(const std::vector<const CallTrace*>& traces, std::uint64_t left_out);

 private:
  TraceFile(std::string path, int rank, Fd fd) : path_(std::move(path)), rank_(rank), fd_(std::move(fd)) {}
  Result<void> put(std::string_view text);

  std::string path_;
  int rank_;
  Fd fd_;
};

// Text as JSON has it between quotes. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

}  // namespace penstock
