#include "datagen/codec/zstd_size.hpp"

#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/system/scope.hpp"

#ifdef PENSTOCK_HAS_ZSTD
#include <zstd.h>
#endif

namespace penstock {

#ifdef PENSTOCK_HAS_ZSTD

struct ZstdSize::State {
  std::unique_ptr<ZSTD_CCtx, FreeBy<ZSTD_freeCCtx>> context{ZSTD_createCCtx()};
  std::vector<std::byte> out = std::vector<std::byte>(ZSTD_CStreamOutSize());
  uint64_t in_bytes = 0;
  uint64_t out_bytes = 0;

  Result<void> feed(std::span<const std::byte> bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (bool has_more = true; has_more;) {
      ZSTD_outBuffer piece{out.data(), out.size(), 0};
      const size_t left = ZSTD_compressStream2(context.get(), &piece, &in, directive);
      if (ZSTD_isError(left) != 0U)
        return make_error(Errc::internal, std::string("zstd cannot compress: ") + ZSTD_getErrorName(left));
      out_bytes += piece.pos;
      has_more = directive == ZSTD_e_end ? left > 0 : in.pos < in.size;
    }
    in_bytes += bytes.size();
    return success();
  }
};

Result<void> zstd_available() {
  return success();
}

Result<ZstdSize> ZstdSize::start() {
  auto state = std::make_unique<State>();
  if (state->context == nullptr) return make_error(Errc::exhausted, "no memory for zstd");
  ZSTD_CCtx_setParameter(state->context.get(), ZSTD_c_compressionLevel, kZstdLevel);
  return ZstdSize(std::move(state));
}

Result<void> ZstdSize::add(std::span<const std::byte> bytes) {
  return state_->feed(bytes, ZSTD_e_continue);
}

Result<void> ZstdSize::end_stream() {
  return state_->feed({}, ZSTD_e_end);
}

double ZstdSize::ratio() const {
  return state_->in_bytes == 0 ? 1.0 : double(state_->in_bytes) / double(state_->out_bytes);
}

#else

struct ZstdSize::State {};

Result<void> zstd_available() {
  return make_error(Errc::unsupported, "this build lacks zstd");
}

Result<ZstdSize> ZstdSize::start() {
  return zstd_available().error();
}

Result<void> ZstdSize::add(std::span<const std::byte>) {
  return zstd_available();
}

Result<void> ZstdSize::end_stream() {
  return zstd_available();
}

double ZstdSize::ratio() const {
  return 1;
}

#endif

ZstdSize::ZstdSize(std::unique_ptr<State> state) : state_(std::move(state)) {}
ZstdSize::ZstdSize(ZstdSize&&) noexcept = default;
ZstdSize& ZstdSize::operator=(ZstdSize&&) noexcept = default;
ZstdSize::~ZstdSize() = default;

}  // namespace penstock
