#include "datagen/codec/gzip.hpp"

#include <utility>

#ifdef PENSTOCK_HAS_ZLIB
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "io_backends/core/checksums/checksums_count.hpp"
#endif

namespace penstock {

#ifdef PENSTOCK_HAS_ZLIB

namespace {

constexpr int kWindowBits = 15 + 16;  // a window of 32 KiB; + 16 selects the gzip format
constexpr int kMemoryLevel = 8;       // zlib's default
constexpr int kNoSystem = 255;
constexpr std::size_t kPiece = std::size_t{64} << 10U;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;  // zlib counts bytes in 32 bits

// zlib takes input by non-const pointers but does not write to it.
Bytef* bytes_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));  // NOLINT(*-cast)
}

uInt count_of(std::size_t bytes) {
  return static_cast<uInt>(std::min(bytes, kMostAtOnce));
}

}  // namespace

struct GzipMaker::State {
  State() {
    header.os = kNoSystem;
    ready =
        deflateInit2(&stream, kGzipLevel, Z_DEFLATED, kWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK;
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { deflateEnd(&stream); }

  void begin() {
    deflateReset(&stream);
    deflateSetHeader(&stream, &header);
    filled = 0;
  }

  // Passes pieces of one size to zlib, so the output does not depend on how the caller cuts the bytes.
  Result<void> add(std::span<const std::byte> bytes, const Sink& sink) {
    while (!bytes.empty()) {
      const std::size_t some = std::min(bytes.size(), kPiece - filled);
      std::memcpy(in.data() + filled, bytes.data(), some);
      filled += some;
      bytes = bytes.subspan(some);
      if (filled == kPiece) PENSTOCK_TRY(squeeze(Z_NO_FLUSH, sink));
    }
    return success();
  }

  Result<void> squeeze(int how, const Sink& sink) {
    stream.next_in = bytes_of(in);
    stream.avail_in = count_of(std::exchange(filled, 0));
    for (bool more = true; more;) {
      stream.next_out = bytes_of(out);
      stream.avail_out = count_of(out.size());
      if (deflate(&stream, how) == Z_STREAM_ERROR)
        return make_error(Errc::internal, "zlib lost its way while it compressed");
      more = stream.avail_out == 0;
      const std::size_t made = out.size() - stream.avail_out;
      if (made > 0) PENSTOCK_TRY(sink(std::span<const std::byte>(out).first(made)));
    }
    return success();
  }

  z_stream stream{};
  gz_header header{};
  bool ready = false;
  std::array<std::byte, kPiece> in{};
  std::array<std::byte, kPiece> out{};
  std::size_t filled = 0;
};

struct GzipInflater::State {
  State() { ready = inflateInit2(&stream, kWindowBits) == Z_OK; }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&stream); }

  z_stream stream{};
  bool ready = false;
};

Result<void> gzip_available() {
  return success();
}

Result<GzipMaker> GzipMaker::start() {
  auto state = std::make_unique<State>();
  if (!state->ready) return make_error(Errc::exhausted, "no memory for zlib");
  return GzipMaker(std::move(state));
}

Result<void> GzipMaker::make(std::span<const std::span<const std::byte>> pieces, const Sink& sink) {
  state_->begin();
  for (const std::span<const std::byte> piece : pieces) PENSTOCK_TRY(state_->add(piece, sink));
  return state_->squeeze(Z_FINISH, sink);
}

std::uint64_t GzipMaker::most(std::uint64_t bytes) const {
  state_->begin();  // deflateBound() ignores the gzip header after the end of a member
  return deflateBound(&state_->stream, bytes);
}

Result<GzipInflater> GzipInflater::start() {
  auto state = std::make_unique<State>();
  if (!state->ready) return make_error(Errc::exhausted, "no memory for zlib");
  GzipInflater inflater(std::move(state));
  inflater.begin();
  return inflater;
}

void GzipInflater::begin() {
  inflateReset(&state_->stream);
  if constexpr (!kChecksumsCount) inflateValidate(&state_->stream, 0);
}

Result<GzipInflater::Step> GzipInflater::step(std::span<const std::byte> in, std::span<std::byte> out) {
  z_stream& stream = state_->stream;
  const uInt given = count_of(in.size());
  const uInt room = count_of(out.size());
  std::byte nowhere{};  // zlib accepts no null pointer, even for 0 bytes
  stream.next_in = given == 0 ? bytes_of({&nowhere, 1}) : bytes_of(in);
  stream.avail_in = given;
  stream.next_out = room == 0 ? bytes_of({&nowhere, 1}) : bytes_of(out);
  stream.avail_out = room;
  const int done = inflate(&stream, Z_NO_FLUSH);
  if (done == Z_MEM_ERROR) return make_error(Errc::exhausted, "no memory to inflate");
  if (done != Z_OK && done != Z_STREAM_END && done != Z_BUF_ERROR)
    return make_error(Errc::corrupt,
                      std::string("gzip is damaged: ") + (stream.msg != nullptr ? stream.msg : "no gzip"));
  return Step{given - stream.avail_in, room - stream.avail_out, done == Z_STREAM_END};
}

#else

struct GzipMaker::State {};
struct GzipInflater::State {};

Result<void> gzip_available() {
  return make_error(Errc::unsupported, "this build lacks zlib");
}

Result<GzipMaker> GzipMaker::start() {
  return gzip_available().error();
}
Result<void> GzipMaker::make(std::span<const std::span<const std::byte>> /*pieces*/, const Sink& /*sink*/) {
  return gzip_available();
}
std::uint64_t GzipMaker::most(std::uint64_t bytes) const {
  return bytes;
}

Result<GzipInflater> GzipInflater::start() {
  return gzip_available().error();
}
void GzipInflater::begin() {}
Result<GzipInflater::Step> GzipInflater::step(std::span<const std::byte> /*in*/,
                                              std::span<std::byte> /*out*/) {
  return gzip_available().error();
}

#endif

bool begins_as_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

GzipMaker::GzipMaker(std::unique_ptr<State> state) : state_(std::move(state)) {}
GzipMaker::GzipMaker(GzipMaker&&) noexcept = default;
GzipMaker& GzipMaker::operator=(GzipMaker&&) noexcept = default;
GzipMaker::~GzipMaker() = default;
GzipInflater::GzipInflater(std::unique_ptr<State> state) : state_(std::move(state)) {}
GzipInflater::GzipInflater(GzipInflater&&) noexcept = default;
GzipInflater& GzipInflater::operator=(GzipInflater&&) noexcept = default;
GzipInflater::~GzipInflater() = default;

}  // namespace penstock
