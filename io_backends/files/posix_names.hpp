// Lists, renames, removes and locks objects in a folder of the operating system.
#pragma once

#include <memory>

#include "io_backends/backend/backend.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {

// Makes the Namespace of a root. It lists regular files and folders, without temporary names. A symbolic link
// counts as its target; a dangling one is an object of 0 bytes. lock() takes an open-file-description lock.
// So the lock excludes other holders in the same process, too, and the system releases it when its process
// dies. The lock file names its holder.
std::unique_ptr<Namespace> posix_namespace(PosixRoot& root);

}  // namespace penstock
