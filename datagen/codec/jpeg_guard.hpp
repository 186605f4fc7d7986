// Receives the errors of libjpeg for the JPEG decoder and encoder.
#pragma once

// jpeglib.h needs FILE and size_t to be declared before it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <csetjmp>
#include <string>

#include "datagen/codec/picture_warnings.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr JDIMENSION kJpegRowsAtOnce = 16;

// Contains the error that libjpeg reports, and the place to continue after it. libjpeg reports an error by a
// callback that must not return: it calls longjmp(). The jump calls no destructors, so no object with a
// destructor may be created between setjmp() and longjmp(). So each step of coding is one function with plain
// C data.
struct JpegGuard {
  jpeg_error_mgr manager{};
  std::jmp_buf jump_target{};
  char message[JMSG_LENGTH_MAX] = {};
  int code = 0;
  PictureWarnings warnings{};  // of the current picture
};

// Sets the error callbacks in guard.manager. The caller must then set two members of its libjpeg object:
// `err` to &guard.manager, and `client_data` to &guard.
void set_up(JpegGuard& guard);

// Makes the error for a `task` that libjpeg could not do: `exhausted` if memory ran out, otherwise
// `other_code`.
Error codec_error(const JpegGuard& guard, Errc other_code, const std::string& task);

}  // namespace penstock
