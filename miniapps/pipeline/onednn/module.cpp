// The function of libpenstock_onednn.so that the program calls first: it returns the NetworkTrainerModule.
#include "io_backends/core/build_info.hpp"
#include "miniapps/pipeline/network_trainer.hpp"
#include "miniapps/pipeline/onednn/trainer.hpp"

extern "C" __attribute__((visibility("default"))) const penstock::NetworkTrainerModule*
penstock_onednn_module() {
  static const penstock::NetworkTrainerModule module{.version = penstock::build_info().version.data(),
                                                     .make = &penstock::make_onednn_trainer};
  return &module;
}
