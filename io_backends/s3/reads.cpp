// Threads: one thread at a time uses a Reads. Bytes move only inside drive(), on that thread. There is no
// lock.
// Memory: every function may allocate. Elements of reads_ never move, because pieces_ and needing_gets_ point
// to them.
// Ctrl-C: Transfers cuts off the GETs (transfers.hpp). Their reads then end with `interrupted`.
#include "io_backends/s3/reads.hpp"

#include <algorithm>
#include <cerrno>

namespace penstock::s3 {
namespace {

Error replaced(std::string_view name) {
  return errno_error(ESTALE, "somebody replaced, since it was opened,", name);
}

}  // namespace

Wanted wanted_by(const ReadObject& object) {
  if (object.length_hint > 0) return {.name = object.name, .out = object.out.first(object.length_hint)};
  return {.name = object.name, .out = object.out, .whole = true};
}

void Reads::start(std::uint64_t tag, Wanted wanted) {
  if (wanted.out.empty() && !wanted.whole) {
    done_.push_back({tag});
    return;
  }
  Read& read = reads_.emplace_back();
  read.self = std::prev(reads_.end());
  read.tag = tag;
  read.split = store_.settings().streams > 1 && wanted.out.size() > store_.settings().part;
  if (!wanted.whole) read.length = wanted.out.size();
  read.wanted = std::move(wanted);
  needing_gets_.push_back(&read);
  start_pieces();
}

Completion Reads::next() {
  Completion done = std::move(done_.front());
  done_.pop_front();
  return done;
}

void Reads::drive(bool wait) {
  start_pieces();
  transfers_->drive(wait);
  collect();
  start_pieces();
}

void Reads::start_pieces() {
  const auto all_gets_started = [](const Read* read) {
    return read->gets_started > 0 && (read->length ? read->bytes_requested == *read->length : !read->split);
  };
  // The size of a whole object is known after the first bytes of its first piece. Until then no second piece
  // starts.
  const auto has_next = [&](const Read* read) {
    return read->gets_started == 0 || (read->length && read->streams < store_.settings().streams);
  };
  std::erase_if(needing_gets_, all_gets_started);
  while (transfers_->in_flight() < requests_) {
    const auto next = std::find_if(needing_gets_.begin(), needing_gets_.end(), has_next);
    if (next == needing_gets_.end()) return;
    start_piece(**next);
    if (all_gets_started(*next)) needing_gets_.erase(next);
  }
}

void Reads::start_piece(Read& read) {
  const Wanted& wanted = read.wanted;
  const std::uint64_t rest = read.length.value_or(wanted.out.size()) - read.bytes_requested;
  const std::size_t length = read.split ? std::min<std::uint64_t>(rest, store_.settings().part) : rest;
  const Piece piece{&read, read.bytes_requested, length};
  Request request{.key = store_.key(wanted.name), .out = wanted.out.subspan(read.bytes_requested, length)};
  if (!wanted.whole || read.split) request.from = wanted.offset + read.bytes_requested;
  if (!wanted.etag.empty()) request.headers.emplace_back("if-match", wanted.etag);
  if (read.split) request.on_head = [this, piece](const Answer& answer) { on_head(piece, answer); };
  read.bytes_requested += length;
  ++read.gets_started;
  ++read.streams;
  pieces_.emplace(next_piece_, piece);
  transfers_->start(next_piece_++, std::move(request));
}

// Transfers::drive() calls it at the first bytes of a piece. It learns the ETag that all pieces must have,
// and the size of a whole object. So the other pieces can start while the first one is still in flight. A
// failure is only noted here, because no request may be cancelled in this call.
void Reads::on_head(const Piece& piece, const Answer& answer) {
  Read& read = *piece.read;
  Wanted& wanted = read.wanted;
  if (wanted.etag.empty()) wanted.etag = answer.etag;
  if (!answer.etag.empty() && wanted.etag != answer.etag) return fail(read, replaced(wanted.name));
  if (!wanted.whole || answer.status != 206) return;
  if (read.length && read.length != answer.total) return fail(read, replaced(wanted.name));
  if (answer.total == 0)
    return fail(read, make_error(Errc::corrupt,
                                 "the server does not say how large '" + std::string(wanted.name) + "' is"));
  const Result<void> fits = check_fits(wanted.name, answer.total, wanted.out.size());
  if (!fits.ok()) return fail(read, fits.error());
  if (!read.length) read.bytes_requested = std::min(read.bytes_requested, answer.total);
  read.length = answer.total;
}

void Reads::fail(Read& read, Error error) {
  if (read.failed) return;
  read.failed = std::move(error);
  failed_.push_back(&read);
}

void Reads::collect() {
  for (Read* const read : failed_) finish(*read, *std::move(read->failed));
  failed_.clear();
  while (transfers_->any_done()) {
    Transfers::Done done = transfers_->next();
    const auto found = pieces_.find(done.tag);
    const Piece piece = found->second;
    pieces_.erase(found);
    Read& read = *piece.read;
    --read.streams;
    const Result<void> right =
        done.answer.ok() ? outcome(piece, *done.answer) : Result<void>(done.answer.error());
    if (!right.ok()) {
      finish(read, right.error());
    } else if (read.filled == read.length) {
      finish(read, *read.length);
    }
  }
}

Result<void> Reads::outcome(const Piece& piece, const Answer& answer) {
  Read& read = *piece.read;
  const Wanted& wanted = read.wanted;
  if (answer.status == 416 && wanted.whole) {
    // An earlier answer had a size: the object was since replaced by a shorter one.
    if (read.length) return replaced(wanted.name);
    read.length = 0;  // an empty object answers 416 to any range
    return success();
  }
  if (answer.status == 416) return truncated_error(wanted.name, wanted.offset, *read.length);
  if (!answer.ok()) return store_.unreadable(answer, wanted.name);
  if (!read.length) {
    if (answer.more && read.split)
      return make_error(Errc::unsupported, "the server gives no parts of objects (Range), as '" +
                                               std::string(wanted.name) + "' is to be read");
    if (answer.more)
      return check_fits(wanted.name, std::max<std::uint64_t>(answer.total, wanted.out.size() + 1),
                        wanted.out.size());
    read.length = answer.bytes;
  }
  const std::uint64_t length = std::min<std::uint64_t>(piece.length, *read.length - piece.begin);
  if (answer.bytes < length) {
    if (answer.total > wanted.offset + piece.begin + answer.bytes)
      return make_error(Errc::corrupt, "of '" + std::string(wanted.name) + "' the server sends " +
                                           std::to_string(answer.bytes) + " bytes where it has " +
                                           std::to_string(length));
    return truncated_error(wanted.name, wanted.offset, *read.length);
  }
  read.filled += length;
  return success();
}

void Reads::finish(Read& read, Result<std::uint64_t> bytes) {
  if (read.streams > 0)
    std::erase_if(pieces_, [&](const auto& piece) {
      if (piece.second.read == &read) transfers_->cancel(piece.first);
      return piece.second.read == &read;
    });
  std::erase(needing_gets_, &read);
  if (bytes.ok()) store_.moved().add_read(*bytes);
  done_.push_back({read.tag, std::move(bytes)});
  reads_.erase(read.self);
}

namespace {

Result<std::uint64_t> read_now(Store& store, Wanted wanted) {
  Reads reads(store, store.settings().at_once(store.settings().streams));
  reads.start(0, std::move(wanted));
  while (reads.done() == 0) reads.drive(true);
  return reads.next().bytes;
}

}  // namespace

Result<void> S3Reader::read_at(std::uint64_t offset, std::span<std::byte> out) {
  PENSTOCK_TRY(check(offset, out.size()));
  PENSTOCK_TRY(read_now(store_, {.name = name_, .etag = etag_, .offset = offset, .out = out}));
  return success();
}

Result<std::uint64_t> read_object(Store& store, const ReadObject& object) {
  PENSTOCK_TRY(check_read_object(object.name, object.length_hint, object.out.size()));
  return read_now(store, wanted_by(object));
}

}  // namespace penstock::s3
