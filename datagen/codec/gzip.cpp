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
        return make_error(Errc::internal, "zlib cannot compress: its stream state is inconsistent");
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

struct StreamInflater::State {
  explicit State(DeflateFormat which) : format(which) {
    is_ready = inflateInit2(&stream, window_bits()) == Z_OK;
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&stream); }

  int window_bits() const {
    constexpr int kZlibBits = 15;
    return format == DeflateFormat::gzip   ? kWindowBits
           : format == DeflateFormat::zlib ? kZlibBits
                                           : -kZlibBits;
  }
  const char* name() const {
    return format == DeflateFormat::gzip ? "gzip" : format == DeflateFormat::zlib ? "zlib" : "deflate";
  }
  // Bytes of the checksum at the end of a stream, which inflate() does not read after begin_at().
  size_t trailer_bytes() const {
    return format == DeflateFormat::gzip ? 8 : format == DeflateFormat::zlib ? 4 : 0;
  }

  z_stream stream{};
  const DeflateFormat format;
  bool is_ready = false;
  bool began_within = false;  // whether begin_at() began this stream
  size_t trailer_left = 0;    // bytes of its checksum that are still to be skipped, after the last block
  bool deflate_ended = false;
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

Result<StreamInflater> StreamInflater::start(DeflateFormat format) {
  auto state = std::make_unique<State>(format);
  if (!state->is_ready) return make_error(Errc::exhausted, "no memory for zlib");
  StreamInflater inflater(std::move(state));
  inflater.begin();
  return inflater;
}

void StreamInflater::begin() {
  inflateReset2(&state_->stream, state_->window_bits());
  if constexpr (!kVerifyChecksums) inflateValidate(&state_->stream, 0);
  state_->began_within = state_->deflate_ended = false;
}

Result<void> StreamInflater::begin_at(const AccessPoint& point, std::byte byte_before) {
  z_stream& stream = state_->stream;
  constexpr int kRawBits = -15;
  if (point.bits >= 8 || point.window.size() > kDeflateWindowBytes ||
      inflateReset2(&stream, kRawBits) != Z_OK)
    return make_error(Errc::corrupt, "no position where decompression can start");
  if (point.bits != 0) inflatePrime(&stream, int(point.bits), int(byte_before) >> (8 - point.bits));
  if (!point.window.empty())
    inflateSetDictionary(&stream, bytes_of(point.window), static_cast<uInt>(point.window.size()));
  state_->began_within = true;
  state_->deflate_ended = false;
  return success();
}

Result<StreamInflater::Step> StreamInflater::step(std::span<const std::byte> in, std::span<std::byte> out,
                                                  bool stop_at_block_end) {
  if (state_->deflate_ended) {
    const size_t skipped_bytes = std::min(in.size(), state_->trailer_left);
    state_->trailer_left -= skipped_bytes;
    return Step{.in_bytes = skipped_bytes, .ended = state_->trailer_left == 0};
  }
  z_stream& stream = state_->stream;
  const uInt in_bytes = limited_count(in.size());
  const uInt out_bytes = limited_count(out.size());
  std::byte unused_byte{};  // zlib accepts no null pointer, even for 0 bytes
  stream.next_in = in_bytes == 0 ? bytes_of({&unused_byte, 1}) : bytes_of(in);
  stream.avail_in = in_bytes;
  stream.next_out = out_bytes == 0 ? bytes_of({&unused_byte, 1}) : bytes_of(out);
  stream.avail_out = out_bytes;
  const int status = inflate(&stream, stop_at_block_end ? Z_BLOCK : Z_NO_FLUSH);
  if (status == Z_MEM_ERROR) return make_error(Errc::exhausted, "no memory to decompress");
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
    return make_error(Errc::corrupt, "the {} data are damaged: {}", state_->name(),
                      stream.msg != nullptr ? stream.msg : "zlib reports no reason");
  // zlib's data_type: 128 after the end of a block, 64 in the last block.
  constexpr int kBlockEnded = 128;
  constexpr int kLastBlock = 64;
  Step done{.in_bytes = in_bytes - stream.avail_in,
            .out_bytes = out_bytes - stream.avail_out,
            .ended = status == Z_STREAM_END,
            .at_point = (stream.data_type & (kBlockEnded | kLastBlock)) == kBlockEnded};
  if (!done.ended || !state_->began_within) return done;
  state_->deflate_ended = true;
  state_->trailer_left = state_->trailer_bytes();
  const size_t skipped_bytes = std::min(in.size() - done.in_bytes, state_->trailer_left);
  state_->trailer_left -= skipped_bytes;
  done.in_bytes += skipped_bytes;
  done.ended = state_->trailer_left == 0;
  return done;
}

unsigned StreamInflater::bits_left() const {
  constexpr int kBitsMask = 7;
  return unsigned(state_->stream.data_type & kBitsMask);
}

#else

struct GzipMaker::State {};
struct StreamInflater::State {};

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

Result<StreamInflater> StreamInflater::start(DeflateFormat /*format*/) {
  return gzip_available().error();
}
void StreamInflater::begin() {}
Result<void> StreamInflater::begin_at(const AccessPoint& /*point*/, std::byte /*byte_before*/) {
  return gzip_available();
}
Result<StreamInflater::Step> StreamInflater::step(std::span<const std::byte> /*in*/,
                                                  std::span<std::byte> /*out*/, bool /*stop_at_block_end*/) {
  return gzip_available().error();
}
unsigned StreamInflater::bits_left() const {
  return 0;
}

#endif

bool begins_as_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

bool begins_as_zlib(std::span<const std::byte> bytes) {
  // RFC 1950: the method is 8, the window has at most 32 KiB, and both bytes as one number are a multiple of
  // 31. A preset dictionary (32) would be needed to inflate.
  if (bytes.size() < 2) return false;
  const auto first = std::to_integer<unsigned>(bytes[0]);
  const auto second = std::to_integer<unsigned>(bytes[1]);
  return (first & 0x0fU) == 8 && first >> 4U <= 7 && (second & 32U) == 0 && (first << 8U | second) % 31 == 0;
}

GzipMaker::GzipMaker(std::unique_ptr<State> state) : state_(std::move(state)) {}
GzipMaker::GzipMaker(GzipMaker&&) noexcept = default;
GzipMaker& GzipMaker::operator=(GzipMaker&&) noexcept = default;
GzipMaker::~GzipMaker() = default;
StreamInflater::StreamInflater(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamInflater::StreamInflater(StreamInflater&&) noexcept = default;
StreamInflater& StreamInflater::operator=(StreamInflater&&) noexcept = default;
StreamInflater::~StreamInflater() = default;

}  // namespace penstock
