// Keeps each call of a traced back end, and writes the calls to a file for trace viewers. Only traced.cpp and
// its tests use this header.
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
  int64_t started_ns = 0;  // begin of the call, counted from the begin of the trace
  int64_t duration_ns = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t lane = 0;           // row in the trace viewer, from trace_lane()
  uint32_t object_number = 0;  // index of the object's name in CallTrace::names_
  uint8_t kind = 0;            // a CallKind as a number
  uint8_t errc = 0;            // the error's Errc as a number, plus 1; 0: no error
};

// Returns the number of the row in which a trace viewer shows a call. All blocking calls of a thread are in
// one row, that of slot 0. An operation of a Queue is in the row of its slot in the queue (from 1), so that
// overlapping operations are in different rows. The number of the thread is multiplied by a power of ten, so
// that people can read both numbers in the result.
constexpr uint64_t trace_lane(uint32_t thread, uint32_t slot) {
  return uint64_t{thread} * 100'000 + slot;
}

// The traced calls of the threads that share one shard of traced.cpp. The caller of add() holds the lock of
// that shard.
class CallTrace {
 public:
  void add(TracedCall call, std::string_view object);
  const std::deque<TracedCall>& calls() const { return calls_; }
  std::string_view object(const TracedCall& call) const { return *names_[call.object_number]; }

 private:
  std::deque<TracedCall> calls_;
  ByName<uint32_t> number_by_name_;
  // names by number: pointers to the keys of number_by_name_, which never move
  std::vector<const std::string*> names_;
};

class TraceFile {
 public:
  // Creates the file, or empties an existing one. Fails with `busy` if another tier or program writes it.
  // Under a launcher each rank writes its own file PATH.RANK.
  static Result<TraceFile> create(const std::string& path);

  Result<void> write(const std::vector<const CallTrace*>& traces, uint64_t calls_left_out);

 private:
  TraceFile(std::string path, int rank, Fd fd) : path_(std::move(path)), rank_(rank), fd_(std::move(fd)) {}
  Result<void> write_text(std::string_view text);

  std::string path_;
  int rank_;
  Fd fd_;
};

// Escapes text for a JSON string, without the quotes. A byte that is not UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);

}  // namespace penstock
