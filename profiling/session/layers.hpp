// A session's layers (penstock_layer), of which some count once more what others have counted.
#pragma once

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

}  // namespace penstock
