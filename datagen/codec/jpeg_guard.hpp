// How the JPEG decoder and encoder get libjpeg's errors.
#pragma once

// jpeglib.h needs FILE and size_t before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <csetjmp>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr JDIMENSION kJpegRowsAtOnce = 16;

// libjpeg reports by calling back and expects not to be returned to. Between setjmp and longjmp no object
// with a destructor may come to life: each step is one function of plain C data.
struct JpegGuard {
  jpeg_error_mgr manager{};
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
  int code = 0;
};

// The codec's `err` is then the manager, and its `client_data` the guard.
void set_up(JpegGuard& guard);

// `otherwise`: what every failure but lack of memory means.
Error codec_error(const JpegGuard& guard, Errc otherwise, const std::string& doing);

}  // namespace penstock
