#include "io_backends/core/ranks/module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace penstock {

Result<std::string> module_path(const char* file) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  const fs::path libraries = (program / PENSTOCK_MODULE_FOLDER).lexically_normal();
  for (const fs::path& folder : {program, libraries})
    if (fs::path path = folder / file; fs::exists(path, unknown)) return path.string();
  return make_error(Errc::unsupported,
                    fmt::format("{} is neither next to the program nor in '{}'", file, libraries.string()));
}

Result<void*> module_symbol(const char* file, const char* symbol, int flags) {
  PENSTOCK_ASSIGN(const std::string path, module_path(file));
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | flags);
  if (module == nullptr) {
    const char* said = ::dlerror();
    return make_error(Errc::unsupported, fmt::format("'{}' cannot be opened ({})", path,
                                                     said == nullptr ? "the linker does not say why" : said));
  }
  if (void* const found = ::dlsym(module, symbol); found != nullptr) return found;
  return make_error(Errc::unsupported, fmt::format("'{}' is something else", path));
}

}  // namespace penstock
