// Fuzz target: the input is the memory of another process from address 0, with a loaded ELF file at its
// start.
#include <cstdint>
#include <cstring>

#include "profiling/attach/loaded_elf.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const penstock::ReadMemory read = [&](uint64_t address, void* to, size_t bytes) {
    if (address > size || bytes > size - address) return false;
    std::memcpy(to, data + address, bytes);
    return true;
  };
  const auto elf = penstock::LoadedElf::parse(read, 0);
  if (!elf) return 0;
  for (const char* const name : {"pthread_create", "dlopen", ""}) static_cast<void>(elf->find(read, name));
  return 0;
}
