#include "io_backends/core/ranks/module.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "io_backends/core/system/subprocess.hpp"

namespace penstock {

Result<std::string> module_path(const char* file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  PENSTOCK_ASSIGN(const fs::path program, this_program());
  const fs::path program_folder = program.parent_path();
  const fs::path library_folder = (program_folder / PENSTOCK_MODULE_FOLDER).lexically_normal();
  for (const fs::path& folder : {program_folder, library_folder})
    if (fs::path path = folder / file; fs::exists(path, ignored)) return path.string();
  return make_error(Errc::unsupported, "{} is neither next to the program nor in '{}'", file,
                    library_folder.string());
}

Result<void*> module_symbol(const char* file, const char* symbol, int flags) {
  PENSTOCK_ASSIGN(const std::string path, module_path(file));
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | flags);
  if (module == nullptr) {
    const char* reason = ::dlerror();
    return make_error(Errc::unsupported, "'{}' cannot be opened ({})", path,
                      reason == nullptr ? "the dynamic linker gave no reason" : reason);
  }
  if (void* const found = ::dlsym(module, symbol); found != nullptr) return found;
  return make_error(Errc::unsupported, "'{}' is not a module of this version of penstock", path);
}

}  // namespace penstock
