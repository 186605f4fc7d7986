// Threads: one thread at a time uses a Reads. Bytes move only inside drive(), on that thread. There is no
// lock.
// Memory: every function may allocate. reads_ is a list, whose elements never move: pieces_, needing_gets_
// and failed_reads_ point to them.
// Ctrl-C: Transfers ends the GETs (transfers.hpp). Their reads then fail with `interrupted`.
#include "io_backends/s3/reads.hpp"

#include <algorithm>
#include <cerrno>

namespace penstock::s3 {
namespace {

Error replaced_error(std::string_view name) {
  return errno_error(ESTALE, "another client replaced, since it was opened,", name);
}

}  // namespace

WantedRead wanted_read(const ReadObject& object) {
  if (object.length_hint > 0) return {.name = object.name, .out = object.out.first(object.length_hint)};
  return {.name = object.name, .out = object.out, .whole_object = true};
}

void Reads::start(uint64_t tag, WantedRead wanted) {
  if (wanted.out.empty() && !wanted.whole_object) {
    done_.push_back({tag});
    return;
  }
  Read& read = reads_.emplace_back();
  read.position = std::prev(reads_.end());
  read.tag = tag;
  read.is_split = store_.settings().max_streams > 1 && wanted.out.size() > store_.settings().part_bytes;
  if (!wanted.whole_object) read.length = wanted.out.size();
  read.wanted = std::move(wanted);
  needing_gets_.push_back(&read);
  start_pieces();
}

Completion Reads::take_done() {
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
    return read->gets_started > 0 &&
           (read->length ? read->bytes_requested == *read->length : !read->is_split);
  };
  // Whether another GET of this read can start. A piece is the byte range of one GET. If the size of the
  // object is unknown, no second piece can start before the first bytes of the first piece arrive, which tell
  // the size.
  const auto can_start = [&](const Read* read) {
    return read->gets_started == 0 || (read->length && read->gets_in_flight < store_.settings().max_streams);
  };
  std::erase_if(needing_gets_, all_gets_started);
  while (transfers_->in_flight() < max_gets_) {
    const auto next = std::find_if(needing_gets_.begin(), needing_gets_.end(), can_start);
    if (next == needing_gets_.end()) return;
    start_piece(**next);
    if (all_gets_started(*next)) needing_gets_.erase(next);
  }
}

void Reads::start_piece(Read& read) {
  const WantedRead& wanted = read.wanted;
  const uint64_t rest = read.length.value_or(wanted.out.size()) - read.bytes_requested;
  const size_t length = read.is_split ? std::min<uint64_t>(rest, store_.settings().part_bytes) : rest;
  const Piece piece{&read, read.bytes_requested, length};
  Request request{.key = store_.key(wanted.name), .out = wanted.out.subspan(read.bytes_requested, length)};
  if (!wanted.whole_object || read.is_split) request.first_byte = wanted.offset + read.bytes_requested;
  if (!wanted.etag.empty()) request.headers.emplace_back("if-match", wanted.etag);
  if (read.is_split) request.on_head = [this, piece](const Answer& answer) { on_head(piece, answer); };
  read.bytes_requested += length;
  ++read.gets_started;
  ++read.gets_in_flight;
  pieces_.emplace(next_piece_number_, piece);
  transfers_->start(next_piece_number_++, std::move(request));
}

// Transfers::drive() calls this at the first bytes of each piece of a split read. From the first answer of
// the read it stores the ETag that all pieces must have, and the size of a whole object. So the other pieces
// can start while the first one is still in flight. A failure is only noted in failed_reads_, because this
// call must not cancel requests.
void Reads::on_head(const Piece& piece, const Answer& answer) {
  Read& read = *piece.read;
  WantedRead& wanted = read.wanted;
  if (answer.etag.empty())
    return fail(read, make_error(Errc::corrupt, "the server sends no ETag for '" + std::string(wanted.name) +
                                                    "', so its parts may be of different versions"));
  if (wanted.etag.empty()) wanted.etag = answer.etag;
  if (wanted.etag != answer.etag) return fail(read, replaced_error(wanted.name));
  if (!wanted.whole_object || answer.status != 206) return;
  if (read.length && read.length != answer.object_bytes) return fail(read, replaced_error(wanted.name));
  if (answer.object_bytes == 0)
    return fail(read, make_error(Errc::corrupt, "the server does not report the size of '" +
                                                    std::string(wanted.name) + "'"));
  const Result<void> fits = check_fits(wanted.name, answer.object_bytes, wanted.out.size());
  if (!fits.ok()) return fail(read, fits.error());
  if (!read.length) read.bytes_requested = std::min(read.bytes_requested, answer.object_bytes);
  read.length = answer.object_bytes;
}

void Reads::fail(Read& read, Error error) {
  if (read.error) return;
  read.error = std::move(error);
  failed_reads_.push_back(&read);
}

void Reads::collect() {
  for (Read* const read : failed_reads_) finish(*read, *std::move(read->error));
  failed_reads_.clear();
  while (transfers_->any_done()) {
    Transfers::Done done = transfers_->take_done();
    const auto found = pieces_.find(done.tag);
    const Piece piece = found->second;
    pieces_.erase(found);
    Read& read = *piece.read;
    --read.gets_in_flight;
    const Result<void> result =
        done.answer.ok() ? check_piece(piece, *done.answer) : Result<void>(done.answer.error());
    if (!result.ok()) {
      finish(read, result.error());
    } else if (read.filled_bytes == read.length) {
      finish(read, *read.length);
    }
  }
}

Result<void> Reads::check_piece(const Piece& piece, const Answer& answer) {
  Read& read = *piece.read;
  const WantedRead& wanted = read.wanted;
  if (answer.status == 416 && wanted.whole_object) {
    // An earlier answer has told the size. So a shorter object has replaced this one since then.
    if (read.length) return replaced_error(wanted.name);
    read.length = 0;  // the answer 416 to the first GET: the object is empty
    return success();
  }
  if (answer.status == 416) return truncated_error(wanted.name, wanted.offset, *read.length);
  if (!answer.ok()) return store_.read_error(answer, wanted.name);
  if (!read.length) {
    if (answer.is_cut && read.is_split)
      return make_error(Errc::unsupported, "the server does not support partial reads (Range), which '" +
                                               std::string(wanted.name) + "' needs");
    if (answer.is_cut)
      return check_fits(wanted.name, std::max<uint64_t>(answer.object_bytes, wanted.out.size() + 1),
                        wanted.out.size());
    read.length = answer.bytes;
  }
  const uint64_t length = std::min<uint64_t>(piece.length, *read.length - piece.begin);
  if (answer.bytes < length) {
    if (answer.object_bytes > wanted.offset + piece.begin + answer.bytes)
      return make_error(Errc::corrupt, "of '" + std::string(wanted.name) + "' the server sent " +
                                           std::to_string(answer.bytes) + " bytes instead of " +
                                           std::to_string(length));
    return truncated_error(wanted.name, wanted.offset, *read.length);
  }
  read.filled_bytes += length;
  return success();
}

void Reads::finish(Read& read, Result<uint64_t> bytes) {
  if (read.gets_in_flight > 0)
    std::erase_if(pieces_, [&](const auto& piece) {
      if (piece.second.read == &read) transfers_->cancel(piece.first);
      return piece.second.read == &read;
    });
  std::erase(needing_gets_, &read);
  if (bytes.ok()) store_.moved().add_read(*bytes);
  done_.push_back({read.tag, std::move(bytes)});
  reads_.erase(read.position);
}

namespace {

Result<uint64_t> read_blocking(Store& store, WantedRead wanted) {
  Reads reads(store, store.settings().limit_requests(store.settings().max_streams));
  reads.start(0, std::move(wanted));
  while (reads.done_count() == 0) reads.drive(true);
  return reads.take_done().bytes;
}

}  // namespace

Result<void> S3Reader::read_at(uint64_t offset, std::span<std::byte> out) {
  PENSTOCK_TRY(check_range(offset, out.size()));
  PENSTOCK_TRY(read_blocking(store_, {.name = name_, .etag = etag_, .offset = offset, .out = out}));
  return success();
}

Result<uint64_t> read_object(Store& store, const ReadObject& object) {
  PENSTOCK_TRY(check_read_object(object.name, object.length_hint, object.out.size()));
  return read_blocking(store, wanted_read(object));
}

}  // namespace penstock::s3
