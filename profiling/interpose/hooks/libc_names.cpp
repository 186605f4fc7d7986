// Finds functions of libc in its symbol table, which is mapped into memory together with libc.
//
// Threads: any thread, any handler and any fork's child. note_libc() runs only in the library's constructor.
// Locks: libc_function() takes none. note_libc() calls dladdr1(), which takes the loader's lock.
// Memory: nothing is allocated. libc is never unloaded, so `libc_map` and all addresses in its mapping stay
// valid.
#include "profiling/interpose/hooks/libc_names.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

namespace {

constinit std::atomic<const link_map*> libc_map{nullptr};  // stored once, by note_libc()

uint32_t gnu_hash(const char* name) noexcept {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) {
    hash = hash * 33 + static_cast<unsigned char>(*name);
  }
  return hash;
}

}  // namespace

void note_libc() noexcept {
  Dl_info info{};
  void* found_map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&gnu_get_libc_version), &info, &found_map, RTLD_DL_LINKMAP) != 0) {
    libc_map.store(static_cast<const link_map*>(found_map));
  }
}

bool knows_libc() noexcept {
  return libc_map.load() != nullptr;
}

void* libc_function(const char* name) noexcept {
  const link_map* const map = libc_map.load();
  if (map == nullptr) {
    return nullptr;
  }
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash_table = nullptr;  // from DT_GNU_HASH
  const uint16_t* versions = nullptr;    // the version of each symbol
  for (const ElfW(Dyn)* at = map->l_ld; at->d_tag != DT_NULL; ++at) {
    // glibc has usually replaced the offsets in the dynamic section by addresses. A value below the object's
    // first address is still an offset.
    const uintptr_t value = at->d_un.d_ptr < map->l_addr ? at->d_un.d_ptr + map->l_addr : at->d_un.d_ptr;
    if (at->d_tag == DT_SYMTAB) {
      symbols = reinterpret_cast<const ElfW(Sym)*>(value);
    } else if (at->d_tag == DT_STRTAB) {
      strings = reinterpret_cast<const char*>(value);
    } else if (at->d_tag == DT_GNU_HASH) {
      hash_table = reinterpret_cast<const uint32_t*>(value);
    } else if (at->d_tag == DT_VERSYM) {
      versions = reinterpret_cast<const uint16_t*>(value);
    }
  }
  if (symbols == nullptr || strings == nullptr || hash_table == nullptr) {
    return nullptr;
  }
  constexpr uint16_t kHiddenVersionBit = 0x8000;  // in `versions`: marks versions that are not the default
  const uint32_t bucket_count = hash_table[0];
  const uint32_t first_symbol = hash_table[1];
  const uint32_t bloom_size = hash_table[2];
  const uint32_t* const buckets = hash_table + 4 + bloom_size * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* const chain = buckets + bucket_count;
  const uint32_t hash = gnu_hash(name);
  for (uint32_t i = buckets[hash % bucket_count]; i >= first_symbol; ++i) {
    const uint32_t chain_hash = chain[i - first_symbol];
    const ElfW(Sym)& symbol = symbols[i];
    const bool is_default = versions == nullptr || (versions[i] & kHiddenVersionBit) == 0;
    if ((chain_hash | 1) == (hash | 1) && is_default && symbol.st_shndx != SHN_UNDEF &&
        strcmp(strings + symbol.st_name, name) == 0) {
      return reinterpret_cast<void*>(map->l_addr + symbol.st_value);
    }
    if ((chain_hash & 1) != 0) {
      break;
    }
  }
  return nullptr;
}

}  // namespace penstock::interpose
