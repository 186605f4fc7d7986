// A session's layers (penstock_layer) and the names of layers and calls. Some layers count once more what
// others have counted.
#pragma once

#include <string_view>

#include "profiling/session_abi.h"

namespace penstock {

// Descriptors, whether by calls or by rings: what Darshan calls POSIX.
constexpr bool is_of_descriptors(unsigned layer) {
  return layer == PENSTOCK_POSIX || layer == PENSTOCK_RING;
}

// No other layer counts its bytes. MPI-IO and HDF5 lie above others, and a layer that is not known may.
constexpr bool moves_bytes_of_its_own(unsigned layer) {
  return is_of_descriptors(layer) || layer == PENSTOCK_STDIO;
}

// Names in what other programs read, by penstock_layer and penstock_call.
inline constexpr std::string_view kLayerNames[PENSTOCK_LAYERS] = {"posix", "stdio", "ring", "mpiio", "hdf5"};
inline constexpr std::string_view kCallNames[PENSTOCK_CALLS] = {"open", "close", "read", "write", "stat",
                                                                "seek", "sync",  "map",  "other"};
constexpr std::string_view file_type_name(unsigned kind) {
  return kind == PENSTOCK_DIRECTORY ? "directory" : kind == PENSTOCK_OTHER_FILE ? "other" : "file";
}

}  // namespace penstock
