// The layers of a session (penstock_layer), and the names of layers and calls. Some layers count bytes that
// another layer has already counted.
#pragma once

#include <string_view>

#include "profiling/session_abi.h"

namespace penstock {

// True for layers whose calls name a file by its descriptor: posix and ring (io_uring, libaio). The Darshan
// export writes both to the module POSIX.
constexpr bool is_of_descriptors(unsigned layer) {
  return layer == PENSTOCK_POSIX || layer == PENSTOCK_RING;
}

// True if no other layer counts the bytes of this layer. False for MPI-IO and HDF5, which read and write
// through other layers. Also false for an unknown layer, because it may do the same.
constexpr bool moves_bytes_of_its_own(unsigned layer) {
  return is_of_descriptors(layer) || layer == PENSTOCK_STDIO;
}

// The names in output that programs read, such as JSON; indexed by penstock_layer and penstock_call.
inline constexpr std::string_view kLayerNames[PENSTOCK_LAYERS] = {"posix", "stdio", "ring", "mpiio", "hdf5"};
inline constexpr std::string_view kCallNames[PENSTOCK_CALLS] = {"open", "close", "read", "write", "stat",
                                                                "seek", "sync",  "map",  "other"};
constexpr std::string_view file_type_name(unsigned kind) {
  return kind == PENSTOCK_DIRECTORY ? "directory" : kind == PENSTOCK_OTHER_FILE ? "other" : "file";
}

}  // namespace penstock
