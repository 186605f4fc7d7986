// The Namespace of a folder of the operating system.
#pragma once

#include <memory>

#include "io_backends/backend/backend.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {

// Lists regular files and folders (symbolic links count as what they point to; a dangling one is an object of
// 0 bytes) and leaves out temporary names. lock() is an open-file-description lock, so it also keeps out the
// same process, and ends with the holder however that ends; the file says who holds it.
std::unique_ptr<Namespace> posix_namespace(PosixRoot& root);

}  // namespace penstock
