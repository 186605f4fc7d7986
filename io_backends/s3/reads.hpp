// Keeps several reads of objects in flight from one thread. A read that is longer than a part
// (Settings::part) is split into several ranged GETs. All of them must return bytes of the same version of
// the object: if the object is replaced during the read, the read fails.
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

struct Wanted {
  // The caller keeps `name` and `out` valid until the read is done.
  std::string_view name;
  std::string etag = {};  // ETag that the object must have; "": any version
  std::uint64_t offset = 0;
  std::span<std::byte> out;  // filled completely, unless `whole`
  bool whole = false;        // read the whole object, which must fit into `out`
};
// The read that a ReadObject describes.
Wanted wanted_by(const ReadObject& object);

// One thread uses it.
class Reads {
 public:
  // Keeps at most `requests` GETs in flight, and at most Settings::streams of one read. Reads that started
  // first get their GETs first.
  Reads(Store& store, std::size_t requests) : store_(store), requests_(requests), transfers_(store) {}
  // Cuts off the reads in flight. Their memory is not used again.
  ~Reads() = default;
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  void start(std::uint64_t tag, Wanted wanted);
  // A read that cannot start: next() returns `error` for it.
  void refuse(std::uint64_t tag, Error error) { done_.push_back({tag, std::move(error)}); }
  std::size_t done() const { return done_.size(); }  // reads that next() can return
  // Call it only if done() > 0. The memory of the read is not used again, also after a failure.
  Completion next();
  // Sends and receives as far as possible without waiting. With `wait` it waits until a request makes
  // progress, at most 100 ms.
  void drive(bool wait);
  // The number of reads that started and that next() has not returned.
  std::size_t in_flight() const { return reads_.size() + done_.size(); }

 private:
  struct Read {
    std::uint64_t tag = 0;
    Wanted wanted;
    std::list<Read>::iterator self;
    std::optional<std::uint64_t> length;  // empty for a whole object before its first bytes arrive
    bool split = false;                   // read in parts
    std::size_t gets_started = 0;
    std::uint64_t bytes_requested = 0;  // by these GETs
    std::uint64_t filled = 0;
    std::size_t streams = 0;  // GETs in flight
    std::optional<Error> failed;
  };
  struct Piece {
    Read* read = nullptr;
    std::uint64_t begin = 0;  // offset in `out`
    std::size_t length = 0;
  };

  void start_pieces();
  void start_piece(Read& read);
  void on_head(const Piece& piece, const Answer& answer);
  void collect();
  Result<void> outcome(const Piece& piece, const Answer& answer);
  void fail(Read& read, Error error);
  void finish(Read& read, Result<std::uint64_t> bytes);

  Store& store_;
  const std::size_t requests_;
  std::list<Read> reads_;
  std::deque<Read*> needing_gets_;  // reads that still need GETs
  std::map<std::uint64_t, Piece> pieces_;
  std::uint64_t next_piece_ = 0;
  std::vector<Read*> failed_;  // failed by the first bytes of a GET; collect() finishes them
  std::deque<Completion> done_;
  Store::Lease transfers_;
};

}  // namespace penstock::s3
