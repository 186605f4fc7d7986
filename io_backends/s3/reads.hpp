// Keeps several reads of objects in flight from one thread. A read that is longer than a part
// (Settings::part_bytes) is split into several ranged GETs, if Settings::max_streams is above 1. All of these
// GETs must return bytes of the same version of the object: if the object is replaced during the read, the
// read fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/s3/store.hpp"

namespace penstock::s3 {

struct WantedRead {
  // The caller keeps `name` and `out` valid until the read is done.
  std::string_view name;
  std::string etag = {};  // ETag that the object must have; "": any version
  uint64_t offset = 0;
  std::span<std::byte> out;   // buffer that the read fills; with `whole_object` the object may be shorter
  bool whole_object = false;  // read the whole object, which must fit into `out`; `offset` is 0
};
// Makes the WantedRead for a ReadObject.
WantedRead wanted_read(const ReadObject& object);

// The reads of one thread.
class Reads {
 public:
  // Keeps at most `requests` GETs in flight, of which at most Settings::max_streams belong to one read.
  // Earlier reads get their GETs first.
  Reads(Store& store, size_t requests) : store_(store), max_gets_(requests), transfers_(store) {}
  // Cancels the reads in flight. The buffers of these reads are not used again.
  ~Reads() = default;
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  void start(uint64_t tag, WantedRead wanted);
  // Ends a read that cannot start: take_done() will return `error` for it.
  void refuse(uint64_t tag, Error error) { done_.push_back({tag, std::move(error)}); }
  size_t done_count() const { return done_.size(); }  // reads that take_done() can return
  // Returns a read that has ended. Call it only if done_count() > 0. The memory of that read is not used
  // again, even after a failure.
  Completion take_done();
  // Sends and receives as far as possible without waiting. With `wait` it waits until a request makes
  // progress, at most 100 ms.
  void drive(bool wait);
  // The number of reads that were started and that take_done() has not returned yet.
  size_t in_flight() const { return reads_.size() + done_.size(); }

 private:
  struct Read {
    uint64_t tag = 0;
    WantedRead wanted;
    std::list<Read>::iterator position;
    std::optional<uint64_t> length;  // no value for a whole object until its first bytes arrive
    bool is_split = false;           // read by several GETs
    size_t gets_started = 0;
    uint64_t bytes_requested = 0;  // bytes that the GETs started so far will read
    uint64_t filled_bytes = 0;
    size_t gets_in_flight = 0;
    std::optional<Error> error;
  };
  struct Piece {
    Read* read = nullptr;
    uint64_t begin = 0;  // index in `out` of the first byte of this GET
    size_t length = 0;
  };

  void start_pieces();
  void start_piece(Read& read);
  void on_head(const Piece& piece, const Answer& answer);
  void collect();
  Result<void> check_piece(const Piece& piece, const Answer& answer);
  void fail(Read& read, Error error);
  void finish(Read& read, Result<uint64_t> bytes);

  Store& store_;
  const size_t max_gets_;
  std::list<Read> reads_;
  std::deque<Read*> needing_gets_;  // reads for which more GETs must start
  std::map<uint64_t, Piece> pieces_;
  uint64_t next_piece_number_ = 0;
  std::vector<Read*> failed_reads_;  // reads that failed in on_head(); collect() finishes them
  std::deque<Completion> done_;
  Store::Lease transfers_;
};

}  // namespace penstock::s3
