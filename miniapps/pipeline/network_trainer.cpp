#include "miniapps/pipeline/network_trainer.hpp"

#include <dlfcn.h>

#include <string>

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/ranks/module.hpp"

namespace penstock {
namespace {

constexpr const char* kModuleFile = "libpenstock_onednn.so";

Result<const NetworkTrainerModule*> module() {
  const auto missing = [](const std::string& why) {
    return make_error(Errc::unsupported, "the accelerator 'cpu' needs a module, and " + why +
                                             ": build Penstock on a machine with oneDNN (Debian: "
                                             "libdnnl-dev), or use --accelerator emulated:step=TIME");
  };
  static const Result<void*> symbol = module_symbol(kModuleFile, kNetworkTrainerModuleSymbol, RTLD_LOCAL);
  if (!symbol.ok()) return missing(symbol.error().what);
  const NetworkTrainerModule* const found = reinterpret_cast<NetworkTrainerModuleFunction>(*symbol)();
  if (build_info().version == found->version) return found;
  return missing("the installed one belongs to Penstock " + std::string(found->version));
}

}  // namespace

Result<void> network_trainer_available() {
  PENSTOCK_TRY(module());
  return success();
}

Result<std::unique_ptr<NetworkTrainer>> make_network_trainer(const TrainerRequest& request) {
  PENSTOCK_ASSIGN(const NetworkTrainerModule* const found, module());
  return found->make(request);
}

}  // namespace penstock
