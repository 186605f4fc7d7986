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

constexpr int kWindowBits = 15 + 16;  // 15: a window of 32 KiB; + 16: the gzip format
constexpr int kMemoryLevel = 8;       // zlib's default
constexpr int kUnknownSystem = 255;
constexpr size_t kPieceBytes = size_t{64} << 10U;
// The most bytes that one call of zlib gets, because zlib counts them in 32 bits.
constexpr size_t kMostBytesPerCall = size_t{1} << 30U;

// zlib takes input through non-const pointers but does not write to it.
Bytef* bytes_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));  // NOLINT(*-cast)
}

uInt limited_count(size_t bytes) {
  return static_cast<uInt>(std::min(bytes, kMostBytesPerCall));
}

}  // namespace

struct GzipMaker::State {
  State() {
    header.os = kUnknownSystem;
    is_ready =
        deflateInit2(&stream, kGzipLevel, Z_DEFLATED, kWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK;
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { deflateEnd(&stream); }

  void begin() {
    deflateReset(&stream);
    deflateSetHeader(&stream, &header);
    filled_bytes = 0;
  }

  // Passes the bytes to zlib in pieces of kPieceBytes, which it gathers in a buffer. So the output does not
  // depend on the sizes in which the caller adds the bytes.
  Result<void> add(std::span<const std::byte> bytes, const Sink& sink) {
    while (!bytes.empty()) {
      const size_t copied_bytes = std::min(bytes.size(), kPieceBytes - filled_bytes);
      std::memcpy(in.data() + filled_bytes, bytes.data(), copied_bytes);
      filled_bytes += copied_bytes;
      bytes = bytes.subspan(copied_bytes);
      if (filled_bytes == kPieceBytes) PENSTOCK_TRY(compress_input(Z_NO_FLUSH, sink));
    }
    return success();
  }

  Result<void> compress_input(int flush_mode, const Sink& sink) {
    stream.next_in = bytes_of(in);
    stream.avail_in = limited_count(std::exchange(filled_bytes, 0));
    for (bool has_more = true; has_more;) {
      stream.next_out = bytes_of(out);
      stream.avail_out = limited_count(out.size());
      if (deflate(&stream, flush_mode) == Z_STREAM_ERROR)
        return make_error(Errc::internal, "zlib cannot compress: the state of its stream is inconsistent");
      has_more = stream.avail_out == 0;
      const size_t out_bytes = out.size() - stream.avail_out;
      if (out_bytes > 0) PENSTOCK_TRY(sink(std::span<const std::byte>(out).first(out_bytes)));
    }
    return success();
  }

  z_stream stream{};
  gz_header header{};
  bool is_ready = false;
  std::array<std::byte, kPieceBytes> in{};
  std::array<std::byte, kPieceBytes> out{};
  size_t filled_bytes = 0;
};

struct GzipInflater::State {
  State() { is_ready = inflateInit2(&stream, kWindowBits) == Z_OK; }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&stream); }

  z_stream stream{};
  bool is_ready = false;
};

Result<void> gzip_available() {
  return success();
}

Result<GzipMaker> GzipMaker::start() {
  auto state = std::make_unique<State>();
  if (!state->is_ready) return make_error(Errc::exhausted, "no memory for zlib");
  return GzipMaker(std::move(state));
}

Result<void> GzipMaker::make(std::span<const std::span<const std::byte>> pieces, const Sink& sink) {
  state_->begin();
  for (const std::span<const std::byte> piece : pieces) PENSTOCK_TRY(state_->add(piece, sink));
  return state_->compress_input(Z_FINISH, sink);
}

uint64_t GzipMaker::max_member_bytes(uint64_t bytes) const {
  // The state must be at the beginning of a member, because after the end of one, deflateBound() does not
  // count the gzip header.
  state_->begin();
  return deflateBound(&state_->stream, bytes);
}

Result<GzipInflater> GzipInflater::start() {
  auto state = std::make_unique<State>();
  if (!state->is_ready) return make_error(Errc::exhausted, "no memory for zlib");
  GzipInflater inflater(std::move(state));
  inflater.begin();
  return inflater;
}

void GzipInflater::begin() {
  inflateReset(&state_->stream);
  if constexpr (!kVerifyChecksums) inflateValidate(&state_->stream, 0);
}

Result<GzipInflater::Step> GzipInflater::step(std::span<const std::byte> in, std::span<std::byte> out) {
  z_stream& stream = state_->stream;
  const uInt in_bytes = limited_count(in.size());
  const uInt out_bytes = limited_count(out.size());
  std::byte unused_byte{};  // zlib accepts no null pointer, even for 0 bytes
  stream.next_in = in_bytes == 0 ? bytes_of({&unused_byte, 1}) : bytes_of(in);
  stream.avail_in = in_bytes;
  stream.next_out = out_bytes == 0 ? bytes_of({&unused_byte, 1}) : bytes_of(out);
  stream.avail_out = out_bytes;
  const int status = inflate(&stream, Z_NO_FLUSH);
  if (status == Z_MEM_ERROR) return make_error(Errc::exhausted, "no memory to inflate");
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
    return make_error(Errc::corrupt, std::string("the gzip data are damaged: ") +
                                         (stream.msg != nullptr ? stream.msg : "zlib gives no reason"));
  return Step{in_bytes - stream.avail_in, out_bytes - stream.avail_out, status == Z_STREAM_END};
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
uint64_t GzipMaker::max_member_bytes(uint64_t bytes) const {
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
