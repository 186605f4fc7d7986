// A plug-in of HDF5 for tests, with a number that HDF5 leaves to tests. It inverts all bytes. It crashes if
// the first byte of what it gets is 1 and hangs if it is 2.
#include <H5PLextern.h>
#include <unistd.h>

#include <cstdlib>
#include <span>

namespace {

size_t invert(unsigned flags, size_t, const unsigned*, size_t bytes, size_t*, void** buffer) {
  const std::span chunk(static_cast<unsigned char*>(*buffer), bytes);
  if ((flags & H5Z_FLAG_REVERSE) != 0 && !chunk.empty()) {
    if (chunk.front() == 1) std::abort();
    while (chunk.front() == 2) ::pause();
  }
  for (unsigned char& byte : chunk) byte = static_cast<unsigned char>(~byte);
  return bytes;
}

constexpr H5Z_filter_t kNumber = 300;
const H5Z_class2_t kFilter = {H5Z_CLASS_T_VERS, kNumber, 1, 1, "inverted", nullptr, nullptr, invert};

}  // namespace

extern "C" H5PL_type_t H5PLget_plugin_type() {
  return H5PL_TYPE_FILTER;
}
extern "C" const void* H5PLget_plugin_info() {
  return &kFilter;
}
