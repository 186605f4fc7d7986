// Reads of objects in flight from one thread. One that is longer than a part (Settings::part) is several
// ranged GETs at once, whose bytes are those of one object: when somebody replaces it meanwhile, the read
// fails.
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
  std::string_view name;  // stays put until the read is done, as `out` does
  std::string etag = {};  // the object's; "": of whatever object is there
  std::uint64_t offset = 0;
  std::span<std::byte> out;  // to be filled whole, or
  bool whole = false;        // with all of the object, which then has to fit
};
// What a ReadObject asks for.
Wanted wanted_by(const ReadObject& object);

class Reads {
 public:
  // At most `requests` GETs are in flight, whatever is started; of one read at most Settings::streams. The
  // reads that were started first come first.
  Reads(Store& store, std::size_t requests) : store_(store), requests_(requests), transfers_(store) {}
  // What is in flight is cut off: nothing touches its memory any more.
  ~Reads() = default;
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  void start(std::uint64_t tag, Wanted wanted);
  bool any_done() const { return !done_.empty(); }
  // Of any_done(). After a failure, too, nothing touches the read's memory any more.
  Completion next();
  // Moves what can be moved; waits for something to happen where `wait`.
  void drive(bool wait);
  // Started and not handed out by next() yet.
  std::size_t in_flight() const { return reads_.size() + done_.size(); }

 private:
  struct Read {
    std::uint64_t tag = 0;
    Wanted wanted;
    std::list<Read>::iterator self;
    std::optional<std::uint64_t> length;  // unknown of a whole object that nothing is there of yet
    bool split = false;                   // into parts
    std::size_t asked = 0;                // GETs so far
    std::uint64_t requested = 0;          // bytes that they were for
    std::uint64_t filled = 0;
    std::size_t streams = 0;  // in flight
    std::optional<Error> failed;
  };
  struct Piece {
    Read* read = nullptr;
    std::uint64_t begin = 0;  // in `out`
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
  std::deque<Read*> unasked_;  // those of which not all was asked for
  std::map<std::uint64_t, Piece> pieces_;
  std::uint64_t next_piece_ = 0;
  std::vector<Read*> failed_;  // as their first bytes told
  std::deque<Completion> done_;
  Store::Lease transfers_;
};

}  // namespace penstock::s3
