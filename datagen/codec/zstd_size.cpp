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
  std::uint64_t taken = 0;
  std::uint64_t made = 0;

  Result<void> feed(std::span<const std::byte> bytes, ZSTD_EndDirective how) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (bool more = true; more;) {
      ZSTD_outBuffer piece{out.data(), out.size(), 0};
      const std::size_t left = ZSTD_compressStream2(context.get(), &piece, &in, how);
      if (ZSTD_isError(left) != 0U)
        return make_error(Errc::internal, std::string("zstd cannot compress: ") + ZSTD_getErrorName(left));
      made += piece.pos;
      more = how == ZSTD_e_end ? left > 0 : in.pos < in.size;
    }
    taken += bytes.size();
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

Result<void> ZstdSize::end() {
  return state_->feed({}, ZSTD_e_end);
}

double ZstdSize::ratio() const {
  return state_->taken == 0 ? 1.0 : static_cast<double>(state_->taken) / static_cast<double>(state_->made);
}

#else

struct ZstdSize::State {};

Result<void> zstd_available() {
  return make_error(Errc::unsupported, "built without zstd");
}

Result<ZstdSize> ZstdSize::start() {
  return zstd_available().error();
}

Result<void> ZstdSize::add(std::span<const std::byte>) {
  return zstd_available();
}

Result<void> ZstdSize::end() {
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
